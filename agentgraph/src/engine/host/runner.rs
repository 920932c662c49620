//! [`HostRunner`]: sends the attempts of tasks to a host.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use serde_json::Value;

use super::exit::{arrived, leaving};
use crate::context::host::{
    EncodedState, HeldState, Host, Reply, TaskCall, TaskDetails, TaskLimit, TaskReply, TaskState,
};
use crate::context::{Interrupted, RunShared, TaskRequest, Units, VisibleEdits};
use crate::engine::stored::{StoredStep, from_bytes};
use crate::erased::{NodeFuture, NodeResult};
use crate::error::{BoxError, Code, Error, OwnError};
use crate::extract::Task;
use crate::failure::{Failure, FarError};
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore};
use crate::policy::Limit;
use crate::record::blob::Blob;
use crate::record::bytes::Bytes;
use crate::record::codec::Codec;
use crate::session::{SessionChange, StoredSessions};
use crate::state::Channel;
use crate::step::InputValue;
use crate::typed::{AnySchema, AnyState};
use crate::words::{AnswerState, AskedQuestion, Spot};
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::canonical::Canonical;
use agentgraph_checkpoint::engine::Lock;

/// Connects a [`Host`] to the loop of one run.
pub(crate) struct HostRunner {
    host: Arc<dyn Host>,
    codec: Codec,
    /// The newest state that was encoded, for the other tasks that read it.
    encoded: Lock<Option<Encoded>>,
    /// The newest state that calls hold, if there are such calls.
    held: Lock<Weak<StateHere>>,
}

/// A state that the calls of its tasks hold as it is. It goes before the merge, as each snapshot of a task
/// does.
pub(crate) struct StateHere {
    state: Arc<AnyState>,
    /// The graph whose state it is.
    core: Arc<GraphCore>,
    codec: Codec,
    encoded: OnceLock<EncodedState>,
}

/// A state and its bytes. The weak reference proves that the state is still the same object, and unchanged:
/// a merge takes a state with weak references to another place. It does not keep the state from being taken
/// without a copy.
struct Encoded {
    state: Weak<AnyState>,
    bytes: EncodedState,
}

/// A runner for another run on the same host.
impl Clone for HostRunner {
    fn clone(&self) -> Self {
        HostRunner::new(Arc::clone(&self.host), self.codec)
    }
}

impl HostRunner {
    /// Sends a task. A graph runs where the loop runs: its own tasks go to the host.
    pub(super) fn call(
        &self,
        core: &RunGraph,
        task: &Task<'_, AnyState>,
        traced: bool,
    ) -> NodeFuture<AnyState> {
        match core.entry(task.request.node) {
            Some(node) if node.graph.is_some() => self.of_graph(core, super::call(core, task, traced)),
            _ => self.send(core, task),
        }
    }

    pub(crate) fn new(host: Arc<dyn Host>, codec: Codec) -> Self {
        HostRunner { host, codec, encoded: Lock::default(), held: Lock::default() }
    }

    /// The host, for the runs inside its tasks.
    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    pub(crate) fn codec(&self) -> &Codec {
        &self.codec
    }

    /// The call of a subgraph's node, which runs here. A task in it may have left it with an update for this
    /// graph.
    fn of_graph(&self, core: &RunGraph, call: NodeFuture<AnyState>) -> NodeFuture<AnyState> {
        let (codec, schema) = (self.codec, core.schema.clone());
        Box::pin(async move { arrived(call.await, &codec, &schema) })
    }

    /// Sends a task to the host, attempt after attempt.
    fn send(&self, core: &RunGraph, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
        let node = core.entry(task.request.node);
        let policies = node.and_then(|node| node.policies.as_deref());
        let sent = SentNode {
            name: core.name(task.request.node),
            remote: node.is_some_and(|node| node.remote),
            limit: policies.and_then(|policies| policies.limit.as_ref()),
            is_retried: policies.is_some_and(|policies| !policies.retry.is_empty()),
            in_superstep: core.rules.discipline == Discipline::Superstep,
        };
        self.send_node(&core.schema, task, sent, || {
            let kept = task.shared.visible().kept;
            let mut kept: Vec<String> = kept.iter().map(|node| core.name(*node).to_owned()).collect();
            // Equal calls have equal bytes.
            kept.sort_unstable();
            let details = TaskDetails { edits: core.log().to_vec(), kept, ..TaskDetails::default() };
            Ok((self.task_state(core, task.state)?, details))
        })
    }

