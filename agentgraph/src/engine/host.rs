//! Hosts: the places where tasks run.
//!
//! The loop is generic over a [`TaskRunner`], so that in process a task is the plain call of its node. Users
//! who run tasks elsewhere implement [`Host`], which is object-safe and exchanges bytes; one adapter connects
//! it to the loop. A [`TaskCall`] contains only names and bytes, no closure, so any process that built the
//! same graph can run it with [`CompiledGraph::run_task`](crate::CompiledGraph::run_task).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{Interrupted, RunShared, TaskRequest};
use crate::engine::Loop;
use crate::engine::stored::{StoredStep, from_bytes, to_bytes};
use crate::error::{BoxError, Code, Error, OwnError};
use crate::extract::Task;
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::node::NodeFuture;
use crate::policy;
use crate::policy::{Policies, call_with_policies, invoke_in_span};
use crate::record::codec::Codec;
use crate::record::header::StoredLimits;
use crate::state::State;
use crate::step::InputValue;
use crate::words::{GraphEdit, Spot};
use agentgraph_checkpoint::delta::DeltaWriter;
use agentgraph_checkpoint::{CheckpointId, RunId};

/// Calls tasks. The loop polls the future in place and catches panics, here or in the future.
pub(crate) trait TaskRunner<S: State>: Send + Sync {
    fn call(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S>;

    /// [`call`](Self::call) in a call that is traced: attempts in this process have spans, inside the current
    /// one.
    fn call_in_spans(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S> {
        self.call(core, task)
    }

    /// The run, if its tasks run in this process.
    fn as_local(run: &mut Loop<S, Self>) -> Option<&mut Loop<S, LocalRunner>>
    where
        Self: Sized,
    {
        let _ = run;
        None
    }
}

/// Runs a task in this process: a plain call.
pub(crate) struct LocalRunner;

impl<S: State> TaskRunner<S> for LocalRunner {
    #[inline]
    fn call(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S> {
        call(core, task, false)
    }

    fn call_in_spans(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S> {
        call(core, task, true)
    }

    fn as_local(run: &mut Loop<S, Self>) -> Option<&mut Loop<S, LocalRunner>> {
        Some(run)
    }
}

#[inline]
fn call<S: State>(core: &RunGraph<S>, task: &Task<'_, S>, traced: bool) -> NodeFuture<S> {
    let Some(node) = core.entry(task.request.node) else { return missing_node(core, task.request.node) };
    match (&node.policies, task.limits()) {
        (None, None) if traced => invoke_in_span(&*node.call, task),
        (None, None) => policy::invoke(&*node.call, task),
        (Some(policies), None) => {
            call_with_policies(Arc::clone(&node.call), Arc::clone(policies), task, traced)
        }
        (policies, Some(limits)) => {
            let policies = Policies::of_task(limits, policies.as_deref());
            call_with_policies(Arc::clone(&node.call), Arc::new(policies), task, traced)
        }
    }
}

/// The error for a node that is neither in the graph nor temporary. Such a node is never planned.
#[cold]
fn missing_node<S: State>(core: &RunGraph<S>, node: u32) -> NodeFuture<S> {
    let problem = format!("there is no node `{}` to run", core.name(node));
    Box::pin(std::future::ready(Err(OwnError(Error::new(Code::UnknownTarget, problem)).into())))
}

/// A place that runs tasks: another process, another machine, a durable engine.
///
/// An implementation carries the [`TaskCall`] to a process with the graph, runs it there with
/// [`CompiledGraph::run_task`](crate::CompiledGraph::run_task), and brings the [`TaskReply`] back. Both are
/// plain serde values.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Runs one task. An error here means that the host failed, not the node; the run fails with
    /// [`Code::Host`] and can continue by `proceed()`.
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError>;
}

/// One task, as bytes and names. It contains the whole state, secret channels too, since the node reads them:
/// send it only to places that may know them, over an encrypted channel.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskCall {
    /// The run it belongs to.
    pub run: RunId,
    /// The thread, if the run has one.
    pub thread: Option<String>,
    /// The superstep, counted from 1 within the call of `invoke`, `resume` or `proceed`.
    pub step: u64,
    /// The limit of supersteps.
    pub max_supersteps: u64,
    /// The node.
    pub node: String,
    /// The state it reads, as the operations of a full record.
    pub(crate) state: Vec<u8>,
    /// The input of a dispatch.
    pub(crate) input: Option<Vec<u8>>,
    /// The time limits of a dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<StoredLimits>,
    /// The failure that it handles.
    #[serde(default)]
    pub(crate) failure: Option<Failure>,
    /// Its questions so far, with the answers, as MessagePack: another format may change the type of a
    /// number, and with it the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<u8>,
    /// The temporary edits of the run's graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) edits: Vec<GraphEdit>,
    /// The nodes whose last output could be used again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<String>,
}

/// Omits the state, which may contain secrets.
impl fmt::Debug for TaskCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskCall { run, thread, step, max_supersteps, node, edits, kept, .. } = self;
        let mut parts = out.debug_struct("TaskCall");
        parts.field("run", run).field("thread", thread).field("step", step);
        parts.field("max_supersteps", max_supersteps).field("node", node).field("edits", edits);
        parts.field("kept", kept).finish_non_exhaustive()
    }
}

/// The end of a task on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReply {
    pub(crate) reply: Reply,
    /// The number of attempts there.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub(crate) attempts: u32,
}

fn first() -> u32 {
    1
}

