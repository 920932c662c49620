//! [`TaskCall`]: one attempt of a task, as names and bytes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::context::{RunShared, TaskRequest, Units};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::policy::Limit;
use crate::record::blob::Blob;
use crate::record::bytes::Bytes;
use crate::record::header::StoredLimits;
use crate::session::StoredSessions;
use crate::words::{AskedQuestion, GraphEdit};
use agentgraph_checkpoint::{RunId, TaskId, delta};

/// One attempt of a task, as names and bytes. It contains the whole state, secret channels too, since the
/// node reads them: send it only to places that may know them, over an encrypted channel.
///
/// The state is encoded once for all tasks of a superstep, and their calls share the bytes. A host that sends
/// many calls to one place can [take](TaskCall::take_state) the state out, send it once under its
/// [hash](TaskCall::state_hash), and [put](TaskCall::put_state) it back there.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskCall {
    /// The run it belongs to.
    pub run: RunId,
    /// The thread, if the run has one.
    pub thread: Option<String>,
    /// The id of the task: the same in every attempt and every process, so it is the key under which a host
    /// recognises a task that it has run before. See [`Ctx::task_id`](crate::Ctx::task_id).
    pub task: TaskId,
    /// The superstep, counted from 1 within the call of `invoke`, `resume` or `proceed`.
    pub step: u64,
    /// The limit of supersteps.
    pub max_supersteps: u64,
    /// The node.
    pub node: String,
    /// The graph nodes that lead from the graph with the host to the graph in which the node is; empty if
    /// these are the same.
    pub path: Vec<String>,
    /// The namespace of the run that the task belongs to; that of the root is empty.
    pub namespace: String,
    /// The index of the task in its superstep; in a run without supersteps, its number in order of starting.
    pub index: u32,
    /// The attempt under the node's retry policy, counted from 1.
    pub attempt: u32,
    /// Whether the node asks for another process: see [`IntoNode::remote`](crate::IntoNode::remote).
    pub remote: bool,
    /// SHA-256 of the state.
    state_hash: [u8; 32],
    /// The state it reads, as the operations of a full record.
    state: Option<Blob>,
    /// [`TaskDetails`], as MessagePack: another format may change the type of a number in a question or in
    /// the arguments of an edit.
    details: Blob,
    // The last field: in formats without names, one that is left out would move those behind it.
    /// The [limit](crate::policy::Limit) of the node, for a host that keeps it over all of its processes: see
    /// [`FarSide::has_place`](super::FarSide::has_place).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<TaskLimit>,
    #[serde(skip)]
    held: Held,
}

/// A state that a call holds as it is, in the process of its run.
pub(crate) trait HeldState: Any + Send + Sync {
    /// Its bytes, which all calls that hold it share.
    fn encoded(&self) -> Result<EncodedState, Error>;
}

/// The held state of a call. Calls that differ in it alone are equal.
#[derive(Clone, Default)]
struct Held(Option<Arc<dyn HeldState>>);

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What a task reads, on its way into a call.
pub(crate) enum TaskState {
    Encoded(EncodedState),
    Held(Arc<dyn HeldState>),
}

/// The limit of a node: its name, and how many attempts may run at once under that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskLimit {
    /// As [`Limit::name`](crate::policy::Limit::name).
    pub name: String,
    /// The most attempts at once.
    pub most: u64,
}

impl From<&Limit> for TaskLimit {
    fn from(limit: &Limit) -> Self {
        TaskLimit { name: limit.name().to_owned(), most: limit.most() as u64 }
    }
}

/// What a task needs beside its names and its state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TaskDetails {
    /// The input of a dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Bytes>,
    /// The time limits of a dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<StoredLimits>,
    /// The failure that it handles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
    /// Its questions so far, with the answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<AskedQuestion>,
    /// The temporary edits of the graph in which the node is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) edits: Vec<GraphEdit>,
    /// For the temporary nodes of the path: their position in it, and the edit that added the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) added: Vec<(u32, GraphEdit)>,
    /// The nodes whose last output could be used again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<String>,
    /// The sessions of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sessions: StoredSessions,
    /// The units that the run has spent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spent: Units,
    /// The limits of units in the run's budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) budget: Units,
    /// In a pass, the nodes that are done, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) done: Vec<String>,
    /// In a pass, the nodes that run or wait for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) started: Vec<String>,
}

/// A state as bytes, and their hash.
#[derive(Clone)]
pub(crate) struct EncodedState {
    bytes: Arc<[u8]>,
    hash: [u8; 32],
}

impl EncodedState {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        EncodedState { bytes: bytes.into(), hash: hash_of(bytes) }
    }
}

fn details_bytes(node: &str, details: &TaskDetails) -> Result<Blob, Error> {
    let mut bytes = Vec::new();
    delta::encode(&mut bytes, details).map_err(|error| {
        Error::new(Code::Encode, format!("the call of task `{node}` cannot be encoded: {error}"))
    })?;
    Ok(bytes.into())
}