    /// Sends a node to the host, with the state that it reads and what its graph adds to the call.
    pub(crate) fn send_node(
        &self,
        schema: &AnySchema,
        task: &Task<'_, AnyState>,
        node: SentNode<'_>,
        parts: impl FnOnce() -> Result<(TaskState, TaskDetails), Error>,
    ) -> NodeFuture<AnyState> {
        let sent = SentTask {
            host: Arc::clone(&self.host),
            codec: self.codec,
            schema: schema.clone(),
            shared: Arc::clone(task.shared),
            request: task.request,
            seen: task.shared.visible(),
            node: node.name.to_owned(),
            is_retried: node.is_retried,
            in_superstep: node.in_superstep,
        };
        let sessions = task.shared.sessions.encode();
        let call = sessions.and_then(|sessions| {
            let (state, details) = parts()?;
            let details = TaskDetails { sessions: sessions.clone(), ..details };
            Ok((task_call(task, node, state, details)?, sessions))
        });
        Box::pin(async move {
            let (call, sessions) = call.map_err(OwnError)?;
            sent.attempts(call, sessions).await
        })
    }

    /// What a task reads: the state itself if the host takes it, and if another process would see the same.
    /// One with channels that are never stored would not.
    fn task_state(&self, core: &RunGraph, state: &Arc<AnyState>) -> Result<TaskState, Error> {
        if !self.host.takes_held_states() || !core.schema.channels().iter().all(Channel::is_stored) {
            return Ok(TaskState::Encoded(self.encoded(core, state)?));
        }
        let mut newest = self.held.lock();
        if let Some(held) = newest.upgrade().filter(|held| Arc::ptr_eq(&held.state, state)) {
            return Ok(TaskState::Held(held));
        }
        let held = Arc::new(StateHere {
            state: Arc::clone(state),
            core: Arc::clone(core.compiled()),
            codec: self.codec,
            encoded: OnceLock::new(),
        });
        *newest = Arc::downgrade(&held);
        Ok(TaskState::Held(held))
    }

    /// The state as bytes: encoded once for all tasks that read it.
    fn encoded(&self, core: &RunGraph, state: &Arc<AnyState>) -> Result<EncodedState, Error> {
        let mut newest = self.encoded.lock();
        if let Some(encoded) = newest.as_ref().filter(|encoded| encoded.is_of(state)) {
            return Ok(encoded.bytes.clone());
        }
        let bytes = EncodedState::new(self.codec.whole(&core.schema, state.seen())?.bytes());
        *newest = Some(Encoded { state: Arc::downgrade(state), bytes: bytes.clone() });
        Ok(bytes)
    }
}

/// A node, as its call describes it.
pub(crate) struct SentNode<'a> {
    pub(crate) name: &'a str,
    pub(crate) remote: bool,
    pub(crate) limit: Option<&'a Limit>,
    /// Whether it has a retry policy.
    pub(crate) is_retried: bool,
    /// Whether it runs in a superstep, whose tasks are merged together.
    pub(crate) in_superstep: bool,
}

fn task_call(
    task: &Task<'_, AnyState>,
    node: SentNode<'_>,
    state: TaskState,
    details: TaskDetails,
) -> Result<TaskCall, Error> {
    let Task { shared, request, .. } = *task;
    let (spent, budget) = shared.root().bounds.spending.known();
    let details = TaskDetails {
        input: task.input.map(InputValue::encode).transpose()?.map(Bytes),
        limits: task.input.and_then(InputValue::stored_limits),
        failure: task.failure.map(|failure| Failure::clone(failure)),
        asked: shared.control.asked(request.index),
        added: shared.added_on_path(),
        spent,
        budget,
        ..details
    };
    let mut call = TaskCall::new(shared, request, node.name, state, &details)?;
    (call.remote, call.limit) = (node.remote, node.limit.map(TaskLimit::from));
    Ok(call)
}

