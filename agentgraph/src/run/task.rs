//! Running a single task: the remote side of a host.

use std::future::IntoFuture;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;

use super::compiled::CompiledGraph;
use super::driven::FarSide;
use crate::context::edits::{Desk, make_edits};
use crate::context::{
    Call, CallMethod, Control, OnceStorage, Refusal, RunShared, Spending, TaskRequest, TaskVerdict,
    ValuesByType, VisibleEdits,
};
use crate::engine::executor::node_error;
use crate::engine::host::{LocalRunner, Question, Reply, TaskCall, TaskReply, TaskRunner, damaged};
use crate::engine::spans::Spans;
use crate::engine::stored::{StoredStep, from_bytes, to_bytes};
use crate::error::{Code, Error};
use crate::extract::Task;
use crate::graph::run_graph::RunGraph;
use crate::node::error_code::code_of;
use crate::policy::{CatchPanic, Heartbeats};
use crate::record::codec::Codec;
use crate::record::header::Header;
use crate::session::Sessions;
use crate::state::{State, StoredState};
use crate::step::InputValue;
use agentgraph_checkpoint::fold::{Folded, Value as FieldValue};

/// # As the far side of a host
impl<S: StoredState> CompiledGraph<S> {
    /// Runs one task that a [`Host`](crate::host::Host) has sent, with the node's layers and policies. This
    /// is the remote side of a host; the graph must have the node that the call names.
    ///
    /// Channels that are never stored have their initial values here, there are no sessions, and events are
    /// dropped.
    ///
    /// # Errors
    /// If the graph has no such node, or the call's bytes do not fit the graph. A failing node is a reply,
    /// not an error.
    pub fn run_task(&self, call: TaskCall) -> TaskRun<'_, S> {
        TaskRun { graph: self, call, context: None }
    }
}

/// A task to be run, made by [`CompiledGraph::run_task`]: pass it contexts, then await it.
#[must_use = "a task does nothing until it is awaited"]
pub struct TaskRun<'a, S: State> {
    graph: &'a CompiledGraph<S>,
    call: TaskCall,
    context: Option<Box<ValuesByType>>,
}

