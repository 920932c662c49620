//! Results of durable steps, as records hold them.

use serde::{Deserialize, Serialize};

use crate::record::bytes::Bytes;
use crate::words::{DoneStep, DurableStepRef, StepKind};
use agentgraph_checkpoint::delta::decode;
use agentgraph_checkpoint::services::from_micros;

/// A durable step of a task: its name, and which call of that name it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct OnceKey {
    pub(crate) name: String,
    pub(crate) call: OnceCall,
}

/// One of several calls of a durable step with one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnceCall {
    /// The n-th call without a key in an attempt, counted from 0.
    Nth(u32),
    /// The call with this key.
    Key(String),
    /// The n-th sleep of this name. Its result is its end, in microseconds since 1970.
    Sleep(u32),
    /// A change of the node's code. Its result is the version that the task follows.
    Version,
}

impl OnceKey {
    /// The step for events.
    pub(crate) fn shown(&self, attempt: u32) -> DurableStepRef {
        let (index, key) = self.call.split();
        DurableStepRef { name: self.name.clone(), key, index, attempt }
    }
}

impl OnceCall {
    /// The index and the key of the call.
    fn split(&self) -> (u32, Option<String>) {
        match self {
            OnceCall::Nth(index) | OnceCall::Sleep(index) => (*index, None),
            OnceCall::Key(key) => (0, Some(key.clone())),
            OnceCall::Version => (0, None),
        }
    }
}

/// The result of a durable step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredOnce {
    pub(crate) key: OnceKey,
    /// The result in MessagePack.
    pub(crate) value: Bytes,
    /// The attempts that it took.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) attempts: u32,
}

impl StoredOnce {
    /// The step for readers of the thread.
    pub(crate) fn shown(&self, node: &str, namespace: &str) -> DoneStep {
        let (index, key) = self.key.call.split();
        let kind = match self.key.call {
            OnceCall::Nth(_) | OnceCall::Key(_) => StepKind::Work,
            OnceCall::Sleep(_) => StepKind::Sleep(from_micros(decode(&self.value.0).unwrap_or_default())),
            OnceCall::Version => StepKind::Version(decode(&self.value.0).unwrap_or_default()),
        };
        DoneStep {
            node: node.to_owned(),
            namespace: namespace.to_owned(),
            name: self.key.name.clone(),
            key,
            index,
            kind,
            attempts: self.attempts,
        }
    }
}

fn one() -> u32 {
    1
}

fn is_one(attempts: &u32) -> bool {
    *attempts == 1
}
