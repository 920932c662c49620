//! Tasks: a turn that runs, its frames, its cancellation, its end.
//!
//! The id of a task is that of its thread. The thread is all that is kept of it, so every process with the
//! same store can cancel it, look at it, and go on with it after a kill. How a task ended is written once, as
//! a commit of its thread, which no later one replaces.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use agentgraph::prelude::*;
use agentgraph::run::{OpenReason, RunBuilder};
use agentgraph::{Code, Error, Event, EventStream};
use futures_util::{Stream, StreamExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::state::{Turn, TurnUpdate};
use super::{ShopAgent, node};
use crate::wire::{ErrorFrame, Frame, RunRequest};

/// How long a cancel waits for the end of the run, which another process may have.
const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Frames that may be unread. A turn has fewer, so a slow reader does not hold up the run.
const UNREAD_FRAMES: usize = 256;

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// It runs, or will go on when a process with its store starts.
    Running,
    /// It was cancelled, or its reader has left.
    Cancelled,
    /// It has answered.
    FinishedWithSuccess,
    /// It has failed.
    FinishedWithError,
}

/// The answer to a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// The task is cancelled.
    Cancelled,
    /// It had ended before, in this way.
    Ended(TaskStatus),
    /// There is no such task.
    Unknown,
}

/// What is kept of a task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskReport {
    /// How far it is.
    pub status: TaskStatus,
    /// Its frames so far; the answer is the last one.
    pub frames: Vec<Frame>,
}

/// One event of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Item {
    /// A frame.
    Frame(Box<Frame>),
    /// The error with which it ends.
    Error(ErrorFrame),
}

/// A task that has begun.
pub struct RunningTask {
    /// Its id.
    pub id: String,
    /// Its frames.
    pub frames: Frames,
}

/// The frames of a task, as they are made. Ends after the answer or the error; after a cancellation at once.
/// Dropping it cancels the task.
pub struct Frames {
    unread: mpsc::Receiver<Item>,
    cancel: CancellationToken,
}

impl Stream for Frames {
    type Item = Item;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Item>> {
        // Also the frames that were made before the cancellation: a client would take their session for the
        // newest.
        if self.cancel.is_cancelled() {
            return std::task::Poll::Ready(None);
        }
        self.unread.poll_recv(context)
    }
}

/// The tasks of this process.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Mutex<HashMap<String, CancellationToken>>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self, id: &str) -> Option<CancellationToken> {
        self.lock().get(id).cloned()
    }
}

impl ShopAgent {
    /// Begins a task. Its thread is stored when this returns, so that it can be cancelled from anywhere.
    pub async fn start(&self, request: RunRequest) -> RunningTask {
        let id = uuid::Uuid::new_v4().to_string();
        let (frames, unread) = mpsc::channel(UNREAD_FRAMES);
        let cancel = CancellationToken::new();
        let mut events = self.call(self.graph.invoke(Turn::begin(request)), &id, &cancel).stream();
        // The first task starts after the input is stored.
        let first = events.next().await;
        let agent = self.clone();
        let run = Drive { agent, id: id.clone(), frames: Some(frames), answer: None, cancel: cancel.clone() };
        tokio::spawn(run.drive(first, events));
        RunningTask { id, frames: Frames { unread, cancel } }
    }

    fn call(&self, call: RunBuilder<Turn>, id: &str, cancel: &CancellationToken) -> RunBuilder<Turn> {
        self.running.lock().insert(id.to_owned(), cancel.clone());
        call.thread(id)
            .context(self.shop.clone())
            .max_supersteps(self.limits.nodes)
            .deadline(self.limits.turn_time)
            .cancel(cancel.clone())
            .views([View::Updates, View::Tasks])
    }

