//! Executing: the tasks of one superstep, against one snapshot.
//!
//! One task is awaited where it is. Several are each polled once in place, which finishes those that are ready; the
//! pending ones go into a `FuturesUnordered`, which polls only what was woken. Nothing is spawned, so dropping the run
//! stops everything.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::context::{Request, RunShared, Standing, TaskRequest};
use crate::engine::host::TaskRunner;
use crate::engine::merge::{Done, resolve};
use crate::error::{BoxError, Code, Error, caused_by};
use crate::extract::{InputError, MissingDep, Task};
use crate::graph::GraphCore;
use crate::node::{NodeFuture, NodeResult};
use crate::policy::{CatchPanic, NodePanic, Timeout, guarded};
use crate::run::event::{EventKind, EventQueue};
use crate::session::MissingSession;
use crate::state::State;
use crate::step::InputValue;

/// How one task ended.
pub(crate) enum TaskEnd<S: State> {
    Done(Done<S>),
    Waits(Request),
    /// Its n-th answer had the wrong type.
    Refused {
        n: u32,
        error: Error,
    },
    Failed(Error),
}

/// What the execution of one superstep looks at.
pub(crate) struct Executor<'a, S: State, R> {
    pub(crate) core: &'a GraphCore<S>,
    pub(crate) runner: &'a R,
    pub(crate) state: &'a Arc<S>,
    pub(crate) shared: &'a Arc<RunShared>,
    pub(crate) events: Option<&'a EventQueue<S>>,
    pub(crate) cancel: Option<&'a CancellationToken>,
    pub(crate) max_concurrency: usize,
}

/// Who is told when a task of several ends.
pub(crate) trait Ledger<S: State>: Send {
    /// The task at `index` ended; `others_run` if some are still running. The next one is looked at when this is done.
    fn finished(
        &mut self,
        index: u32,
        end: TaskEnd<S>,
        others_run: bool,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A task to be run: where it stands in its superstep, and what it is called with.
pub(crate) struct ToRun<'a> {
    pub(crate) request: TaskRequest,
    pub(crate) input: Option<&'a InputValue>,
}

impl<S: State, R: TaskRunner<S>> Executor<'_, S, R> {
    fn call(&self, task: &ToRun<'_>) -> NodeFuture<S> {
        let task = Task { state: self.state, shared: self.shared, request: task.request, input: task.input };
        self.runner.call(self.core, &task)
    }

    /// Judges a task's result. The control cell is read first: a task that asked waits, whatever it returned.
    pub(crate) fn end(&self, request: TaskRequest, result: NodeResult<S>) -> TaskEnd<S> {
        if self.shared.control.in_use()
            && let Some(standing) = self.shared.control.standing(request.index)
        {
            return match standing {
                Standing::Waits(request) => TaskEnd::Waits(request),
                Standing::Unencodable(problem) => {
                    let text =
                        format!("what it asked with `interrupt` cannot be turned into JSON: {problem}");
                    TaskEnd::Failed(Error::new(Code::Encode, text).at_node(self.core.name(request.node)))
                }
                Standing::Refused { n, problem } => {
                    let text = format!("the answer does not have the type the node asks for: {problem}");
                    TaskEnd::Refused {
                        n,
                        error: Error::new(Code::BadAnswer, text).at_node(self.core.name(request.node)),
                    }
                }
            };
        }
        let done = result.map_err(node_error).and_then(|step| resolve(self.core, request.node, step));
        match done {
            Ok(done) => {
                self.announce(request, &done);
                TaskEnd::Done(done)
            }
            Err(error) => TaskEnd::Failed(error.at_node(self.core.name(request.node))),
        }
    }

    fn announce(&self, request: TaskRequest, done: &Done<S>) {
        if let Some(events) = self.events.filter(|events| events.views.updates) {
            let node = self.core.name(request.node).to_owned();
            events.push(request.step, EventKind::Update { node, update: done.update.clone() });
        }
    }

