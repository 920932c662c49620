//! What a stream shows, ordered as far as it is promised: barriers one after the other, and between two of
//! them what is told of each task by itself.

use std::collections::BTreeMap;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::Source;
use serde_json::Value;

use super::world::World;

#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// What is told of the tasks of one superstep, by their place in it.
    Tasks(u64, BTreeMap<u32, Vec<OfTask>>),
    /// The state after so many supersteps of the call.
    Values(u64, World),
    Checkpoint(CheckpointId, Source, Vec<&'static str>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum OfTask {
    Started(&'static str, Option<u64>),
    /// What it emits at an attempt.
    Emitted(&'static str, u32),
    Updated(&'static str, Value),
    Done,
    Failed(&'static str),
    Waits,
}

/// Adds what is told of a task.
pub fn add(happened: &mut Vec<Happening>, step: u64, index: u32, told: OfTask) {
    if let Some(Happening::Tasks(last, tasks)) = happened.last_mut()
        && *last == step
    {
        tasks.entry(index).or_default().push(told);
        return;
    }
    happened.push(Happening::Tasks(step, BTreeMap::from([(index, vec![told])])));
}
