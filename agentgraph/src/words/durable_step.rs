//! Durable steps, as events and readers of a thread show them.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// A durable step of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableStepRef {
    /// Its name.
    pub name: String,
    /// Its key, if it was called with one.
    pub key: Option<String>,
    /// Its index among the calls of that name in the attempt of the node, from 0; 0 if it has a key.
    pub index: u32,
    /// The attempt of the step, from 1.
    pub attempt: u32,
}

/// What happened to a durable step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepEvent {
    /// An attempt has started.
    Started,
    /// The result is stored, as far as the run stores results.
    Done,
    /// An attempt has failed, with this text.
    Failed(String),
    /// An earlier call of the node has done it, and its result was given back.
    Found,
}

/// A durable step that has a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DoneStep {
    /// The node.
    pub node: String,
    /// The namespace of the node's subgraph; empty for the root graph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its key, if it was called with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its index among the calls of that name, from 0; 0 if it has a key.
    #[serde(default)]
    pub index: u32,
    /// The kind of step.
    pub kind: StepKind,
    /// The attempts that it took.
    pub attempts: u32,
}

/// The kinds of durable steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// A piece of work: [`Ctx::once`](crate::Ctx::once).
    Work,
    /// [`Ctx::sleep`](crate::Ctx::sleep), until this time.
    Sleep(SystemTime),
    /// [`Ctx::version`](crate::Ctx::version): the task follows this version.
    Version(u32),
}
