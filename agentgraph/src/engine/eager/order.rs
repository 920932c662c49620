//! The merge order of an earlier run, for a run that repeats its steps.
//!
//! A task that ends too early is held until its turn. Tasks merge as they end where this run differs from the
//! earlier one, and after the last recorded step.

use crate::engine::Loop;
use crate::engine::eager::course::{Course, StartedTask, TaskResult};
use crate::engine::flow::order::OrderTurn;
use crate::event::EventKind;

impl Loop {
    /// The ended task to handle next: the first one, unless the recorded order names another.
    pub(super) fn next_end(&mut self, course: &mut Course) -> Option<(u32, StartedTask, TaskResult)> {
        if self.position.eager.as_ref()?.order.is_none() {
            return course.next_end();
        }
        // An end that makes no commit has no turn.
        if let Some(end) = course.take_unmerged() {
            return Some(end);
        }
        let core = &self.position.graph;
        let eager = self.position.eager.as_mut()?;
        match eager.order.as_mut()?.turn(core, &eager.flow) {
            OrderTurn::Activation(key) => match course.take_end_of(key) {
                Some(end) => Some(end),
                None if course.is_under_way(key)
                    || (course.stop.is_none() && eager.flow.ready.contains(&key)) =>
                {
                    None
                }
                None => self.leave_order(course),
            },
            OrderTurn::Joins => None,
            OrderTurn::Lost => self.leave_order(course),
            OrderTurn::Free => {
                eager.order = None;
                course.next_end()
            }
        }
    }

    fn leave_order(&mut self, course: &mut Course) -> Option<(u32, StartedTask, TaskResult)> {
        let order = self.position.eager.as_mut()?.order.take()?;
        let expected = order.expected();
        if let Some(events) = &self.listeners.events {
            events.push(self.position.step, EventKind::ReplayDiverged { expected });
        }
        course.next_end()
    }

    /// Takes the step whose turn it is as the next commit. Returns the joins that were due in it; `None`
    /// without a recorded order.
    pub(super) fn take_turn(&mut self) -> Option<Vec<u32>> {
        let number = self.upcoming().at;
        self.position.eager.as_mut()?.order.as_mut().map(|order| order.take(number))
    }

    /// Whether it is the turn of joins that were due, and these joins still wait.
    pub(super) fn is_turn_of_joins(&mut self) -> bool {
        let core = &self.position.graph;
        let Some(eager) = &mut self.position.eager else { return false };
        let Some(order) = &mut eager.order else { return false };
        matches!(order.turn(core, &eager.flow), OrderTurn::Joins)
    }
}
