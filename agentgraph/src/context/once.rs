//! Durable steps: work inside a node whose result is stored, so that it is not done again when the node runs
//! again.
//!
//! The future of a step does not store anything itself. It puts the result into the cell of its task and
//! waits; the loop finds it there, stores it beside the running tasks, and wakes the future.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Ctx, RunShared, TaskRequest};
use crate::error::BoxError;
use crate::record::bytes::Bytes;
use crate::record::once::{OnceCall, OnceKey, StoredOnce};
use agentgraph_checkpoint::delta::{decode, encode};

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
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
    pub fn once<T, F>(&self, name: impl Into<Cow<'static, str>>, work: F) -> DurableStep<T, F>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, BoxError>>,
    {
        let name = name.into().into_owned();
        DurableStep::new(self, |results| results.next_key(name), work)
    }

    /// [`once`](Ctx::once) with a key instead of an index among the calls of that name: for work whose order
    /// is not fixed, such as one call for each of several parallel results.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
    /// let texts = graph.resume(true).thread("t-1").await?.into_finished()?;
    /// assert_eq!(texts.pages, ["text of /a", "text of /b"]);
    /// assert_eq!(FETCHED.load(Ordering::Relaxed), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`once`](Ctx::once); also if a step with an equal name and key is running.
    pub fn once_for<T, F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        key: impl Into<String>,
        work: F,
    ) -> DurableStep<T, F>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, BoxError>>,
    {
        let key = OnceKey { name: name.into().into_owned(), call: OnceCall::Key(key.into()) };
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
    /// The task runs on a host, which cannot store results for its run.
    #[error("the durable step `{0}` is in a task that a host runs elsewhere, where no result can be stored")]
    OnHost(String),
}

tokio::task_local! {
    /// The task whose durable step is polled: the address of its run, and its index.
    static POLLED: (usize, u32);
}

/// A result in MessagePack.
type Encoded = Arc<[u8]>;

/// Where the results of durable steps go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnceStorage {
    /// To the store.
    Kept,
    /// Nowhere: retries in the same call see them.
    #[default]
    InMemory,
    /// The task runs on a host, apart from its run.
    Host,
}

/// The durable steps of one task: results of earlier calls, and those of the running attempt.
#[derive(Debug, Default)]
pub(crate) struct OnceResults {
    results: BTreeMap<OnceKey, OnceResult>,
    /// The number of calls without a key in the attempt, by name.
    calls: HashMap<String, u32>,
    running: HashSet<OnceKey>,
    /// The number of calls of the node's function, by which a step of an earlier one is told from those of
    /// the current one.
    call: u64,
    /// The number of results that have a slot in the store.
    slots: u32,
}

#[derive(Debug)]
enum OnceResult {
    Stored(Encoded),
    Unstored { value: Encoded, waker: Waker, is_taken: bool },
}

/// A result that the loop is to store: the index of its task, its place among the task's results, and itself.
#[derive(Debug)]
pub(crate) struct NewOnce {
    pub(crate) index: u32,
    pub(crate) slot: u32,
    pub(crate) result: StoredOnce,
}

impl OnceResults {
    pub(crate) fn of(stored: Vec<(u32, StoredOnce)>) -> Self {
        let slots = stored.iter().map(|(slot, _)| slot.saturating_add(1)).max().unwrap_or(0);
        let results = stored.into_iter();
        let results = results.map(|(_, one)| (one.key, OnceResult::Stored(Arc::from(one.value.0))));
        OnceResults { results: results.collect(), slots, ..OnceResults::default() }
    }

    /// The node's function is called again, and calls its steps from the start.
    pub(crate) fn begin_call(&mut self) {
        self.calls.clear();
        self.running.clear();
        self.call += 1;
    }

    fn next_key(&mut self, name: String) -> OnceKey {
        let next = self.calls.entry(name.clone()).or_default();
        let nth = *next;
        *next = next.saturating_add(1);
        OnceKey { name, call: OnceCall::Nth(nth) }
    }

    /// Starts a step. Returns its result if an earlier attempt has done it.
    fn begin(&mut self, key: &OnceKey) -> Result<Option<Encoded>, OnceError> {
        let found = match self.results.get(key) {
            Some(OnceResult::Stored(value)) => return Ok(Some(Arc::clone(value))),
            // An attempt before this one may have been dropped while the result was being stored.
            Some(OnceResult::Unstored { value, .. }) => Some(Arc::clone(value)),
            None => None,
        };
        match &key.call {
            _ if self.running.insert(key.clone()) => Ok(found),
            OnceCall::Key(own) => Err(OnceError::SameKey { name: key.name.clone(), key: own.clone() }),
            OnceCall::Nth(_) => Err(OnceError::TooLate),
        }
    }

    /// Adds a result that is to be stored, or that `is_stored` as far as it ever will be.
    fn put(&mut self, key: &OnceKey, value: Encoded, waker: &Waker, is_stored: bool) {
        let result = if is_stored {
            OnceResult::Stored(value)
        } else {
            OnceResult::Unstored { value, waker: waker.clone(), is_taken: false }
        };
        self.results.insert(key.clone(), result);
    }

    /// Whether a result is stored. The waker is called when it is.
    fn poll_stored(&mut self, key: &OnceKey, cx: &mut Context<'_>) -> Poll<()> {
        match self.results.get_mut(key) {
            Some(OnceResult::Unstored { waker, .. }) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            Some(OnceResult::Stored(_)) | None => Poll::Ready(()),
        }
    }

