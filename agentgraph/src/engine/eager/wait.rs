//! Waiting until a task ends, a join is due, a task exceeds its time limit, or the call is cut off.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::engine::eager::course::{Course, Stop};
use crate::engine::eager::execute::poll_running;
use crate::engine::executor::Executor;
use crate::engine::halt::{Cutoff, sleep};
use crate::engine::running_tasks::RunningTasks;
use crate::engine::{Loop, cut_off};
use agentgraph_checkpoint::services::micros;

impl Loop {
    pub(super) async fn wait(&mut self, course: &mut Course, running: &mut RunningTasks) {
        let mut due = self.due_in().map(|due| sleep(&self.runtime.shared.services, due));
        let (executor, halt) = Executor::of(&self.position, &mut self.listeners, &self.runtime);
        let limit = halt.as_ref().and_then(|halt| halt.step_timeout()).unwrap_or_default();
        let happens = poll_fn(|cx| {
            let changed = poll_running(&executor, course, running, cx) || poll_ending(course, cx);
            if changed || executor.runtime.shared.control.has_unstored() {
                return Poll::Ready(None);
            }
            if due.as_mut().is_some_and(|due| due.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Some(WaitEvent::Due));
            }
            match poll_limits(course, cx) {
                Some(index) => Poll::Ready(Some(WaitEvent::TooLong(index))),
                None => Poll::Pending,
            }
        });
        let happened = match halt {
            None => Ok(happens.await),
            Some(halt) => halt.until(happens).await,
        };
        match happened {
            Ok(None) => {}
            Ok(Some(WaitEvent::Due)) => self.buffers.is_due = true,
            Ok(Some(WaitEvent::TooLong(index))) => {
                self.cut_off(course, Cutoff::StepTimeout(limit), Some(index));
            }
            Err(cut) => self.cut_off(course, cut, None),
        }
        course.settle(running);
    }

    fn cut_off(&self, course: &mut Course, cut: Cutoff, late: Option<u32>) {
        let late = late.and_then(|index| course.started(index));
        let late = late.and_then(|started| self.activation(started.key));
        let late = late.map(|activation| self.position.graph.name(activation.actor()));
        course.stop(match (cut, cut_off(cut, late.into_iter())) {
            (_, Err(error)) => Stop::Failed(error),
            (Cutoff::Stop(reason), Ok(_)) => Stop::Hard(reason),
            (Cutoff::StepTimeout(_), Ok(_)) => return,
        });
        course.forget_unless(|_| false);
    }

    /// The time until the first join with a timeout is due; zero if it is due, `None` without such a join.
    pub(super) fn due_in(&self) -> Option<Duration> {
        if !self.position.graph.topology.times_joins
            || self.position.eager.as_ref().is_some_and(|eager| eager.order.is_some())
        {
            return None;
        }
        let due = self.position.joins.next_due()?;
        if self.buffers.is_due {
            Some(Duration::ZERO)
        } else {
            Some(Duration::from_micros(due.saturating_sub(micros(self.runtime.shared.services.now()))))
        }
    }
}

enum WaitEvent {
    /// A join is due.
    Due,
    /// A task has exceeded its time limit.
    TooLong(u32),
}

/// The oldest task whose time limit is over.
fn poll_limits(course: &mut Course, cx: &mut Context<'_>) -> Option<u32> {
    while let Some((index, _)) = course.limits.front() {
        if course.started(*index).is_some() {
            break;
        }
        course.limits.pop_front();
    }
    let (index, timer) = course.limits.front_mut()?;
    timer.as_mut().poll(cx).is_ready().then_some(*index)
}

/// Gives up detached tasks whose waiting time is over. Returns whether there was one.
fn poll_ending(course: &mut Course, cx: &mut Context<'_>) -> bool {
    let Some(ending) = &mut course.ending else { return false };
    let Some(over) = ending.poll_over(cx) else { return false };
    course.forget_unless(|started| started.awaited != Some(over));
    true
}
