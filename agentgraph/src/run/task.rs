//! Running a single task: the remote side of a host.

mod once;

pub use once::forget_once;

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;

use super::attached::Attached;
use super::compiled::CompiledGraph;
use crate::attempt::{EndedAttempt, attempt_once, make_edits};
use crate::context::edits::Desk;
use crate::context::host::{FarSide, FarSink, Reply, TaskCall, TaskDetails, TaskEvents, TaskReply};
use crate::context::{
    Audience, Bounds, Call, CallMethod, Control, Editing, OnceStorage, Refusal, RunShared, Sink, Spending,
    TaskOrigin, TaskRequest, TaskVerdict, Units, VisibleEdits,
};
use crate::engine::driver::{Driver, FarNode};
use crate::engine::executor::{no_parent, node_error};
use crate::engine::host::{Question, QuestionOrRefusal, StateHere, parent_encoder};
use crate::engine::spans::Spans;
use crate::engine::stored::{StoredStep, to_bytes};
use crate::erased::layer::NodeCall;
use crate::error::{BoxError, Code, Error, OwnError};
use crate::extract::Task;
use crate::failure::{Failure, KeptError};
use crate::graph::GraphCore;
use crate::graph::run_graph::RunGraph;
use crate::node::error_code::code_of;
use crate::policy::{Limit, Policies};
use crate::record::blob::Blob;
use crate::record::codec::Codec;
use crate::record::header::Header;
use crate::record::once::StoredOnce;
use crate::run::task::once::FarOnce;
use crate::session::Sessions;
use crate::state::StoredState;
use crate::step::{EncodeParent, Goto, InputValue, Step, ToParent};
use crate::typed::{AnySchema, AnyState};
use crate::words::GraphEdit;
use agentgraph_checkpoint::Checkpointer;
use agentgraph_checkpoint::fold::{Folded, Value as FieldValue};
use agentgraph_checkpoint::services::micros;

/// # As the far side of a host
impl<S: StoredState> CompiledGraph<S> {
    /// Runs one attempt of a task that a [`Host`](crate::host::Host) has sent, with the node's layers and
    /// timeouts. This is the remote side of a host; the graph must have the node that the call names, at the
    /// end of the call's path: so the graph to ask is the one that was given the host, also for the tasks of
    /// its subgraphs.
    ///
    /// If the attempt fails and the node's retry policy wants another one, the reply
    /// [says so](TaskReply::again); the run waits and sends the next attempt.
    ///
    /// Channels that are never stored have their initial values here. Sessions come with the call, and those
    /// that the attempt changes go back with the reply. Events go to the receiver of
    /// [`events`](TaskRun::events), and results of durable steps to the store of
    /// [`once_in`](TaskRun::once_in); without one, a durable step fails with
    /// [`Code::Once`](crate::Code::Once).
    ///
    /// # Errors
    /// If the graph has no such node, the call has no state, or its bytes do not fit the graph. A failing
    /// node is a reply, not an error.
    pub fn run_task(&self, call: TaskCall) -> TaskRun<'_> {
        TaskRun { graph: &self.any, codec: self.codec(), call, far: FarSide::new() }
    }
}

/// A task to be run, made by [`CompiledGraph::run_task`]: pass it contexts, then await it.
#[must_use = "a task does nothing until it is awaited"]
pub struct TaskRun<'a> {
    graph: &'a Attached,
    codec: Codec,
    call: TaskCall,
    far: FarSide,
}