    /// Takes the results that are to be stored.
    pub(crate) fn take_unstored(&mut self, index: u32, into: &mut Vec<NewOnce>) {
        for (key, result) in &mut self.results {
            if let OnceResult::Unstored { value, is_taken: is_taken @ false, .. } = result {
                *is_taken = true;
                let result = StoredOnce { key: key.clone(), value: Bytes(value.to_vec()) };
                into.push(NewOnce { index, slot: self.slots, result });
                self.slots = self.slots.saturating_add(1);
            }
        }
    }

    /// Records that a result is stored. Returns the waker of the step that waits for it.
    pub(crate) fn mark_stored(&mut self, key: &OnceKey) -> Option<Waker> {
        let result = self.results.get_mut(key)?;
        let OnceResult::Unstored { value, waker, .. } = result else { return None };
        let value = Arc::clone(value);
        let waker = waker.clone();
        *result = OnceResult::Stored(value);
        Some(waker)
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
    Works,
    /// The work is done and its result is being stored.
    Stores(T),
    Over,
}

/// A step under way. Dropping it lets a later call run the step.
struct RunningStep {
    shared: Arc<RunShared>,
    request: TaskRequest,
    key: OnceKey,
    /// The call of the node's function that it belongs to.
    call: u64,
}

impl<T, F> DurableStep<T, F> {
    fn new(ctx: &Ctx, key: impl FnOnce(&mut OnceResults) -> OnceKey, work: F) -> Self {
        let (progress, step) = match begin(ctx, key) {
            Ok((step, None)) => (Progress::Works, Some(step)),
            Ok((step, Some(found))) => (Progress::Found(found), Some(step)),
            Err(refused) => (Progress::Refused(refused), None),
        };
        DurableStep { work, progress, step, result: PhantomData }
    }
}

/// Starts a step, or finds its result.
fn begin(
    ctx: &Ctx,
    key: impl FnOnce(&mut OnceResults) -> OnceKey,
) -> Result<(RunningStep, Option<Encoded>), OnceError> {
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
        Ok((RunningStep { shared: Arc::clone(shared), request, key, call: results.call }, found))
    });
    begun.unwrap_or(Err(OnceError::TooLate))
}

/// The task, for [`POLLED`].
fn place_of(shared: &Arc<RunShared>, request: TaskRequest) -> (usize, u32) {
    (Arc::as_ptr(shared) as usize, request.index)
}

impl<T, F> Future for DurableStep<T, F>
where
    T: Serialize + DeserializeOwned,
    F: Future<Output = Result<T, BoxError>>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match std::mem::replace(this.progress, Progress::Over) {
                Progress::Refused(refused) => return Poll::Ready(Err(refused.into())),
                Progress::Found(value) => {
                    let Some(step) = this.step.as_ref() else {
                        return Poll::Ready(Err(OnceError::TooLate.into()));
                    };
                    if step.poll_stored(cx).is_pending() {
                        *this.progress = Progress::Found(value);
                        return Poll::Pending;
                    }
                    let result = read(&step.key.name, &value);
                    *this.step = None;
                    return Poll::Ready(result);
                }
                Progress::Works => {
                    let Some(step) = this.step.as_ref() else {
                        return Poll::Ready(Err(OnceError::TooLate.into()));
                    };
                    let place = place_of(&step.shared, step.request);
                    let value = match POLLED.sync_scope(place, || this.work.as_mut().poll(cx)) {
                        Poll::Pending => {
                            *this.progress = Progress::Works;
                            return Poll::Pending;
                        }
                        Poll::Ready(Err(error)) => {
                            *this.step = None;
                            return Poll::Ready(Err(error));
                        }
                        Poll::Ready(Ok(value)) => value,
                    };
                    step.put(&value, cx)?;
                    *this.progress = Progress::Stores(value);
                }
                Progress::Stores(value) => {
                    let stored = this.step.as_ref().map_or(Poll::Ready(()), |step| step.poll_stored(cx));
                    if stored.is_pending() {
                        *this.progress = Progress::Stores(value);
                        return Poll::Pending;
                    }
                    *this.step = None;
                    return Poll::Ready(Ok(value));
                }
                Progress::Over => return Poll::Pending,
            }
        }
    }
}

fn read<T: DeserializeOwned>(name: &str, value: &[u8]) -> Result<T, BoxError> {
    decode(value)
        .map_err(|error| OnceError::OtherType { name: name.to_owned(), problem: error.to_string() }.into())
}

impl RunningStep {
    /// Puts the result where the loop finds it.
    fn put<T: Serialize>(&self, value: &T, cx: &mut Context<'_>) -> Result<(), OnceError> {
        let RunningStep { shared, request, key, call } = self;
        let mut bytes = Vec::new();
        encode(&mut bytes, value)
            .map_err(|error| OnceError::NotStorable { name: key.name.clone(), problem: error.to_string() })?;
        shared.beat(*request);
        let is_kept = shared.control.once_storage() == OnceStorage::Kept;
        if !is_kept {
            shared.control.warn_of_once(&key.name);
        }
        let put = shared.control.once(*request, |results| {
            let is_current = results.call == *call;
            if is_current {
                results.put(key, Arc::from(bytes), cx.waker(), !is_kept);
            }
            is_current
        });
        if put != Some(true) {
            return Err(OnceError::TooLate);
        }
        if is_kept {
            shared.control.note_unstored();
        }
        Ok(())
    }

    fn poll_stored(&self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.shared.control.once(self.request, |results| results.poll_stored(&self.key, cx));
        // A task that has ended waits for nothing.
        polled.unwrap_or(Poll::Pending)
    }
}

impl Drop for RunningStep {
    fn drop(&mut self) {
        self.shared.control.leave_once(self.request, |results| {
            if results.call == self.call {
                results.running.remove(&self.key);
            }
        });
    }
}