    /// Runs several tasks and tells `ledger` of each in the order of completion. `false` if the run was cancelled
    /// meanwhile.
    ///
    /// When a task fails, those that were started are finished and no further one is started.
    pub(crate) async fn many(
        &self,
        tasks: Vec<ToRun<'_>>,
        ledger: &mut impl Ledger<S>,
    ) -> Result<bool, Error> {
        let mut waiting = VecDeque::from(tasks);
        let mut ready = Vec::new();
        let mut running = FuturesUnordered::new();
        let mut failed = false;
        loop {
            self.first_poll(&mut waiting, &mut ready, &mut running, failed).await;
            // Those that wait for room count too: with little room most of a superstep may be still to come.
            let others_run = !(running.is_empty() && waiting.is_empty());
            for (request, result) in ready.drain(..) {
                let end = self.end(request, result);
                failed |= matches!(end, TaskEnd::Failed(_) | TaskEnd::Refused { .. });
                ledger.finished(request.index, end, others_run).await?;
                if let Some(events) = self.events {
                    events.room().await;
                }
            }
            if running.is_empty() {
                if waiting.is_empty() || failed {
                    return Ok(true);
                }
                continue;
            }
            match self.next(&mut running).await {
                Some(done) => ready.push(done),
                None => return Ok(false),
            }
        }
    }

    /// Starts as many tasks as may run at once and polls each of them one time. Outside tokio's cooperative budget: with
    /// more ready tasks than the budget allows, the rest would be put off for nothing.
    async fn first_poll(
        &self,
        waiting: &mut VecDeque<ToRun<'_>>,
        ready: &mut Vec<(TaskRequest, NodeResult<S>)>,
        running: &mut FuturesUnordered<Running<S>>,
        failed: bool,
    ) {
        if waiting.is_empty() || failed {
            return;
        }
        let mut pending = Vec::new();
        let room = self.max_concurrency.saturating_sub(running.len());
        let pass = poll_fn(|cx| {
            while pending.len() < room
                && let Some(task) = waiting.pop_front()
            {
                let request = task.request;
                let polled = guarded(|guard| {
                    let mut future = self.call(&task);
                    match future.as_mut().poll(cx) {
                        Poll::Ready(result) => {
                            drop(future);
                            guard.lift();
                            ready.push((request, result));
                        }
                        Poll::Pending => pending.push(Running { request, task: CatchPanic::of(future) }),
                    }
                });
                if let Err(panicked) = polled {
                    ready.push((request, Err(panicked.into())));
                }
            }
            Poll::Ready(())
        });
        tokio::task::coop::unconstrained(pass).await;
        running.extend(pending);
    }

    /// The next task that finishes; `None` if the run is cancelled first.
    async fn next(&self, running: &mut FuturesUnordered<Running<S>>) -> Option<(TaskRequest, NodeResult<S>)> {
        match self.cancel {
            None => running.next().await,
            Some(cancel) => cancel.run_until_cancelled(running.next()).await.flatten(),
        }
    }
}

/// A started task that knows which one it is.
struct Running<S: State> {
    request: TaskRequest,
    task: CatchPanic<S>,
}

impl<S: State> Future for Running<S> {
    type Output = (TaskRequest, NodeResult<S>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let request = self.request;
        Pin::new(&mut self.task).poll(cx).map(|result| (request, result))
    }
}

/// An error that the engine itself made where a node's error is expected. It keeps its code.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct OwnError(#[from] pub(crate) Error);

/// The error of a run for the error of a node.
pub(crate) fn node_error(error: BoxError) -> Error {
    let error = match error.downcast::<OwnError>() {
        Ok(own) => return own.0,
        Err(error) => error,
    };
    let code = if error.is::<Error>() {
        // Another graph's run, called from within the node: its node and state are not this run's.
        Code::NodeFailed
    } else if caused_by::<NodePanic>(&*error).is_some() {
        Code::NodePanicked
    } else if caused_by::<Timeout>(&*error).is_some() {
        Code::NodeTimeout
    } else if caused_by::<MissingDep>(&*error).is_some() || caused_by::<MissingSession>(&*error).is_some() {
        Code::MissingDependency
    } else if caused_by::<InputError>(&*error).is_some() {
        Code::BadInput
    } else {
        Code::NodeFailed
    };
    Error::new(code, error.to_string()).with_source(error)
}