impl StateHere {
    /// The state, if it is one of this graph.
    pub(crate) fn state_of(&self, core: &Arc<GraphCore>) -> Option<&Arc<AnyState>> {
        Arc::ptr_eq(&self.core, core).then_some(&self.state)
    }
}

impl HeldState for StateHere {
    fn encoded(&self) -> Result<EncodedState, Error> {
        if let Some(encoded) = self.encoded.get() {
            return Ok(encoded.clone());
        }
        // As the run itself would have encoded it.
        let _canonical = Canonical::begin();
        let encoded = EncodedState::new(self.codec.whole(&self.core.schema, self.state.seen())?.bytes());
        Ok(self.encoded.get_or_init(|| encoded).clone())
    }
}

impl Encoded {
    fn is_of(&self, state: &Arc<AnyState>) -> bool {
        self.state.upgrade().is_some_and(|same| Arc::ptr_eq(&same, state))
    }
}

/// A task on its way: everything that its attempts need.
struct SentTask {
    host: Arc<dyn Host>,
    codec: Codec,
    schema: AnySchema,
    shared: Arc<RunShared>,
    request: TaskRequest,
    node: String,
    /// The graph that the task sees.
    seen: VisibleEdits,
    /// Whether its node has a retry policy.
    is_retried: bool,
    /// Whether the tasks of its step are merged together.
    in_superstep: bool,
}

impl SentTask {
    /// One attempt after the other, as [`call_with_policies`](crate::policy::call_with_policies) makes them
    /// in this process. The host judges each failure, since it has the error; the waits are those of this
    /// run.
    async fn attempts(self, mut call: TaskCall, mut sessions: StoredSessions) -> NodeResult<AnyState> {
        loop {
            let reply = self.host.run(call.clone()).await.map_err(|error| {
                let problem = format!("the host could not run the task: {error}");
                OwnError(Error::new(Code::Host, problem).with_source(error))
            })?;
            // A mixed-up reply would write the update of one task in the name of another.
            if !reply.answers(&call) {
                return Err(OwnError(foreign_reply(&reply, &call)).into());
            }
            if !reply.sessions.is_empty() {
                let by = self.session_change(call.task);
                self.shared.sessions.adopt(&sessions, &reply.sessions, &by).map_err(OwnError)?;
            }
            self.count(reply.spent, reply.drains);
            let (failure, next) = match reply.reply {
                Reply::Failed(failure) => (failure, None),
                Reply::Again { failure, wait, attempt } => (failure, Some((wait, attempt))),
                other => return self.read(other),
            };
            let request = TaskRequest { attempt: call.attempt, ..self.request };
            let error = BoxError::from(OwnError(far_error(&failure).map_err(OwnError)?));
            let sink = self.shared.audience.sink.as_ref();
            if let Some(sink) = sink.filter(|_| self.is_retried || next.is_some()) {
                sink.attempt_failed(request, &error, next.map(|(wait, _)| wait));
            }
            let Some((wait, attempt)) = next else { return Err(error) };
            self.shared.services.sleep(wait).await;
            // Read after the wait, in which other tasks may have changed the sessions.
            let now = self.shared.sessions.encode().map_err(OwnError)?;
            let (spent, _) = self.shared.root().bounds.spending.known();
            call = call.again(attempt, &now, spent).map_err(OwnError)?;
            sessions = now;
            self.shared.control.note_attempts(request.index, attempt);
            if let Some(sink) = sink {
                sink.attempt_started(TaskRequest { attempt, ..request });
            }
        }
    }

    /// Counts for the run what an attempt has spent, and notes its wish to drain the run.
    fn count(&self, spent: Units, drains: bool) {
        let run = self.shared.root();
        for (unit, amount) in spent {
            run.bounds.spending.spend(&unit, amount);
        }
        if drains {
            run.bounds.drains.store(true, Ordering::Release);
        }
    }

