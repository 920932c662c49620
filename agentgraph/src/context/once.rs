//! Durable steps: work inside a node whose result is stored, so that it is not done again when the node runs
//! again.
//!
//! The future of a step does not store anything itself. It puts the result into the cell of its task and
//! waits; the loop finds it there, stores it beside the running tasks, and wakes the future.

mod results;
mod running;
mod settings;

pub(crate) use results::{Counted, NewOnce, OnceResults, OnceStorage};
pub use settings::StepSettings;

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::results::Encoded;
use self::running::RunningStep;
use super::{Ctx, RunShared, TaskRequest};
use crate::error::BoxError;
use crate::record::once::{OnceCall, OnceKey};
use crate::words::{DoneStep, StepEvent};
use agentgraph_checkpoint::delta::decode;

impl Ctx {
    /// Does a piece of work once, however often this node runs: a payment, a call of a model, a random
    /// number. The result is stored before the future is ready. When the node runs again, after an
    /// interrupt, a retry or a kill, `work` is dropped unpolled and the future gives back the stored result.
    ///
    /// Until its result is stored, work is done *at least* once: a process that is killed between the work
    /// and the commit of its result does it again. So an effect on another system still needs an
    /// idempotency key there. Errors are not stored; the work is done again in the next attempt.
    ///
    /// A step is recognized by its name and by which call of that name it is in the attempt, counted when
    /// `once` is called. So the order between steps of different names may change from attempt to attempt,
    /// and steps of one name must be called in a fixed order; where it is not fixed, use
    /// [`once_for`](Ctx::once_for) with a key. Several steps may run at the same time.
    ///
    /// Results belong to the task: another task of the same node, the handler of its failure, another run, a
    /// fork and a replay have their own. They are dropped when the task is committed. Without a
    /// checkpointer, with [`Durability::Exit`](crate::Durability) and in a subgraph with
    /// [`Memory::None`](crate::subgraph::Memory) the result survives retries in the same call only, which a
    /// warning says.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { receipt: u32 }
    /// static PAYMENTS: AtomicU32 = AtomicU32::new(0);
    ///
    /// async fn pay(ctx: Ctx) -> Result<OrderUpdate> {
    ///     let receipt = ctx.once("pay", async { Ok(PAYMENTS.fetch_add(1, Ordering::Relaxed)) }).await?;
    ///     let _: bool = ctx.interrupt("paid, shall it be sent?")?; // the node runs again with the answer
    ///     Ok(Order::update().receipt(receipt))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?.checkpointer(MemorySaver::new());
    /// graph.invoke(Order::update()).thread("t-1").await?;
    /// graph.resume(true).thread("t-1").await?;
    /// assert_eq!(PAYMENTS.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `work`, or an [`OnceError`]. If the result cannot be stored because the store fails, the
    /// run ends and the future is dropped.
    pub fn once<T, F>(&self, name: impl AsRef<str>, work: F) -> DurableStep<T, F>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, BoxError>>,
    {
        let name = name.as_ref().to_owned();
        DurableStep::new(self, |results| OnceKey::next(results, name), work)
    }

    /// [`once`](Ctx::once) with a key instead of an index among the calls of that name: for work whose order
    /// is not fixed, such as one call for each of several parallel results. A key is a text, a number, or
    /// another value with a text, such as a UUID. Keys with equal texts are equal: `7` and `"7"` are one key.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Texts { pages: Vec<String> }
    /// static FETCHED: AtomicU32 = AtomicU32::new(0);
    ///
    /// async fn fetch(url: &str) -> Result<String> {
    ///     FETCHED.fetch_add(1, Ordering::Relaxed);
    ///     Ok(format!("text of {url}"))
    /// }
    ///
    /// async fn fetch_all(ctx: Ctx) -> Result<TextsUpdate> {
    ///     let pages = ["/a", "/b"].map(|url| ctx.once_for("fetch", url, fetch(url)));
    ///     let pages = futures_util::future::try_join_all(pages).await?;
    ///     let _: bool = ctx.interrupt("publish?")?; // the node runs again with the answer
    ///     Ok(Texts::update().pages(pages))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("fetch_all", fetch_all).edge(START, "fetch_all");
    /// let graph = graph.compile()?.checkpointer(MemorySaver::new());
    /// graph.invoke(Texts::update()).thread("t-1").await?;
    /// let texts = graph.resume(true).thread("t-1").finish().await?;
    /// assert_eq!(texts.pages, ["text of /a", "text of /b"]);
    /// assert_eq!(FETCHED.load(Ordering::Relaxed), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`once`](Ctx::once); also if a step with an equal name and key is running.
    pub fn once_for<T, F>(&self, name: impl AsRef<str>, key: impl fmt::Display, work: F) -> DurableStep<T, F>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, BoxError>>,
    {
        let key = OnceKey { name: name.as_ref().to_owned(), call: OnceCall::Key(key.to_string()) };
        DurableStep::new(self, |_| key, work)
    }
}