impl TaskRun<'_> {
    /// Passes a value to the node, which takes it as a [`CallContext<T>`](crate::node::CallContext). The
    /// values of the call itself stay in its process.
    ///
    /// ```
    /// use agentgraph::BoxError;
    /// use agentgraph::host::{Host, TaskCall, TaskReply};
    /// use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Page { text: String }
    /// /// The token with which a process reads pages.
    /// struct Token(&'static str);
    ///
    /// async fn read(token: CallContext<Token>) -> PageUpdate {
    ///     Page::update().text(format!("read with {}", token.0))
    /// }
    ///
    /// /// The other process, with a token of its own.
    /// struct Worker(CompiledGraph<Page>);
    ///
    /// #[async_trait::async_trait]
    /// impl Host for Worker {
    ///     async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
    ///         Ok(self.0.run_task(call).context(Token("the worker's token")).await?)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("read", read).edge(START, "read").compile()?;
    /// let graph = graph.clone().host(Worker(graph));
    /// let page = graph.invoke(Page::update()).context(Token("the caller's token")).await?;
    /// assert_eq!(page.output().text, "read with the worker's token");
    /// # Ok(())
    /// # }
    /// ```
    pub fn context<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.far = self.far.context(value);
        self
    }

    /// Keeps the results of durable steps in a store: see [`FarSide::once_in`].
    pub fn once_in(mut self, saver: Arc<dyn Checkpointer>) -> Self {
        self.far = self.far.once_in(saver);
        self
    }

    /// Passes the events of the task on: see [`FarSide::events`].
    pub fn events(mut self, events: Arc<dyn TaskEvents>) -> Self {
        self.far = self.far.events(events);
        self
    }

    /// Sets what this process gives to the task. Replaces earlier settings.
    pub fn on(mut self, far: FarSide) -> Self {
        self.far = far;
        self
    }
}

impl<'a> IntoFuture for TaskRun<'a> {
    type Output = Result<TaskReply, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let TaskRun { graph, codec, call, far } = self;
        Box::pin(async move { run_far(graph, codec, call, 0, far, None).await })
    }
}

/// Runs the attempt that a call asks for, in the graph at the end of its path. `depth` is the position of
/// this graph in the path, and `parent` encodes updates of the graph around it.
pub(in crate::run) async fn run_far(
    graph: &Attached,
    codec: Codec,
    call: TaskCall,
    depth: usize,
    far: FarSide,
    parent: Option<EncodeParent>,
) -> Result<TaskReply, Error> {
    let details = call.details()?;
    if let Some(name) = call.path.get(depth) {
        let added = details.added.into_iter().filter(|(at, _)| *at as usize == depth);
        let core = restored(graph, added.map(|(_, edit)| edit).collect(), name)?;
        let inner = core.id(name).and_then(|node| core.entry(node)?.graph.clone());
        let inner = inner.ok_or_else(|| lacking(&format!("graph `{name}` as a node")))?;
        let parent = parent_encoder(codec, &core.schema);
        return inner.run_task(call, depth + 1, far, parent).await;
    }
    let found = match &graph.driver {
        Some(driver) => {
            let core = RunGraph::from(Arc::clone(&graph.core));
            let node = Arc::clone(driver).far_node(&codec, &core.schema, &call, &details)?;
            (core, node)
        }
        None => {
            let core = restored(graph, details.edits.clone(), &call.node)?;
            let node = far_node(&core, &codec, &call, &graph.core)?;
            (core, node)
        }
    };
    let mut once = far.once.clone().map(|saver| FarOnce::new(saver, call.run, call.task));
    let done = match &mut once {
        None => Vec::new(),
        Some(once) => once.load().await?,
    };
    let attempt = FarAttempt::new(graph, found, codec, call, details, done, far)?;
    FarAttempt { parent, ..attempt }.run(once).await
}

