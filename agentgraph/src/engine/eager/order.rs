//! The order in which an earlier run merged, for one that goes over the same steps again.
//!
//! What ends too early is held until its turn. Where this run goes another way than the earlier one, and
//! after the last step that was recorded, tasks merge as they end.

use std::collections::{HashMap, VecDeque};

use crate::engine::Loop;
use crate::engine::eager::course::{Course, End, Started};
use crate::engine::eager::flow::{Flow, Key, Phase};
use crate::engine::host::TaskRunner;
use crate::error::Error;
use crate::graph::run_graph::RunGraph;
use crate::record::header::Header;
use crate::run::event::EventKind;
use crate::state::State;
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::header::StoredMerge;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, ListQuery, Place, Source};

/// Rows read at a time.
const PAGE: usize = 256;

/// See the module.
pub(crate) struct Order {
    steps: VecDeque<StoredMerge>,
    /// The commits of the earlier run up to this one are those of this run, too.
    shared: u64,
    /// The numbers of the commits of this run by those of the earlier one.
    numbers: HashMap<u64, u64>,
}

/// What comes next in the order.
pub(super) enum Turn {
    Activation(Key),
    /// Joins whose time had come.
    Joins,
    /// Something that this run does not have.
    Lost,
    /// Nothing is known of what comes now.
    Free,
}

impl Order {
    /// The order of the steps after a checkpoint, as far as its run went on that branch. `number` is that of
    /// the checkpoint.
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

    pub(super) fn turn<S: State>(&mut self, core: &RunGraph<S>, flow: &Flow) -> Turn {
        let is_silent = |step: &StoredMerge| step.ended.is_none() && step.timed.is_empty();
        while self.steps.front().is_some_and(is_silent) {
            self.steps.pop_front();
        }
        let Some(step) = self.steps.front() else { return Turn::Free };
        let Some((made, index, node)) = &step.ended else { return Turn::Joins };
        let made = match *made <= self.shared {
            true => Some(*made),
            false => self.numbers.get(made).copied(),
        };
        let key = made.map(|made| Key { made, index: *index });
        let open = key.and_then(|key| Some((key, flow.open.get(&key)?)));
        match open {
            Some((key, one)) if core.name(one.node) == node && !stands(one.phase) => Turn::Activation(key),
            _ => Turn::Lost,
        }
    }

    /// Takes the step that is due; the commit that it becomes has that number. Gives the joins whose time had
    /// come in it.
    fn take(&mut self, number: u64) -> Vec<u32> {
        let Some(step) = self.steps.pop_front() else { return Vec::new() };
        self.numbers.insert(step.at, number);
        step.timed
    }
}

fn stands(phase: Phase) -> bool {
    matches!(phase, Phase::Waits | Phase::Stands)
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// The end that is to be looked at next: the first, unless an earlier run of the same steps says another
    /// one.
    pub(super) fn next_end(&mut self, course: &mut Course<S>) -> Option<(u32, Started, End<S>)> {
        if self.position.eager.as_ref()?.order.is_none() {
            return course.next_end();
        }
        // What is not merged has no turn.
        if let Some(end) = course.take_unmerged() {
            return Some(end);
        }
        let core = &self.position.graph;
        let eager = self.position.eager.as_mut()?;
        match eager.order.as_mut()?.turn(core, &eager.flow) {
            Turn::Activation(key) => match course.take_end_of(key) {
                Some(end) => Some(end),
                None if course.is_under_way(key)
                    || (course.stop.is_none() && eager.flow.ready.contains(&key)) =>
                {
                    None
                }
                None => self.leave_order(course),
            },
            Turn::Joins => None,
            Turn::Lost => self.leave_order(course),
            Turn::Free => {
                eager.order = None;
                course.next_end()
            }
        }
    }

    fn leave_order(&mut self, course: &mut Course<S>) -> Option<(u32, Started, End<S>)> {
        let order = self.position.eager.as_mut()?.order.take()?;
        let expected =
            order.steps.front().and_then(|step| step.ended.as_ref()).map(|(_, _, node)| node.clone());
        if let Some(events) = &self.listeners.events {
            events.push(self.position.step, EventKind::ReplayDiverged { expected });
        }
        course.next_end()
    }

    /// Says that the step whose turn it is becomes the next commit. Gives the joins whose time had come in
    /// it; `None` where no order is known.
    pub(super) fn take_turn(&mut self) -> Option<Vec<u32>> {
        let number = self.upcoming().at;
        self.position.eager.as_mut()?.order.as_mut().map(|order| order.take(number))
    }

    /// Whether it is the turn of joins whose time had come, and they wait for it.
    pub(super) fn is_turn_of_joins(&mut self) -> bool {
        let core = &self.position.graph;
        let Some(eager) = &mut self.position.eager else { return false };
        let Some(order) = &mut eager.order else { return false };
        matches!(order.turn(core, &eager.flow), Turn::Joins)
    }
}