impl<S: StoredState> TaskRun<'_, S> {
    /// Passes a value to the node, which takes it as a [`CallContext<T>`](crate::node::CallContext). The
    /// values of the call itself stay in its process.
    ///
    /// ```
    /// use agentgraph::BoxError;
    /// use agentgraph::host::{Host, TaskCall, TaskReply};
    /// use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
        self.context.get_or_insert_default().insert(value);
        self
    }

    /// Uses what the far side of a driven run gives to its tasks.
    pub(super) fn on(mut self, far: FarSide) -> Self {
        self.context = far.context.or(self.context);
        self
    }

    async fn run(self) -> Result<TaskReply, Error> {
        let TaskRun { graph, call, context } = self;
        let mut gone = Vec::new();
        let header = Header { overlay: call.edits, ..Header::default() };
        let core = &RunGraph::restore(&graph.core, &header, &mut gone);
        let node = core.id(&call.node).filter(|_| gone.is_empty()).ok_or_else(|| {
            gone.push(format!("node `{}`", call.node));
            let problem = format!("a host asked for {}, which this graph does not have", gone.join(", "));
            Error::new(Code::GraphChanged, problem)
        })?;
        let kept = call.kept.iter().filter_map(|name| core.id(name)).collect();
        let visible =
            VisibleEdits { overlay: core.overlay().map(Arc::clone), kept: Arc::new(kept), desk: None };
        let state = Arc::new(decode_state::<S>(&core.schema, &call.state)?);
        let failure = call.failure.map(Arc::new);
        let handles = failure.is_some();
        let request = TaskRequest { step: call.step, node, index: 0, attempt: 1, handles };
        let control = Control::of(false, OnceStorage::Host);
        control.begin_step(call.step);
        if !call.asked.is_empty() {
            let damaged = |error| damaged("a task call", "what it asked", &error);
            control.recall(0, from_bytes(&call.asked).map_err(damaged)?, Vec::new());
        }
        let shared = Arc::new(RunShared {
            graph: Arc::clone(&graph.shared),
            run: call.run,
            thread: call.thread.map(Arc::from),
            call: Call::new(CallMethod::RunTask, context),
            control,
            sessions: Sessions::default(),
            sink: None,
            hears_custom: false,
            hears_messages: false,
            max_supersteps: call.max_supersteps,
            services: Arc::clone(&graph.shared.services),
            spending: Spending::default(),
            drains: AtomicBool::new(false),
            beats: Heartbeats::default(),
            outer: None,
            nest: None,
            desk: Arc::clone(&graph.core) as Arc<dyn Desk>,
            stores_edits: true,
            visible: Mutex::new(visible),
        });
        let input = call.input.map(|bytes| InputValue::stored(bytes, call.limits));
        let input = input.as_ref();
        let failure = failure.as_ref();
        let task = Task { state: &state, shared: &shared, request, input, failure };
        let spans = Spans::of_call();
        let result = CatchPanic::new(|| match &spans {
            None => LocalRunner.call(core, &task),
            Some(spans) => spans.call(&LocalRunner, core, &task),
        });
        let result = make_edits(&shared, request, result.await);
        if let Some(spans) = &spans {
            let waits = shared.control.span_end(0);
            spans.end_task(
                0,
                waits.unwrap_or_else(|| {
                    result.as_ref().map_or_else(|error| Err(code_of(error)), |_| Ok("done"))
                }),
            );
        }
        let reply = match (shared.control.verdict(0), result) {
            (Some(TaskVerdict::Waits(asks)), _) => {
                let questions = asks.requests.into_iter().map(|one| (one.spot, one.value, one.schema));
                Reply::Waits(to_bytes(&questions.collect::<Vec<Question>>())?)
            }
            (Some(TaskVerdict::Refused(Refusal { n, problem, asked })), _) => {
                Reply::Refused { n, problem, schema: asked.and_then(|asked| asked.schema) }
            }
            (Some(TaskVerdict::Unaskable(why)), _) => {
                let error = why.error();
                Reply::Failed { code: error.code().as_str().to_owned(), problem: error.message().to_owned() }
            }
            (Some(TaskVerdict::Inside(_)), _) => {
                let problem =
                    "a subgraph runs where the graph around it runs, and not where a host runs single tasks";
                Reply::Failed { code: Code::Host.as_str().to_owned(), problem: problem.to_owned() }
            }
            (None, Err(error)) => {
                let error = node_error(error);
                Reply::Failed { code: error.code().as_str().to_owned(), problem: error.message().to_owned() }
            }
            (None, Ok(step)) => {
                let codec = Codec::<S>::of(core.migrations.version);
                let mut step = StoredStep::of_step(step, &codec, &core.schema)?;
                step.edits.extend(shared.control.take_edits(0).into_iter().map(|one| one.edit));
                Reply::Done(step.to_bytes()?)
            }
        };
        Ok(TaskReply { reply, attempts: shared.control.attempts(0) })
    }
}

impl<'a, S: StoredState> IntoFuture for TaskRun<'a, S> {
    type Output = Result<TaskReply, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

fn decode_state<S: StoredState>(schema: &S::Schema, operations: &[u8]) -> Result<S, Error> {
    let damaged =
        |problem: String| Error::new(Code::Host, format!("the state of a task call is damaged: {problem}"));
    let mut folded = Folded::default();
    folded.apply(operations, None).map_err(|error| damaged(error.to_string()))?;
    let mut state = S::initial(schema);
    for (at, _) in S::channels(schema).iter().enumerate() {
        if let FieldValue::Bytes(value) = folded.value(at).map_err(|error| damaged(error.to_string()))? {
            state.restore_channel(schema, at, &value)?;
        }
    }
    Ok(state)
}