/// The node that a call names, and the state that it reads.
fn far_node(
    core: &RunGraph,
    codec: &Codec,
    call: &TaskCall,
    desk: &Arc<GraphCore>,
) -> Result<FarNode, Error> {
    let found = core.id(&call.node).and_then(|node| Some((node, core.entry(node)?)));
    let (node, entry) = found.ok_or_else(|| lacking(&format!("node `{}`", call.node)))?;
    if entry.graph.is_some() {
        let problem = format!(
            "`{}` is a graph, which runs where the loop runs: a host gets the tasks in it one by one",
            call.node
        );
        return Err(Error::new(Code::Host, problem));
    }
    // The graph of a temporary node is built anew for each task of it: its calls hold states of another one.
    let held = call.held::<StateHere>().and_then(|held| held.state_of(desk));
    Ok(FarNode {
        node,
        state: match held {
            Some(state) => Arc::clone(state),
            None => Arc::new(decode_state(codec, &core.schema, &call.state_needed()?)?),
        },
        call: Arc::clone(&entry.call),
        policies: entry.policies.clone(),
        desk: Arc::clone(desk) as Arc<dyn Desk>,
    })
}

/// The graph with the edits of a call.
fn restored(graph: &Attached, edits: Vec<GraphEdit>, node: &str) -> Result<RunGraph, Error> {
    let mut gone = Vec::new();
    let header = Header { overlay: edits, ..Header::default() };
    let core = RunGraph::restore(&graph.core, &header, &mut gone);
    if core.id(node).is_none() {
        gone.push(format!("node `{node}`"));
    }
    if gone.is_empty() { Ok(core) } else { Err(lacking(&gone.join(", "))) }
}

fn lacking(what: &str) -> Error {
    let problem = format!("a host asked for {what}, which this graph does not have");
    Error::new(Code::GraphChanged, problem)
}

/// An attempt of a task on the far side of a host.
struct FarAttempt {
    core: RunGraph,
    /// Drives the passes of a dependency graph.
    driver: Option<Arc<dyn Driver>>,
    node: FarNode,
    codec: Codec,
    shared: Arc<RunShared>,
    request: TaskRequest,
    is_in_subgraph: bool,
    input: Option<InputValue>,
    failure: Option<Arc<Failure>>,
    /// The units that the run has spent before this attempt.
    spent: Units,
    /// Encodes updates of the graph around the one of the node.
    parent: Option<EncodeParent>,
    far: FarSide,
}

impl FarAttempt {
    fn new(
        graph: &Attached,
        (core, node): (RunGraph, FarNode),
        codec: Codec,
        call: TaskCall,
        details: TaskDetails,
        done: Vec<(u32, StoredOnce)>,
        mut far: FarSide,
    ) -> Result<Self, Error> {
        let sessions = Sessions::open(&graph.shared.sessions, &details.sessions, false);
        let sessions = sessions.map_err(|error| Error::new(Code::Host, error.message().to_owned()))?;
        let TaskDetails { input, limits, failure, asked, kept, spent, budget, .. } = details;
        let origin = TaskOrigin::unstored(call.step);
        let handles = failure.is_some();
        let (step, index, attempt) = (call.step, call.index, call.attempt);
        let request = TaskRequest { step, node: node.node, index, attempt, handles, origin };
        let storage = if far.once.is_some() { OnceStorage::Kept } else { OnceStorage::Host };
        let control = Control::of(false, storage);
        control.begin_step(call.step);
        if !(asked.is_empty() && done.is_empty()) {
            control.recall(request.index, asked, done);
        }
        let kept = kept.iter().filter_map(|name| core.id(name)).collect();
        let visible = VisibleEdits {
            overlay: core.overlay().map(Arc::clone),
            kept: Arc::new(kept),
            desk: graph.driver.is_some().then(|| Arc::clone(&node.desk)),
        };
        let events = far.events.take().map(|events| Arc::new(FarSink::new(events, &call)) as Arc<dyn Sink>);
        let hears = events.is_some();
        let shared = Arc::new(RunShared {
            graph: Arc::clone(&graph.shared),
            run: call.run,
            thread: call.thread.map(Arc::from),
            call: Call::new(CallMethod::RunTask(call.task), far.context.take()),
            control,
            sessions,
            audience: Audience { sink: events, custom: hears, messages: hears },
            services: Arc::clone(&graph.shared.services),
            bounds: Bounds::new(call.max_supersteps, Spending::elsewhere(spent.clone(), budget)),
            outer: None,
            nest: None,
            editing: Editing::at(Arc::clone(&graph.core) as Arc<dyn Desk>, true).seeing(visible),
        });
        let input = input.map(|bytes| InputValue::stored(bytes.0, limits));
        let failure = failure.map(Arc::new);
        Ok(FarAttempt {
            core,
            driver: graph.driver.clone(),
            node,
            codec,
            shared,
            request,
            is_in_subgraph: !call.namespace.is_empty(),
            input,
            failure,
            spent,
            parent: None,
            far,
        })
    }

