//! The items of a stream, as far as their order is promised: barriers in order, and between two barriers
//! the events of each task in order.

use std::collections::BTreeMap;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::Source;
use serde_json::Value;

use super::world::World;

#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// The events of the tasks of one superstep, by the place of the task in it.
    Tasks(u64, BTreeMap<u32, Vec<TaskEvent>>),
    /// The state after this many supersteps of the call.
    Values(u64, World),
    Checkpoint(CheckpointId, Source, Vec<&'static str>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum TaskEvent {
    Started(&'static str, Option<u64>),
    /// The node and the attempt that emitted.
    Emitted(&'static str, u32),
    /// The attempt that failed, with its text, and whether another one follows.
    AttemptFailed(u32, String, bool),
    /// The attempt that starts, which is not the first.
    AttemptStarted(u32),
    /// The node, and the attempt that made the update.
    Updated(&'static str, u32, Value),
    Done,
    Failed(&'static str),
    Waits,
}

/// Adds an event of a task.
pub fn add(items: &mut Vec<StreamItem>, step: u64, index: u32, event: TaskEvent) {
    if let Some(StreamItem::Tasks(last, tasks)) = items.last_mut()
        && *last == step
    {
        tasks.entry(index).or_default().push(event);
        return;
    }
    items.push(StreamItem::Tasks(step, BTreeMap::from([(index, vec![event])])));
}