fn hash_of(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

impl TaskCall {
    /// The first attempt of a task.
    pub(crate) fn new(
        shared: &RunShared,
        request: TaskRequest,
        node: &str,
        state: TaskState,
        details: &TaskDetails,
    ) -> Result<Self, Error> {
        let (encoded, held) = match state {
            TaskState::Encoded(state) => (Some(state), None),
            TaskState::Held(state) => (None, Some(state)),
        };
        Ok(TaskCall {
            run: shared.run,
            thread: shared.thread.as_deref().map(str::to_owned),
            task: shared.task_id(request),
            step: request.step,
            max_supersteps: shared.bounds.max_supersteps,
            node: node.to_owned(),
            path: shared.path(),
            namespace: shared.namespace().to_owned(),
            index: request.index,
            attempt: 1,
            remote: false,
            limit: None,
            state_hash: encoded.as_ref().map(|state| state.hash).unwrap_or_default(),
            state: encoded.map(|state| Blob(state.bytes)),
            details: details_bytes(node, details)?,
            held: Held(held),
        })
    }

    /// The same task's next attempt, on the sessions and the spent units as they are now.
    pub(crate) fn again(
        mut self,
        attempt: u32,
        sessions: &StoredSessions,
        spent: Units,
    ) -> Result<Self, Error> {
        self.attempt = attempt;
        let before = self.details()?;
        if before.sessions != *sessions || before.spent != spent {
            let details = TaskDetails { sessions: sessions.clone(), spent, ..before };
            self.details = details_bytes(&self.node, &details)?;
        }
        Ok(self)
    }

    /// Encodes the state that the call [holds](crate::host::Ground::tasks_run_here), so that the call can be
    /// sent to another process. Without a held state nothing changes.
    ///
    /// # Errors
    /// [`Code::Encode`] if the state cannot be encoded.
    pub fn encode_state(&mut self) -> Result<(), Error> {
        let Some(held) = &self.held.0 else { return Ok(()) };
        let EncodedState { bytes, hash } = held.encoded()?;
        (self.state, self.state_hash, self.held) = (Some(Blob(bytes)), hash, Held::default());
        Ok(())
    }

    /// The state that the call holds, if it is of this type.
    pub(crate) fn held<T: HeldState>(&self) -> Option<&T> {
        let held: &dyn Any = &**self.held.0.as_ref()?;
        held.downcast_ref()
    }

    /// The SHA-256 hash of the state. Calls with equal hashes read equal states.
    pub fn state_hash(&self) -> [u8; 32] {
        self.state_hash
    }

    /// The state, unless it was [taken](Self::take_state). The calls of one superstep share it: their `Arc`s
    /// are the same.
    pub fn state(&self) -> Option<&Arc<[u8]>> {
        self.state.as_ref().map(|state| &state.0)
    }

    /// Takes the state out of the call, to be sent apart from it. The call keeps the hash.
    pub fn take_state(&mut self) -> Option<Arc<[u8]>> {
        self.state.take().map(|state| state.0)
    }

    /// Puts the state back.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use agentgraph::BoxError;
    /// use agentgraph::host::{Host, TaskCall, TaskReply};
    /// use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Page { text: String }
    /// # async fn read() -> PageUpdate { Page::update().text("read") }
    ///
    /// /// A host that sends the state apart from the call.
    /// struct Apart(CompiledGraph<Page>);
    ///
    /// #[async_trait::async_trait]
    /// impl Host for Apart {
    ///     async fn run(&self, mut call: TaskCall) -> Result<TaskReply, BoxError> {
    ///         let state = call.take_state().ok_or("the run has put it in")?;
    ///         assert!(call.put_state(Arc::from(&b"another state"[..])).is_err());
    ///         call.put_state(state)?;
    ///         Ok(self.0.run_task(call).await?)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("read", read).edge(START, "read").compile()?;
    /// let page = graph.clone().host(Apart(graph)).invoke(Page::update()).await?;
    /// assert_eq!(page.output().text, "read");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Code::Host`] if it is not the state that was taken.
    pub fn put_state(&mut self, state: Arc<[u8]>) -> Result<(), Error> {
        if hash_of(&state) != self.state_hash {
            let problem = format!("the bytes put into the call of task `{}` are not its state", self.node);
            return Err(Error::new(Code::Host, problem));
        }
        self.state = Some(Blob(state));
        Ok(())
    }

    /// The bytes of the state, or the error of a call without it.
    pub(crate) fn state_needed(&self) -> Result<Arc<[u8]>, Error> {
        if let Some(held) = &self.held.0 {
            return Ok(held.encoded()?.bytes);
        }
        self.state().cloned().ok_or_else(|| {
            let problem = format!(
                "the call of task `{}` has no state: put the state of its hash into it before it runs",
                self.node
            );
            Error::new(Code::Host, problem)
        })
    }

    pub(crate) fn details(&self) -> Result<TaskDetails, Error> {
        delta::decode(&self.details.0).map_err(|error| {
            Error::new(Code::Host, format!("the call of task `{}` is damaged: {error}", self.node))
        })
    }
}

/// Omits the state and the input, which may contain secrets.
impl fmt::Debug for TaskCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskCall { run, thread, task, step, max_supersteps, node, path, namespace, .. } = self;
        let mut parts = out.debug_struct("TaskCall");
        parts.field("run", run).field("thread", thread).field("task", task).field("step", step);
        parts.field("max_supersteps", max_supersteps).field("node", node).field("path", path);
        parts.field("namespace", namespace).field("index", &self.index).field("attempt", &self.attempt);
        parts.field("remote", &self.remote).finish_non_exhaustive()
    }
}