    /// Cancels a task, of this process or of another one over the same store.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn cancel(&self, id: &str) -> Result<CancelAnswer, Error> {
        let token = self.running.token(id);
        match self.status(id).await? {
            None => return Ok(CancelAnswer::Unknown),
            Some(TaskStatus::Running) => {}
            Some(ended) => return Ok(CancelAnswer::Ended(ended)),
        }
        if let Some(token) = token {
            token.cancel();
        }
        // An error of the time means a process that hangs; the task is then not its own any more.
        let asked = self.graph.cancel(id).until_ended().into_future();
        if let Ok(answer) = tokio::time::timeout(CANCEL_WAIT, asked).await {
            answer?;
        }
        Ok(match self.end(id, TaskStatus::Cancelled).await? {
            TaskStatus::Cancelled => CancelAnswer::Cancelled,
            other => CancelAnswer::Ended(other),
        })
    }

    /// How far a task is; `None` if there is no such task.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn status(&self, id: &str) -> Result<Option<TaskStatus>, Error> {
        Ok(self.kept(id).await?.map(|(status, _)| status))
    }

    /// What is kept of a task; `None` if there is no such task.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn report(&self, id: &str) -> Result<Option<TaskReport>, Error> {
        let Some((status, turn)) = self.kept(id).await? else { return Ok(None) };
        // A side branch may have ended after the answer was made.
        let (mut frames, answers): (Vec<_>, Vec<_>) =
            turn.frames.into_iter().partition(|frame| frame.node != node::CUSTOMER_RESPONSE);
        let is_answered = status == TaskStatus::FinishedWithSuccess;
        frames.extend(answers.into_iter().rfind(|_| is_answered));
        Ok(Some(TaskReport { status, frames }))
    }

    async fn kept(&self, id: &str) -> Result<Option<(TaskStatus, Turn)>, Error> {
        let Some(found) = self.graph.state(id).await? else { return Ok(None) };
        let is_finished = found.finished && found.failures.is_empty();
        let by_itself = if is_finished { TaskStatus::FinishedWithSuccess } else { TaskStatus::Running };
        Ok(Some((found.values.ended.unwrap_or(by_itself), found.values)))
    }

    /// Writes how a task has ended, unless it has ended already. Returns how it did.
    async fn end(&self, id: &str, how: TaskStatus) -> Result<TaskStatus, Error> {
        loop {
            match self.status(id).await? {
                Some(TaskStatus::Running) => {}
                Some(ended) => return Ok(ended),
                None => return Ok(how),
            }
            match self.graph.update_state(id).update(Turn::update().ended(Some(how))).await {
                Ok(_) => return Ok(how),
                // Another process writes it, or takes the run over. What it has written counts.
                Err(error) if matches!(error.code(), Code::Stale | Code::ThreadBusy) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on with the tasks that a process left in their middle when it was killed.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn go_on(&self) -> Result<usize, Error> {
        let mut continued = 0;
        for id in self.saver.threads().await? {
            if self.status(&id).await? != Some(TaskStatus::Running) || self.running.token(&id).is_some() {
                continue;
            }
            let Some(report) = self.graph.report(&id).await? else { continue };
            if report.open.iter().any(|open| matches!(open.why, OpenReason::Failed(_))) {
                self.end(&id, TaskStatus::FinishedWithError).await?;
                continue;
            }
            let cancel = CancellationToken::new();
            let mut events = self.call(self.graph.proceed(), &id, &cancel).stream();
            let (agent, id) = (self.clone(), id.clone());
            // The thread of a dead process is free after a second; that of a living one is refused.
            let run = Drive { agent, id, frames: None, answer: None, cancel };
            tokio::spawn(async move {
                let first = events.next().await;
                run.drive(first, events).await;
            });
            continued += 1;
        }
        Ok(continued)
    }

    /// Forgets the tasks whose last step is older than this.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget(&self, age: Duration) -> Result<usize, Error> {
        let mut forgotten = 0;
        for id in self.saver.threads().await? {
            let Some(found) = self.graph.state(&id).await? else { continue };
            let is_old = SystemTime::now().duration_since(found.created).is_ok_and(|since| since > age);
            if is_old && self.running.token(&id).is_none() {
                self.graph.delete_thread(&id).await?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }
}

/// A run on its way. It has a task of its own, so that it does not wait for its reader.
struct Drive {
    agent: ShopAgent,
    id: String,
    /// `None` for a run that goes on after a kill, whose reader asks for the report.
    frames: Option<mpsc::Sender<Item>>,
    /// The answer, which is held back until the side branches have ended: clients take the last frame for it.
    answer: Option<Box<Frame>>,
    cancel: CancellationToken,
}

impl Drive {
    async fn drive(mut self, first: Option<Event<Turn>>, mut events: EventStream<Turn>) {
        let mut next = first;
        while let Some(event) = next {
            match event.kind {
                EventKind::Update { node, update: Some(update) } => self.pass_on(&node, &update).await,
                EventKind::Ended(outcome) => {
                    self.ended(outcome).await;
                    break;
                }
                _ => {}
            }
            next = match &self.frames {
                Some(frames) => tokio::select! {
                    next = events.next() => next,
                    // The reader has left.
                    () = frames.closed() => {
                        self.cancel.cancel();
                        self.frames = None;
                        events.next().await
                    }
                },
                None => events.next().await,
            };
        }
        self.agent.running.lock().remove(&self.id);
    }

    /// Sends the frames of a node.
    async fn pass_on(&mut self, from: &str, update: &TurnUpdate) {
        let shown = self.agent.graph.update_json(update).map(|mut shown| shown["frames"].take());
        let frames: Vec<Frame> = match shown.map(serde_json::from_value::<Option<Vec<Frame>>>) {
            Ok(Ok(frames)) => frames.unwrap_or_default(),
            problem => {
                tracing::error!(?problem, from, "a frame cannot be shown");
                return;
            }
        };
        for frame in frames.into_iter().map(Box::new) {
            if frame.node == node::CUSTOMER_RESPONSE {
                self.answer = Some(frame);
            } else {
                self.send(Item::Frame(frame)).await;
            }
        }
    }

    async fn send(&self, item: Item) {
        if let Some(frames) = &self.frames {
            // An error means that the reader has left.
            let _ = frames.send(item).await;
        }
    }

    async fn ended(&mut self, outcome: Result<Outcome<Turn>, Error>) {
        let how = match outcome {
            Ok(Outcome::Finished { .. }) => None,
            // The limit has been reached: the answer says what was found.
            Ok(Outcome::Stopped { reason: StopReason::Limit, .. }) => Some(TaskStatus::FinishedWithSuccess),
            Ok(Outcome::Stopped { reason: StopReason::Cancelled, .. }) => {
                self.answer = None;
                // Frames that were not sent yet are dropped, also if another process cancelled the task.
                self.cancel.cancel();
                Some(TaskStatus::Cancelled)
            }
            Ok(stopped) => {
                self.fail(format!("{:?}", stopped.status()), "deadline", true).await;
                Some(TaskStatus::FinishedWithError)
            }
            // Another process has it.
            Err(error) if self.frames.is_none() && error.code() == Code::ThreadBusy => return,
            Err(error) => {
                self.fail(error.to_string(), error.code().as_str(), error.code() != Code::NodeFailed).await;
                Some(TaskStatus::FinishedWithError)
            }
        };
        if let Some(how) = how
            && let Err(error) = self.agent.end(&self.id, how).await
        {
            tracing::error!(%error, task = self.id, "the end of the task cannot be stored");
        }
        if let Some(answer) = self.answer.take() {
            self.send(Item::Frame(answer)).await;
        }
    }

    /// The customer's side gets a code and no cause: causes name addresses and models.
    async fn fail(&mut self, cause: String, code: &str, retry: bool) {
        tracing::error!(cause, task = self.id, "the task has failed");
        self.answer = None;
        let error = "Something went wrong on our side. Please try again.".to_owned();
        self.send(Item::Error(ErrorFrame { error, code: code.to_owned(), retry })).await;
    }
}