    /// A change of a session by this task.
    fn session_change(&self, task: TaskId) -> SessionChange {
        let step = self.in_superstep.then(|| (self.shared.namespace().to_owned(), self.request.step));
        SessionChange { task, node: self.node.clone(), step }
    }

    fn read(&self, reply: Reply) -> NodeResult<AnyState> {
        let Self { shared, request, .. } = self;
        match reply {
            Reply::Done(bytes) => {
                let mut step = StoredStep::from_bytes(&bytes.0).map_err(unreadable_reply)?;
                for edit in std::mem::take(&mut step.edits) {
                    shared.adopt(&self.seen, *request, edit)?;
                }
                Ok(step.into_step(&self.codec, &self.schema).map_err(OwnError)?)
            }
            Reply::Leaves { step, foreign } => {
                Ok(leaving(StoredStep::from_bytes(&step.0).map_err(unreadable_reply)?, foreign))
            }
            Reply::Waits(questions) => {
                let questions: Vec<Question> = from_bytes(&questions.0).map_err(unreadable_reply)?;
                let questions = questions.into_iter().map(|question| (question, None)).collect();
                Err(take_questions(shared, *request, questions)?.into())
            }
            Reply::RefusesAnswers(questions) => {
                let questions = from_bytes(&questions.0).map_err(unreadable_reply)?;
                Err(take_questions(shared, *request, questions)?.into())
            }
            Reply::Refused { n, problem, schema } => {
                if shared.control.asked(request.index).iter().all(|asked| asked.n != n) {
                    return Err(refused_nothing().into());
                }
                Err(shared.control.put_refusal(*request, n, problem, schema).into())
            }
            Reply::Failed(failure) | Reply::Again { failure, .. } => {
                Err(OwnError(far_error(&failure).map_err(OwnError)?).into())
            }
        }
    }
}

/// The error for a reply that belongs to another call.
fn foreign_reply(reply: &TaskReply, call: &TaskCall) -> Error {
    let problem = format!(
        "the host gave the reply of another task or attempt: attempt {} of task {}, and not attempt {} of task {}",
        reply.attempt, reply.task, call.attempt, call.task
    );
    Error::new(Code::Host, problem)
}

/// A question of a task on a host: its spot, its value, its schema, and the end of a sleep, in microseconds
/// since 1970.
pub(crate) type Question = (Spot, Value, Option<Value>, Option<u64>);

/// A question, and why the task refused the answer to it, if it did.
pub(crate) type QuestionOrRefusal = (Question, Option<String>);

/// Records the questions of a task on a host, and its refusals. Ids and voided answers are computed here.
fn take_questions(
    shared: &RunShared,
    request: TaskRequest,
    questions: Vec<QuestionOrRefusal>,
) -> Result<Interrupted, OwnError> {
    if questions.is_empty() {
        let problem = "a host reported a waiting task without an interrupt";
        return Err(OwnError(Error::new(Code::Host, problem)));
    }
    for ((spot, value, schema, until), refused) in questions {
        let Some(reason) = refused else {
            shared.control.put_question(request, spot, value, schema, until);
            continue;
        };
        let given =
            |asked: &AskedQuestion| asked.spot == spot && matches!(asked.answer, AnswerState::With(_));
        if !shared.control.asked(request.index).iter().any(given) {
            return Err(refused_nothing());
        }
        shared.control.put_rejection(request, Some(spot), reason);
    }
    Ok(Interrupted)
}

fn refused_nothing() -> OwnError {
    OwnError(Error::new(Code::Host, "a host refused an answer that its task was not given"))
}

/// The error for a host's reply that cannot be read. It does not mean that stored data is damaged.
fn unreadable_reply(error: Error) -> OwnError {
    let problem = format!("the host's reply cannot be read: {}", error.message());
    OwnError(Error::new(Code::Host, problem).with_source(error))
}

/// The error of a node that failed on a host, which may know codes that this process does not.
fn far_error(failure: &Blob) -> Result<Error, Error> {
    let failure: Failure = from_bytes(&failure.0).map_err(|error| unreadable_reply(error).0)?;
    Ok(Error::new(failure.code(), failure.message().to_owned()).with_source(FarError::of(failure)))
}
