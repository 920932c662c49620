//! What a run waits for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::context::{InvalidId, Request, TaskId};

/// Something a run waits for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interrupt {
    /// Its id, for `resume_many`; none for a static interrupt, which `proceed()` goes past.
    pub id: Option<InterruptId>,
    /// The node.
    pub node: String,
    /// The subgraph that the node is in, as checkpoints call it; empty for the graph that was run.
    pub namespace: String,
    /// How it came about.
    pub kind: InterruptKind,
    /// What the node asked; null for a static interrupt.
    pub value: Value,
    /// The JSON schema of the answer, if the node gave one.
    pub schema: Option<Value>,
}

impl Interrupt {
    pub(crate) fn fixed(node: String, kind: InterruptKind) -> Self {
        Interrupt { id: None, node, namespace: String::new(), kind, value: Value::Null, schema: None }
    }

    pub(crate) fn asked(id: InterruptId, node: String, request: Request) -> Self {
        Interrupt {
            id: Some(id),
            node,
            namespace: String::new(),
            kind: InterruptKind::Asked,
            value: request.value,
            schema: request.schema,
        }
    }
}

/// How an interrupt came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InterruptKind {
    /// The node called [`Ctx::interrupt`](crate::Ctx::interrupt).
    Asked,
    /// The graph stops before the node.
    Before,
    /// The graph stops after the node.
    After,
}

/// The id of a request: its task, and which of the task's requests it is. The same in every process; as text it is
/// the task's id, a dash and the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterruptId {
    pub(crate) task: TaskId,
    pub(crate) n: u32,
}

impl fmt::Display for InterruptId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.task, self.n)
    }
}

impl FromStr for InterruptId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (task, n) = text.split_once('-').ok_or(InvalidId)?;
        Ok(InterruptId { task: task.parse()?, n: n.parse().map_err(|_| InvalidId)? })
    }
}

impl Serialize for InterruptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InterruptId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