/// A wrong use of a durable step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// A step was called inside the work of another one of the same task.
    #[error(
        "the durable step `{0}` is called inside another one, whose stored result would hide it: call one after the other"
    )]
    Nested(String),
    /// Two steps with one name and key run at the same time.
    #[error(
        "two durable steps `{name}` with the key {key:?} run at the same time: give each a key of its own"
    )]
    SameKey {
        /// The name.
        name: String,
        /// The key.
        key: String,
    },
    /// The stored result has another type than the step expects now.
    #[error(
        "the stored result of the durable step `{name}` has another type than the step has now ({problem}): give the \
         changed step a new name, or give the run up with `.abandon()`"
    )]
    OtherType {
        /// The name.
        name: String,
        /// The decoder's message.
        problem: String,
    },
    /// The result cannot be stored.
    #[error("the result of the durable step `{name}` cannot be stored: {problem}")]
    NotStorable {
        /// The name.
        name: String,
        /// The encoder's message.
        problem: String,
    },
    /// The task of the context has ended, or its node was called again.
    #[error("a durable step belongs to a task that has ended: call it in the node's own future")]
    TooLate,
    /// The task runs on a host, in a process without a store for results.
    #[error(
        "the durable step `{0}` is in a task that a host runs in a process without a store for its result: give it one there, \
         with `run_task(..).once_in(..)`"
    )]
    OnHost(String),
    /// The task follows a [version](Ctx::version) that this program does not know.
    #[error(
        "the task follows version {version} of `{name}`, and this program knows {newest}: continue it with the newer program \
         that began it"
    )]
    NewerVersion {
        /// The name.
        name: String,
        /// The version of the task.
        version: u32,
        /// The newest version that the program knows.
        newest: u32,
    },
}

tokio::task_local! {
    /// The task whose durable step is polled: the address of its run, and its index.
    static POLLED: (usize, u32);
}

impl Ctx {
    /// The durable steps of the task that have results, in the order in which the results came.
    pub(crate) fn done_steps(&self) -> Vec<DoneStep> {
        let done = self.shared.control.done_steps(self.request);
        done.iter().map(|step| step.shown(self.node(), self.shared.namespace())).collect()
    }
}

/// Whether the work of a durable step is polled.
#[cfg(feature = "testing")]
pub(crate) fn is_in_once() -> bool {
    POLLED.try_with(|_| ()).is_ok()
}

impl OnceKey {
    /// The key of the next call of this name.
    fn next(results: &mut OnceResults, name: String) -> Self {
        let nth = results.next_index(Counted::Work, &name);
        OnceKey { name, call: OnceCall::Nth(nth) }
    }
}

pin_project! {
    /// The future of [`Ctx::once`].
    #[must_use = "a durable step does nothing until it is awaited"]
    pub struct DurableStep<T, F> {
        #[pin]
        work: F,
        progress: Progress<T>,
        step: Option<RunningStep>,
        result: PhantomData<fn() -> T>,
    }
}

/// The progress of a durable step.
enum Progress<T> {
    Refused(OnceError),
    /// An earlier attempt has done it.
    Found(Encoded),
    /// It has not been polled.
    Begins,
    Works,
    /// The work is done and its result is being stored.
    Stores(T),
    Over,
}

impl<T, F> DurableStep<T, F> {
    pub(super) fn new(ctx: &Ctx, key: impl FnOnce(&mut OnceResults) -> OnceKey, work: F) -> Self {
        DurableStep::of(begin(ctx, key), |_| work)
    }

    fn of(begun: Begun, work: impl FnOnce(Option<&RunningStep>) -> F) -> Self {
        let (progress, step) = match begun {
            Ok((step, None)) => (Progress::Begins, Some(step)),
            Ok((step, Some(found))) => (Progress::Found(found), Some(step)),
            Err(refused) => (Progress::Refused(refused), None),
        };
        DurableStep { work: work(step.as_ref()), progress, step, result: PhantomData }
    }
}

