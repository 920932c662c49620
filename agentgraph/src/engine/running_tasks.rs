//! Tasks that run side by side.
//!
//! They are futures of the task that drives their run, so they do not progress while that task awaits
//! something else. A store operation may wait for something that one of them occupies: a connection, a row, a
//! place in a queue. So everything that is stored while tasks run is awaited with [`RunningTasks::beside`].

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::attempt::CatchPanic;
use crate::context::{Control, TaskRequest};
use crate::engine::halt::{Cutoff, Halt};
use crate::engine::once::or_unstored;
use crate::erased::NodeResult;
use crate::typed::AnyState;

/// A started task, with its request.
pub(super) struct RunningTask {
    pub(super) request: TaskRequest,
    pub(super) task: CatchPanic,
}

/// An ended task, with its result.
pub(super) type EndedTask = (TaskRequest, NodeResult<AnyState>);

impl Future for RunningTask {
    type Output = EndedTask;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let request = self.request;
        Pin::new(&mut self.task).poll(cx).map(|result| (request, result))
    }
}

/// The tasks of a run that were pending at their first poll. Allocates once there is one; often none is.
#[derive(Default)]
pub(super) struct RunningTasks(Option<FuturesUnordered<RunningTask>>);

impl RunningTasks {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, FuturesUnordered::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RunningTask> {
        self.0.iter().flatten()
    }

    pub(super) fn add(&mut self, tasks: impl IntoIterator<Item = RunningTask>) {
        let mut tasks = tasks.into_iter().peekable();
        if tasks.peek().is_some() {
            self.0.get_or_insert_default().extend(tasks);
        }
    }

    /// Drops the tasks for which `goes_on` is false.
    pub(super) fn retain(&mut self, goes_on: impl Fn(&RunningTask) -> bool) {
        self.0 = self.0.take().map(|running| running.into_iter().filter(|task| goes_on(task)).collect());
    }

    /// A task that has ended, if there is one.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Option<EndedTask> {
        match self.0.as_mut()?.poll_next_unpin(cx) {
            Poll::Ready(ended) => ended,
            Poll::Pending => None,
        }
    }

    /// The next task that ends, unless all are cut off first. `None` if there is none, or if results of
    /// durable steps wait to be stored.
    pub(super) async fn next(
        &mut self,
        control: &Control,
        halt: Option<&mut Halt>,
    ) -> Result<Option<EndedTask>, Cutoff> {
        let Some(running) = &mut self.0 else { return Ok(None) };
        let mut next = running.next();
        let ended = or_unstored(control, &mut next);
        let ended = match halt {
            None => ended.await,
            Some(halt) => halt.until(ended).await?,
        };
        Ok(ended.flatten())
    }

    /// Awaits `work` while the tasks continue. Returns its result and the tasks that ended meanwhile, in the
    /// order in which they ended.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> (T, Vec<EndedTask>) {
        let mut work = pin!(work);
        let mut ended = Vec::new();
        let done = poll_fn(|cx| {
            // The work first: when it is done, the tasks go back to the loop. Until then results are only
            // collected, since judging them needs parts of the loop that the work borrows.
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            while let Some(one) = self.poll_end(cx) {
                ended.push(one);
            }
            Poll::Pending
        });
        (done.await, ended)
    }
}
