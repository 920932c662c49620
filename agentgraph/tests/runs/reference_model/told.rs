//! Results of acts and states of threads, in types that the model and the engine share.

use agentgraph::checkpoint::Source;
use agentgraph::{CheckpointId, StopReason};

use super::rounds::Stuck;
use super::world::World;

/// The end of an act.
#[derive(Clone, Debug, PartialEq)]
pub enum ActEnd {
    Finished {
        stuck: Vec<Stuck>,
    },
    /// The open requests: node and value, in task order.
    Asked(Vec<(&'static str, u64)>),
    /// The nodes of static interrupts, and whether each stops before its node.
    Broke(Vec<(&'static str, bool)>),
    Stopped(StopReason),
    Failed(&'static str),
    /// The checkpoint made by an edit.
    Edited(CheckpointId),
}

impl ActEnd {
    /// Whether the act failed in a way that no later call repairs.
    pub fn is_hopeless(&self) -> bool {
        matches!(self, ActEnd::Failed(code) if *code != "E_NODE_FAILED")
    }
}

/// The result of an act.
#[derive(Clone, Debug, PartialEq)]
pub struct ActResult {
    pub end: ActEnd,
    /// The last state. Of failures, only failures of nodes have one.
    pub output: Option<World>,
    pub coins: Option<u64>,
}

/// A checkpoint in the history of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    pub id: CheckpointId,
    pub parent: Option<CheckpointId>,
    pub source: Source,
    pub values: World,
    pub next: Vec<&'static str>,
    pub deferred: Vec<&'static str>,
}

/// The status of a thread, including the writes of finished tasks of an open superstep.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub values: World,
    pub next: Vec<&'static str>,
    pub asks: Vec<(&'static str, u64)>,
}
