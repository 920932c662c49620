//! [`Order`]: the order in which an earlier run merged.

use std::collections::{HashMap, VecDeque};

use crate::engine::flow::{Flow, Key, Phase};
use crate::error::Error;
use crate::graph::run_graph::RunGraph;
use crate::record::header::Header;
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::header::StoredMerge;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, ListQuery, Place, Source};

/// Rows read at a time.
const PAGE: usize = 256;

/// The order in which an earlier run merged.
pub(crate) struct Order {
    steps: VecDeque<StoredMerge>,
    /// The number of the last commit that both runs share.
    shared: u64,
    /// The commit numbers of this run, by those of the earlier run.
    numbers: HashMap<u64, u64>,
}

/// The next turn in the order.
pub(in crate::engine) enum OrderTurn {
    Activation(Key),
    /// The joins that were due.
    Joins,
    /// Something that this run does not have.
    Lost,
    /// The recorded order is used up.
    Free,
}

impl Order {
    /// Reads the order of the steps after a checkpoint, as far as its run continued on that branch. `number`
    /// is the commit number of the checkpoint.
    pub(crate) async fn read(
        saver: &dyn Checkpointer,
        place: Place<'_>,
        after: CheckpointId,
        number: u64,
    ) -> Result<Self, Error> {
        let mut found: Vec<(Source, Vec<StoredMerge>)> = Vec::new();
        let mut before = None;
        loop {
            let query = ListQuery { branch: Some(after.branch), before, limit: Some(PAGE) };
            let rows = page(saver, place, query).await?;
            let newer = rows.iter().filter(|row| row.id.step > after.step);
            for row in newer {
                let header = Header::of_row(place, row)?;
                found.push((header.source, header.eager.log));
            }
            match rows.last() {
                Some(oldest) if oldest.id.step > after.step => before = Some(oldest.id.step),
                _ => break,
            }
        }
        let same_run = found.into_iter().rev().take_while(|(source, _)| *source == Source::Loop);
        let steps = same_run.flat_map(|(_, log)| log).collect();
        Ok(Order { steps, shared: number, numbers: HashMap::new() })
    }

    pub(in crate::engine) fn turn(&mut self, core: &RunGraph, flow: &Flow) -> OrderTurn {
        let is_silent = |step: &StoredMerge| step.ended.is_none() && step.timed.is_empty();
        while self.steps.front().is_some_and(is_silent) {
            self.steps.pop_front();
        }
        let Some(step) = self.steps.front() else { return OrderTurn::Free };
        let Some((made, index, node)) = &step.ended else { return OrderTurn::Joins };
        let made = if *made <= self.shared { Some(*made) } else { self.numbers.get(made).copied() };
        let key = made.map(|made| Key { made, index: *index });
        let open = key.and_then(|key| Some((key, flow.open.get(&key)?)));
        match open {
            Some((key, one)) if core.name(one.node) == node && !is_waiting(one.phase) => {
                OrderTurn::Activation(key)
            }
            _ => OrderTurn::Lost,
        }
    }

    /// The node that merges in the next step; `None` if joins are due.
    pub(in crate::engine) fn expected(&self) -> Option<String> {
        let (_, _, node) = self.steps.front()?.ended.as_ref()?;
        Some(node.clone())
    }

    /// Takes the next step, which becomes the commit `number`. Returns the joins that were due in it.
    pub(in crate::engine) fn take(&mut self, number: u64) -> Vec<u32> {
        let Some(step) = self.steps.pop_front() else { return Vec::new() };
        self.numbers.insert(step.at, number);
        step.timed
    }
}

fn is_waiting(phase: Phase) -> bool {
    matches!(phase, Phase::Waits | Phase::Unfinished)
}
