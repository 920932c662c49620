//! What is told of a thread, in words that the model and the engine share.

use agentgraph::checkpoint::Source;
use agentgraph::{CheckpointId, StopReason};

use super::rounds::Stuck;
use super::world::World;

/// How an act ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    Finished {
        stuck: Vec<Stuck>,
    },
    /// Open requests: node and what it asks, in task order.
    Asked(Vec<(&'static str, u64)>),
    /// Static interrupts: the nodes, and whether before them.
    Broke(Vec<(&'static str, bool)>),
    Stopped(StopReason),
    Failed(&'static str),
    /// The checkpoint that an edit made.
    Edited(CheckpointId),
}

impl Came {
    /// It failed in a way that going on does not mend.
    pub fn is_hopeless(&self) -> bool {
        matches!(self, Came::Failed(code) if *code != "E_NODE_FAILED")
    }
}

/// What an act gives its caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub came: Came,
    /// The last state; of failures only when a node failed.
    pub output: Option<World>,
    pub coins: Option<u64>,
}

/// A checkpoint in history.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub id: CheckpointId,
    pub parent: Option<CheckpointId>,
    pub source: Source,
    pub values: World,
    pub next: Vec<&'static str>,
    pub deferred: Vec<&'static str>,
}

/// How a thread stands: with what finished siblings of an open superstep wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub values: World,
    pub next: Vec<&'static str>,
    pub asks: Vec<(&'static str, u64)>,
}
