//! Timeouts: for a whole attempt, and for its silence.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::Notify;

use crate::error::BoxError;
use crate::words::Timeouts;
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::services::Services;

/// An attempt took longer than the node's timeout, or was silent for longer than its idle timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", .kind.text(*.limit), if *.unstopped { UNSTOPPED } else { "" })]
#[non_exhaustive]
pub struct Timeout {
    /// The configured timeout.
    pub limit: Duration,
    /// The kind of timeout.
    pub kind: TimeoutKind,
    /// Whether the attempt continued after its limit: it blocked its thread and returned late, or another
    /// thread may still be running it. Its result is discarded, but its side effects may have happened, so
    /// only a policy with [`retry_on`](crate::RetryPolicy::retry_on) retries it.
    pub unstopped: bool,
}

const UNSTOPPED: &str =
    "; the attempt could not be stopped at its limit, so its side effects may have happened";

/// The kind of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// For the whole attempt.
    Run,
    /// For silence.
    Idle,
    /// For an attempt of a durable step.
    Step,
}

impl TimeoutKind {
    fn text(self, limit: Duration) -> String {
        match self {
            TimeoutKind::Run => {
                format!("no result after {limit:?}: raise the node's timeout, or make it faster")
            }
            TimeoutKind::Step => {
                format!("no result after {limit:?}: raise the step's timeout, or make it faster")
            }
            TimeoutKind::Idle => format!(
                "no sign of life for {limit:?}: call `ctx.heartbeat()` where it works, or raise the node's idle timeout"
            ),
        }
    }
}

/// A task by its superstep and its index there.
type TaskPlace = (u64, u32);

/// The signs of life of tasks with idle timeouts. Empty in a graph without them.
#[derive(Default)]
pub(crate) struct Heartbeats(Lock<HashMap<TaskPlace, Arc<Notify>>>);

impl Heartbeats {
    pub(crate) fn beat(&self, task: TaskPlace) {
        if let Some(watcher) = self.0.lock().get(&task) {
            watcher.notify_one();
        }
    }

    fn watch(&self, task: TaskPlace) -> WatchedTask<'_> {
        let heard = Arc::new(Notify::new());
        self.0.lock().insert(task, Arc::clone(&heard));
        WatchedTask { beats: self, task, heard }
    }
}

/// A task whose signs of life are watched until this is dropped.
struct WatchedTask<'a> {
    beats: &'a Heartbeats,
    task: TaskPlace,
    heard: Arc<Notify>,
}

impl Drop for WatchedTask<'_> {
    fn drop(&mut self) {
        self.beats.0.lock().remove(&self.task);
    }
}

/// Runs an attempt within its timeouts. `stops`: dropping the attempt stops it.
pub(crate) async fn within<T>(
    timeouts: Timeouts,
    stops: bool,
    task: TaskPlace,
    beats: &Heartbeats,
    services: &dyn Services,
    attempt: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    let begun = services.elapsed();
    let mut attempt = pin!(attempt);
    let watched = pin!(async {
        match timeouts.idle {
            None => attempt.await,
            Some(limit) => {
                run_until_silent((limit, stops), beats.watch(task), services, attempt.as_mut()).await
            }
        }
    });
    let Some(limit) = timeouts.run else { return watched.await };
    let late = |unstopped| Timeout { limit, kind: TimeoutKind::Run, unstopped };
    match select(watched, pin!(services.sleep(limit))).await {
        // While code blocks the thread, the timer cannot fire.
        Either::Left(_) if services.elapsed().saturating_sub(begun) > limit => Err(late(true).into()),
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(late(!stops).into()),
    }
}

/// Runs an attempt of a durable step within its timeout.
pub(crate) async fn in_time<T>(
    limit: Duration,
    services: &dyn Services,
    work: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    match select(pin!(work), pin!(services.sleep(limit))).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(Timeout { limit, kind: TimeoutKind::Step, unstopped: false }.into()),
    }
}

/// Runs an attempt until it is silent for longer than `limit`.
async fn run_until_silent<T>(
    (limit, stops): (Duration, bool),
    watched: WatchedTask<'_>,
    services: &dyn Services,
    mut attempt: Pin<&mut impl Future<Output = Result<T, BoxError>>>,
) -> Result<T, BoxError> {
    let late = |unstopped| Timeout { limit, kind: TimeoutKind::Idle, unstopped };
    loop {
        let heard = services.elapsed();
        let mut sign = pin!(watched.heard.notified());
        let silence = select(sign.as_mut(), services.sleep(limit));
        match select(attempt.as_mut(), silence).await {
            Either::Left((result, silence)) => {
                drop(silence);
                let is_late = services.elapsed().saturating_sub(heard) > limit;
                let was_silent = is_late && sign.now_or_never().is_none();
                return if was_silent { Err(late(true).into()) } else { result };
            }
            Either::Right((Either::Left(_), _)) => {}
            Either::Right((Either::Right(_), _)) => return Err(late(!stops).into()),
        }
    }
}