    async fn run(self, once: Option<FarOnce>) -> Result<TaskReply, Error> {
        // As they are after their way through bytes: an unordered map may be written in another order.
        let sessions = self.shared.sessions.encode()?;
        let (ended, durable_steps) = match once {
            None => (self.attempt().await, 0),
            Some(mut once) => {
                let ended = once.around(&self.shared.control, pin!(self.attempt())).await?;
                (ended, once.steps())
            }
        };
        let EndedAttempt { result, next_in, .. } = ended;
        let result = match result {
            Ok(Step::Command(command)) if command.parent.is_some() => Ok(Step::Command(command)),
            result => make_edits(&self.shared, self.request, result),
        };
        let index = self.request.index;
        let reply = match (self.shared.control.verdict(index), result) {
            (Some(verdict), _) => self.verdict(verdict)?,
            (None, Ok(step)) => self.done(step)?,
            (None, Err(error)) => {
                let failure = self.failed(error)?;
                match next_in {
                    None => Reply::Failed(failure),
                    Some(wait) => Reply::Again { failure, wait, attempt: self.request.attempt + 1 },
                }
            }
        };
        let changed = self.shared.sessions.changes_since(&sessions)?;
        let sessions = changed.into_iter().map(|(name, bytes)| (name, bytes.0.into())).collect();
        Ok(TaskReply {
            task: self.shared.task_id(self.request),
            attempt: self.request.attempt,
            reply,
            at: micros(self.shared.services.now()),
            sessions,
            spent: self.shared.bounds.spending.since(&self.spent),
            drains: self.shared.bounds.drains.load(Ordering::Acquire),
            durable_steps,
        })
    }

    async fn attempt(&self) -> EndedAttempt {
        if let Some(problem) = &self.far.given_up {
            let error = OwnError(Error::new(Code::WorkerLost, problem.clone()));
            return EndedAttempt { result: Err(error.into()), waits: false, next_in: None };
        }
        let task = Task {
            state: &self.node.state,
            shared: &self.shared,
            request: self.request,
            input: self.input.as_ref(),
            failure: self.failure.as_ref(),
        };
        let limits = task.limits().unwrap_or_default();
        let mut policies = Policies::of_task(limits, self.node.policies.as_deref());
        policies.timeouts.run = policies.timeouts.run.into_iter().chain(self.far.timeout).min();
        if self.far.has_place {
            policies.limit = policies.limit.map(Limit::of_rate);
        }
        let (call, number) = (NodeCall::of(&task), self.request.attempt);
        let spans = Spans::of_call();
        let attempt = attempt_once(&self.node.call, &policies, &call, number, spans.is_some());
        let Some(spans) = spans else { return attempt.await };
        let ended = spans.around(&self.shared.name_of(self.request.node), self.request, attempt).await;
        let waits = self.shared.control.span_end(self.request.index);
        let judged = || ended.result.as_ref().map_or_else(|error| Err(code_of(error)), |_| Ok("done"));
        spans.end_task(self.request.index, waits.unwrap_or_else(judged));
        ended
    }