/// A started step, and its result if an earlier attempt has done it.
type Begun = Result<(RunningStep, Option<Encoded>), OnceError>;

/// Starts a step, or finds its result.
fn begin(ctx: &Ctx, key: impl FnOnce(&mut OnceResults) -> OnceKey) -> Begun {
    let shared = &ctx.shared;
    let request = ctx.request;
    let begun = shared.control.once(request, |results| {
        let key = key(results);
        if POLLED.try_with(|polled| *polled == place_of(shared, request)).unwrap_or(false) {
            return Err(OnceError::Nested(key.name));
        }
        if shared.control.once_storage() == OnceStorage::Host {
            return Err(OnceError::OnHost(key.name));
        }
        let found = results.begin(&key)?;
        Ok((RunningStep::new(shared, request, key, results.call), found))
    });
    begun.unwrap_or(Err(OnceError::TooLate))
}

/// The task, for [`POLLED`].
fn place_of(shared: &Arc<RunShared>, request: TaskRequest) -> (usize, u32) {
    (Arc::as_ptr(shared) as usize, request.index)
}

/// What the work of a step gives: a `Result<T, BoxError>`.
///
/// The lifetime of the error is a parameter, although it is `'static` in every use. Otherwise the compiler
/// cannot see that a combinator of steps is `Send` inside an `async fn`, where it forgets lifetimes.
pub trait StepResult: Sized {
    /// The value of `Ok`.
    type Value: Serialize + DeserializeOwned;

    /// The value, or the whole result if it is an error.
    #[doc(hidden)]
    fn into_value(self) -> Result<Self::Value, Self>;

    /// The text of the error.
    #[doc(hidden)]
    fn error_text(&self) -> String;

    #[doc(hidden)]
    fn of(result: Result<Self::Value, OnceError>) -> Self;
}

impl<'a, T: Serialize + DeserializeOwned> StepResult for Result<T, Box<dyn StdError + Send + Sync + 'a>> {
    type Value = T;

    fn into_value(self) -> Result<T, Self> {
        self.map_err(Err)
    }

    fn error_text(&self) -> String {
        self.as_ref().err().map(ToString::to_string).unwrap_or_default()
    }

    fn of(result: Result<T, OnceError>) -> Self {
        result.map_err(Into::into)
    }
}

impl<T, F> Future for DurableStep<T, F>
where
    T: Serialize + DeserializeOwned,
    F: Future,
    F::Output: StepResult<Value = T>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let Some(step) = this.step.as_ref() else {
            return match std::mem::replace(this.progress, Progress::Over) {
                Progress::Refused(refused) => Poll::Ready(StepResult::of(Err(refused))),
                _ => Poll::Pending,
            };
        };
        loop {
            match std::mem::replace(this.progress, Progress::Over) {
                Progress::Refused(_) | Progress::Over => return Poll::Pending,
                Progress::Found(value) => {
                    if step.poll_stored(cx).is_pending() {
                        *this.progress = Progress::Found(value);
                        return Poll::Pending;
                    }
                    step.report(StepEvent::Found);
                    let result = read(step.name(), &value);
                    *this.step = None;
                    return Poll::Ready(StepResult::of(result));
                }
                Progress::Begins => {
                    step.report(StepEvent::Started);
                    *this.progress = Progress::Works;
                }
                Progress::Works => {
                    let Poll::Ready(done) = POLLED.sync_scope(step.place(), || this.work.as_mut().poll(cx))
                    else {
                        *this.progress = Progress::Works;
                        return Poll::Pending;
                    };
                    let value = match done.into_value() {
                        Ok(value) => value,
                        Err(failed) => {
                            step.report_failure(|| failed.error_text());
                            *this.step = None;
                            return Poll::Ready(failed);
                        }
                    };
                    if let Err(refused) = step.put(&value, cx) {
                        *this.step = None;
                        return Poll::Ready(StepResult::of(Err(refused)));
                    }
                    *this.progress = Progress::Stores(value);
                }
                Progress::Stores(value) => {
                    if step.poll_stored(cx).is_pending() {
                        *this.progress = Progress::Stores(value);
                        return Poll::Pending;
                    }
                    step.report(StepEvent::Done);
                    *this.step = None;
                    return Poll::Ready(StepResult::of(Ok(value)));
                }
            }
        }
    }
}

fn read<T: DeserializeOwned>(name: &str, value: &[u8]) -> Result<T, OnceError> {
    decode(value).map_err(|error| OnceError::OtherType { name: name.to_owned(), problem: error.to_string() })
}