fn is_first(attempts: &u32) -> bool {
    *attempts == 1
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done(Vec<u8>),
    /// The questions without an answer, as MessagePack.
    Waits(Vec<u8>),
    /// The n-th answer was refused, with the schema that the task asks with now.
    Refused {
        n: u32,
        problem: String,
        schema: Option<Value>,
    },
    Failed {
        code: String,
        problem: String,
    },
}

/// A node that failed on a host; only its text came back.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct RemoteFailure(String);

/// A question of a task on a host: its spot, its value, and its schema.
pub(crate) type Question = (Spot, Value, Option<Value>);

/// Records the questions of a task on a host. Their ids and the answers that they void are computed here.
fn take_questions(
    shared: &RunShared,
    request: TaskRequest,
    questions: &[u8],
) -> Result<Interrupted, OwnError> {
    let questions: Vec<Question> =
        from_bytes(questions).map_err(|error| damaged("a task reply", "what it asks", &error))?;
    if questions.is_empty() {
        let problem = "a host reported a waiting task without an interrupt";
        return Err(OwnError(Error::new(Code::Host, problem)));
    }
    for (spot, value, schema) in questions {
        shared.control.put_question(request, spot, value, schema);
    }
    Ok(Interrupted)
}

pub(crate) fn damaged(whose: &str, part: &str, error: &Error) -> Error {
    Error::new(Code::Host, format!("{part} in {whose} is damaged: {}", error.message()))
}

/// Connects a [`Host`] to the loop.
pub(crate) struct HostRunner<S: State> {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) codec: Codec<S>,
}

impl<S: State> Clone for HostRunner<S> {
    fn clone(&self) -> Self {
        HostRunner { host: Arc::clone(&self.host), codec: self.codec }
    }
}

impl<S: State> TaskRunner<S> for HostRunner<S> {
    fn call(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S> {
        if core.entry(task.request.node).is_some_and(|node| node.graph.is_some()) {
            return LocalRunner.call(core, task);
        }
        self.send(core, task)
    }

    fn call_in_spans(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S> {
        if core.entry(task.request.node).is_some_and(|node| node.graph.is_some()) {
            return LocalRunner.call_in_spans(core, task);
        }
        self.send(core, task)
    }
}

impl<S: State> HostRunner<S> {
    /// Sends a task to the host, and reads the reply.
    fn send(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> NodeFuture<S> {
        let call = self.task_call(core, task);
        let host = Arc::clone(&self.host);
        let codec = self.codec;
        let schema = core.schema.clone();
        let shared = Arc::clone(task.shared);
        let request = task.request;
        Box::pin(async move {
            let call = call.map_err(OwnError)?;
            let reply = host.run(call).await.map_err(|error| {
                let problem = format!("the host could not run the task: {error}");
                OwnError(Error::new(Code::Host, problem).with_source(error))
            })?;
            if reply.attempts > 1 {
                shared.control.note_attempts(request.index, reply.attempts);
            }
            match reply.reply {
                Reply::Done(bytes) => {
                    let mut step = StoredStep::from_bytes(&bytes).map_err(unreadable_reply)?;
                    for edit in std::mem::take(&mut step.edits) {
                        shared.submit(request, edit, None)?;
                    }
                    Ok(step.into_step(&codec, &schema).map_err(OwnError)?)
                }
                Reply::Failed { code, problem } => Err(OwnError(remote_error(&code, problem)).into()),
                Reply::Waits(questions) => Err(take_questions(&shared, request, &questions)?.into()),
                Reply::Refused { n, problem, schema } => {
                    if shared.control.asked(request.index).iter().all(|asked| asked.n != n) {
                        let problem = "a host refused an answer that its task was not given";
                        return Err(OwnError(Error::new(Code::Host, problem)).into());
                    }
                    Err(shared.control.put_refusal(request, n, problem, schema).into())
                }
            }
        })
    }
}

/// The error for a host's reply that is no step. It does not mean that stored data is damaged.
fn unreadable_reply(error: Error) -> OwnError {
    let problem = format!("the host's reply cannot be read: {}", error.message());
    OwnError(Error::new(Code::Host, problem).with_source(error))
}

/// The error of a node that failed on a host, which may know codes that this process does not.
fn remote_error(code: &str, problem: String) -> Error {
    let code = Code::ALL.iter().copied().find(|known| known.as_str() == code).unwrap_or(Code::NodeFailed);
    Error::new(code, problem.clone()).with_source(RemoteFailure(problem))
}

impl<S: State> HostRunner<S> {
    fn task_call(&self, core: &RunGraph<S>, task: &Task<'_, S>) -> Result<TaskCall, Error> {
        let channels = S::channels(&core.schema);
        let mut state = DeltaWriter::new(channels.len());
        state.begin(CheckpointId::default());
        for (at, _) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
            (self.codec.record_channel)(task.state, &core.schema, at, &mut state)?;
        }
        let asked = task.shared.control.asked(task.request.index);
        let kept = task.shared.visible().kept;
        Ok(TaskCall {
            run: task.shared.run,
            thread: task.shared.thread.as_deref().map(str::to_owned),
            step: task.request.step,
            max_supersteps: task.shared.max_supersteps,
            node: core.name(task.request.node).to_owned(),
            state: state.bytes().to_vec(),
            input: task.input.map(InputValue::encode).transpose()?,
            limits: task.input.and_then(InputValue::stored_limits),
            failure: task.failure.map(|failure| Failure::clone(failure)),
            asked: if asked.is_empty() { Vec::new() } else { to_bytes(&asked)? },
            edits: core.log().to_vec(),
            kept: kept.iter().map(|node| core.name(*node).to_owned()).collect(),
        })
    }
}