    fn verdict(&self, verdict: TaskVerdict) -> Result<Reply, Error> {
        Ok(match verdict {
            TaskVerdict::Waits(asks) => {
                let refused: Vec<_> =
                    asks.requests.iter().map(|one| asks.refused(one).map(str::to_owned)).collect();
                let questions =
                    asks.requests.into_iter().map(|one| (one.spot, one.value, one.schema, one.until));
                if refused.iter().any(Option::is_some) {
                    let questions: Vec<QuestionOrRefusal> = questions.zip(refused).collect();
                    Reply::RefusesAnswers(to_bytes(&questions)?.into())
                } else {
                    Reply::Waits(to_bytes(&questions.collect::<Vec<Question>>())?.into())
                }
            }
            TaskVerdict::Refused(Refusal { n, problem, asked }) => {
                Reply::Refused { n, problem, schema: asked.and_then(|asked| asked.schema) }
            }
            TaskVerdict::Unaskable(why) => Reply::Failed(failure_bytes(&why.error(), &[])?),
            TaskVerdict::Inside(_) => {
                let problem = "a subgraph ran inside a task that a host runs";
                Reply::Failed(failure_bytes(&Error::new(Code::Host, problem), &[])?)
            }
        })
    }

    fn done(&self, step: Step<AnyState>) -> Result<Reply, Error> {
        let step = match step {
            Step::Command(mut command) if command.parent.is_some() => {
                let to = command.parent.take().map(|to| *to).unwrap_or_default();
                return self.leaves(&to, &command.targets);
            }
            step => step,
        };
        let step = match (step, &self.driver) {
            (Step::Update(update), Some(driver)) => {
                Step::Update(driver.named_output(&self.shared.name_of(self.request.node), update))
            }
            (step, _) => step,
        };
        let mut step = StoredStep::of_step(step, &self.codec, &self.core.schema)?;
        step.edits = self.node.desk.take_edits(&self.shared, self.request);
        Ok(Reply::Done(step.to_bytes()?.into()))
    }

    /// The reply of a node that leaves its graph. The graph around it is on the path of the call.
    fn leaves(&self, to: &ToParent, targets: &[Goto]) -> Result<Reply, Error> {
        let Some(encode) = &self.parent else {
            return Ok(Reply::Failed(failure_bytes(&self.cannot_leave(), &[])?));
        };
        let encoded = to.update.as_deref().map(|update| encode(update));
        let foreign = matches!(encoded, Some(None)).then(|| to.update_type.to_string());
        let step = StoredStep::of_parent_command(encoded.flatten().transpose()?, targets)?;
        Ok(Reply::Leaves { step: step.to_bytes()?.into(), foreign })
    }

    fn cannot_leave(&self) -> Error {
        if !self.is_in_subgraph {
            return no_parent();
        }
        let problem = "a subgraph with a host of its own cannot be left with `Command::parent`: give the host to the graph \
             around it";
        Error::new(Code::ParentCommand, problem)
    }

    fn failed(&self, error: BoxError) -> Result<Blob, Error> {
        let keeps = self.core.entry(self.request.node).map_or(&[][..], |node| &node.keeps);
        failure_bytes(&node_error(error), keeps)
    }
}

fn failure_bytes(error: &Error, keeps: &[KeptError]) -> Result<Blob, Error> {
    Ok(to_bytes(&Failure::of("", error, keeps))?.into())
}

fn decode_state(codec: &Codec, schema: &AnySchema, operations: &[u8]) -> Result<AnyState, Error> {
    let damaged =
        |problem: String| Error::new(Code::Host, format!("the state of a task call is damaged: {problem}"));
    let mut folded = Folded::default();
    folded.apply(operations, None).map_err(|error| damaged(error.to_string()))?;
    let mut state = schema.initial();
    for (at, _) in schema.channels().iter().enumerate() {
        if let FieldValue::Bytes(value) = folded.value(at).map_err(|error| damaged(error.to_string()))? {
            (codec.restore_channel)(&mut state, schema, at, &value)?;
        }
    }
    Ok(state)
}
