//! The lease of a run: taken before its thread is read, renewed while it runs, released when it ends.
//!
//! A lease decides which run owns a thread, and the fence of the store decides which run may write: a run
//! that was suspended for longer than its lease cannot store anything once another run has taken the thread.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Persistence;
use super::stop::StopRequest;
use crate::error::{Code, Error};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::leases::leases_of;
use agentgraph_checkpoint::services::{Services, yield_now};
use agentgraph_checkpoint::{Checkpointer, Claim, HearsStops, HeldQuery, LeaseTerms, Place, lease_lost};

/// Length of a lease without renewal.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// Length of a lease in a store that ends with its process. No caller asks for a longer one, and the time has
/// to fit into the times of stores.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Greatest interval between two attempts of a run that waits for a thread.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Greatest interval between two looks for requests to stop a run, and at the clock.
const LOOK_FOR_STOPS: Duration = Duration::from_secs(1);

/// The leases of one graph's runs.
#[derive(Default)]
pub(crate) struct Keeper {
    held: Lock<HeldLeases>,
    /// Notifies when a task that renewed leases has ended with its runtime.
    unrenewed: Notify,
    /// The runs that wait for each thread, in order of arrival.
    lines: Lock<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

#[derive(Default)]
struct HeldLeases {
    leases: Vec<KeptLease>,
    renewer: Option<RenewalTask>,
    renewers: u64,
}

/// The task that renews leases.
struct RenewalTask {
    /// Distinguishes it from earlier ones.
    number: u64,
    /// The time of its last activity.
    seen: Instant,
}

struct KeptLease {
    thread: Arc<str>,
    fence: u64,
    lost: CancellationToken,
    stop: Arc<StopRequest>,
}

/// The store, services and keeper with which leases are taken.
pub(crate) struct LeaseSource<'a> {
    pub(in crate::persistence) saver: &'a Arc<dyn Checkpointer>,
    pub(in crate::persistence) services: &'a Arc<dyn Services>,
    pub(in crate::persistence) keeper: &'a Arc<Keeper>,
    pub(in crate::persistence) length: Duration,
}

/// A thread that a run owns. When it is dropped, the thread is released as soon as the store can.
pub(crate) struct RunLease {
    saver: Arc<dyn Checkpointer>,
    services: Arc<dyn Services>,
    keeper: Arc<Keeper>,
    thread: Arc<str>,
    fence: u64,
    lost: CancellationToken,
    stop: Arc<StopRequest>,
    /// `None` in a store that needs no renewal.
    renewal: Option<Renewal>,
}

/// The means to renew leases.
#[derive(Clone)]
struct Renewal {
    saver: Weak<dyn Checkpointer>,
    services: Arc<dyn Services>,
    length: Duration,
}

impl RunLease {
    /// The fence of everything that the run stores; 0 without a lease.
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    pub(crate) fn thread(&self) -> &str {
        &self.thread
    }

    /// Set when the run is asked to stop; `None` without a lease.
    pub(crate) fn stop_request(&self) -> Option<Arc<StopRequest>> {
        (self.fence > 0).then(|| Arc::clone(&self.stop))
    }
}

/// A thread that was taken.
pub(crate) struct TakenThread {
    pub(crate) lease: RunLease,
    /// Whether another run had the thread.
    pub(crate) replaces: bool,
}

impl<'a> LeaseSource<'a> {
    pub(crate) fn of(persistence: &'a Persistence, services: &'a Arc<dyn Services>) -> Self {
        let Persistence { saver, keeper, lease, .. } = persistence;
        LeaseSource { saver, services, keeper, length: (*lease).min(ENDLESS) }
    }
}

impl LeaseSource<'_> {
    /// Takes the thread if the store grants it at once; `None` if another run has it.
    pub(crate) async fn take(&self, thread: &Arc<str>) -> Result<Option<TakenThread>, Error> {
        self.ask(thread, false).await.map(|claim| self.granted(thread, claim, false))
    }

    /// Takes the thread; `None` if an active run has it.
    pub(crate) async fn take_free(&self, thread: &Arc<str>) -> Result<Option<TakenThread>, Error> {
        match self.ask(thread, false).await? {
            held @ Claim::Held { until, .. } if self.is_over(until) => self.outwait(thread, held).await,
            claim => Ok(self.granted(thread, claim, false)),
        }
    }

    /// Takes the thread from the run that has it, unless that run has ended by now.
    pub(crate) async fn seize(&self, thread: &Arc<str>) -> Result<TakenThread, Error> {
        if let Some(taken) = self.take(thread).await? {
            return Ok(taken);
        }
        let claim = self.ask(thread, true).await?;
        self.granted(thread, claim, true).ok_or_else(|| busy(thread))
    }

    /// Takes the thread when it is free, after the calls of this graph that have waited longer.
    pub(crate) async fn wait_for(&self, thread: &Arc<str>) -> Result<TakenThread, Error> {
        let line = self.keeper.line(thread);
        let _first = line.lock().await;
        loop {
            match self.ask(thread, false).await? {
                Claim::Granted { fence } => return Ok(self.taken(thread, fence, false)),
                held @ Claim::Held { until, .. } if self.is_over(until) => {
                    if let Some(taken) = self.outwait(thread, held).await? {
                        return Ok(taken);
                    }
                }
                Claim::Held { fence, until } => {
                    let left = until.duration_since(self.services.now()).unwrap_or_default();
                    let released = leases_of(&**self.saver).released(thread, fence);
                    let look_again = self.services.sleep(left.clamp(Duration::from_millis(1), LOOK_AGAIN));
                    select(pin!(released), pin!(look_again)).await;
                    // Services of tests sleep without waiting, and the run that has the thread may need this
                    // executor.
                    yield_now().await;
                }
            }
        }
    }

    fn is_over(&self, until: SystemTime) -> bool {
        until <= self.services.now()
    }

    /// Takes a thread whose lease has ended by time although its writer lives, unless the writer renews the
    /// lease (`None`). A writer that is only late, since the clock has jumped, renews it within one interval
    /// of the task that renews; one that is stopped, or whose runtime has ended, does not.
    async fn outwait(&self, thread: &Arc<str>, seen: Claim) -> Result<Option<TakenThread>, Error> {
        const LOOKS: u32 = 8;
        let patience = 2 * look_interval(self.length);
        for _ in 0..LOOKS {
            self.services.sleep(patience / LOOKS).await;
            yield_now().await;
            let claim = self.ask(thread, false).await?;
            if claim != seen {
                return Ok(self.granted(thread, claim, false));
            }
        }
        self.ask(thread, true).await.map(|claim| self.granted(thread, claim, false))
    }

    fn granted(&self, thread: &Arc<str>, claim: Claim, replaces: bool) -> Option<TakenThread> {
        match claim {
            Claim::Granted { fence } => Some(self.taken(thread, fence, replaces)),
            Claim::Held { .. } => None,
        }
    }

    async fn ask(&self, thread: &str, seize: bool) -> Result<Claim, Error> {
        let now = self.services.now();
        let terms = LeaseTerms { now, until: self.until(now), seize };
        Ok(leases_of(&**self.saver).acquire(thread, terms).await?)
    }

    fn until(&self, now: SystemTime) -> SystemTime {
        after(now, if self.saver.outlives_its_process() { self.length } else { ENDLESS })
    }

    fn taken(&self, thread: &Arc<str>, fence: u64, replaces: bool) -> TakenThread {
        let lost = CancellationToken::new();
        let stop = Arc::<StopRequest>::default();
        let renewal = (fence > 0 && self.saver.outlives_its_process()).then(|| Renewal {
            saver: Arc::downgrade(self.saver),
            services: Arc::clone(self.services),
            length: self.length,
        });
        if fence > 0 {
            let (lost, stop) = (lost.clone(), Arc::clone(&stop));
            self.keeper.keep(KeptLease { thread: Arc::clone(thread), fence, lost, stop });
        }
        if let Some(renewal) = &renewal {
            self.keeper.ensure_renewal(renewal);
        }
        let saver = Arc::clone(self.saver);
        let keeper = Arc::clone(self.keeper);
        let thread = Arc::clone(thread);
        let services = Arc::clone(self.services);
        TakenThread {
            lease: RunLease { saver, services, keeper, thread, fence, lost, stop, renewal },
            replaces,
        }
    }
}

fn after(now: SystemTime, length: Duration) -> SystemTime {
    now.checked_add(length).unwrap_or(now)
}

/// The error of a call on a thread that another run has.
pub(crate) fn busy(thread: &str) -> Error {
    let problem = "another run is active on it: wait for its end, or choose a policy with `.when_busy(..)`";
    Error::new(Code::ThreadBusy, problem).on_thread(Some(thread))
}

/// The result of a call that waits for its thread, or an error once it is cancelled.
pub(crate) async fn unless_cancelled<T>(
    thread: &str,
    cancel: Option<&CancellationToken>,
    waiting: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let Some(cancel) = cancel else { return waiting.await };
    cancel.run_until_cancelled(waiting).await.unwrap_or_else(|| {
        let problem = "the call was cancelled while it waited for its turn";
        Err(Error::new(Code::ThreadBusy, problem).on_thread(Some(thread)))
    })
}

impl RunLease {
    /// Releases the thread through that store, which may have something to store before.
    pub(crate) fn through(&mut self, saver: Arc<dyn Checkpointer>) {
        self.saver = saver;
    }

    /// Awaits `work` until it is done or the run has lost the thread.
    pub(crate) async fn run_while_held<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.fence == 0 {
            return work.await;
        }
        let work = self.lost.run_until_cancelled(work);
        let done = match &self.renewal {
            None => work.await,
            Some(renewal) => match select(pin!(work), pin!(self.keeper.stay_renewed(renewal))).await {
                Either::Left((done, _)) => done,
                Either::Right((never, _)) => match never {},
            },
        };
        done.unwrap_or_else(|| Err(lease_lost(&self.thread).into()))
    }

    /// The reason for the error of a call: another run may have taken the thread, or the thread was deleted,
    /// so that its records did not fit together. Nodes and the store fail for reasons of their own.
    pub(crate) async fn reason(&self, refused: Error) -> Error {
        if refused.node().is_some() || matches!(refused.code(), Code::Store | Code::LeaseLost) {
            return refused;
        }
        // A commit on a checkpoint that is gone shows a deletion without leases, and one that began before
        // the thread was taken and became visible after it.
        if refused.code() == Code::Stale
            && matches!(self.saver.get(Place::root(&self.thread), None).await, Ok(None))
        {
            return lease_lost(&self.thread).into();
        }
        if self.fence == 0 {
            return refused;
        }
        let length = self.renewal.as_ref().map_or(ENDLESS, |renewal| renewal.length);
        let until = after(self.services.now(), length);
        match leases_of(&*self.saver).renew(&self.thread, self.fence, until).await {
            Ok(false) => lease_lost(&self.thread).into(),
            // The refusal is reported even if the store fails now.
            Ok(true) | Err(_) => refused,
        }
    }

    /// Releases the thread. An error here is ignored: the lease ends without it, too.
    pub(crate) async fn end(mut self) {
        if self.fence > 0 {
            let released = leases_of(&*self.saver).release(&self.thread, self.fence).await;
            drop(released);
            self.keeper.forget(&self.thread, self.fence);
            // The drop of a lease that still has its fence releases the thread instead.
            self.fence = 0;
        }
    }
}

impl Drop for RunLease {
    fn drop(&mut self) {
        if self.fence > 0 {
            self.keeper.forget(&self.thread, self.fence);
            leases_of(&*self.saver).let_go(&self.thread, self.fence);
        }
    }
}

impl Keeper {
    fn line(&self, thread: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get(thread).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(thread.to_owned(), Arc::downgrade(&line));
        line
    }

    /// Records a lease, and notifies runs of this graph that had the thread.
    fn keep(&self, kept: KeptLease) {
        let mut held = self.held.lock();
        held.leases.retain(|other| {
            let replaced = other.thread == kept.thread;
            if replaced {
                other.lost.cancel();
            }
            !replaced
        });
        held.leases.push(kept);
    }

    /// Starts a task that renews all leases, if there is none. Returns false if no task renews: without a
    /// runtime there is none, and a lease ends when its time has passed.
    fn ensure_renewal(self: &Arc<Self>, renewal: &Renewal) -> bool {
        let mut held = self.held.lock();
        // A runtime that is no longer driven keeps its tasks and does not end.
        if held.renewer.as_ref().is_some_and(|renewer| renewer.seen.elapsed() < renewal.length) {
            return true;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
        held.renewers += 1;
        let number = held.renewers;
        held.renewer = Some(RenewalTask { number, seen: Instant::now() });
        // A runtime that is shutting down drops the task at once, and the drop takes the lock.
        drop(held);
        runtime.spawn(renew(Renewer { keeper: Arc::downgrade(self), number }, renewal.clone()));
        self.held.lock().renewer.is_some()
    }

    /// Ensures, while it is polled, that a task renews the leases: the present one may belong to a runtime
    /// that ends.
    async fn stay_renewed(self: &Arc<Self>, renewal: &Renewal) -> Infallible {
        loop {
            let mut ended = pin!(self.unrenewed.notified());
            ended.as_mut().enable();
            if !self.ensure_renewal(renewal) {
                // No task can renew here.
                return std::future::pending().await;
            }
            ended.await;
        }
    }

    fn forget(&self, thread: &str, fence: u64) {
        self.held.lock().leases.retain(|kept| kept.fence != fence || &*kept.thread != thread);
    }

    /// The leases that task `number` is to renew; `None` ends the task: there are none, or another task
    /// renews.
    fn to_renew(&self, number: u64) -> Option<Vec<(Arc<str>, u64)>> {
        let mut held = self.held.lock();
        let renewer = held.renewer.as_mut().filter(|renewer| renewer.number == number)?;
        renewer.seen = Instant::now();
        if held.leases.is_empty() {
            held.renewer = None;
            return None;
        }
        Some(held.leases.iter().map(|kept| (Arc::clone(&kept.thread), kept.fence)).collect())
    }

    /// The tokens that cancel this graph's present runs on a thread.
    pub(crate) fn runs_on(&self, thread: &str) -> Vec<CancellationToken> {
        let held = self.held.lock();
        let on_thread = held.leases.iter().filter(|kept| &*kept.thread == thread);
        on_thread.map(|kept| kept.lost.clone()).collect()
    }

    /// Whether a run of this graph has the lease.
    pub(crate) fn keeps(&self, thread: &str, fence: u64) -> bool {
        self.held.lock().leases.iter().any(|kept| kept.fence == fence && &*kept.thread == thread)
    }

    /// Passes the requests to stop that a store has for runs of this graph on to them. If the store fails
    /// now, it may succeed the next time.
    async fn look_for_stops(&self, saver: &dyn Checkpointer, now: SystemTime) {
        let query = HeldQuery { asked_to_stop: true, ..HeldQuery::at(now) };
        let asked = leases_of(saver).held(query).await.unwrap_or_default();
        asked.iter().for_each(|lease| self.asked_to_stop(&lease.thread, lease.fence));
    }

    fn lose(&self, thread: &str, fence: u64) {
        self.held.lock().leases.retain(|kept| {
            let lost = kept.fence == fence && &*kept.thread == thread;
            if lost {
                kept.lost.cancel();
            }
            !lost
        });
    }
}

impl HearsStops for Keeper {
    fn asked_to_stop(&self, thread: &str, fence: u64) {
        let is_asked = |kept: &&KeptLease| kept.fence == fence && &*kept.thread == thread;
        let stop = self.held.lock().leases.iter().find(is_asked).map(|kept| Arc::clone(&kept.stop));
        // Wakes the run, so the lock is not held.
        stop.iter().for_each(|stop| stop.ask());
    }
}

/// The task that renews the leases of a graph. When it is dropped, also with its runtime, another one can
/// start.
struct Renewer {
    keeper: Weak<Keeper>,
    number: u64,
}

impl Drop for Renewer {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.upgrade() else { return };
        let mut held = keeper.held.lock();
        if held.renewer.as_ref().is_some_and(|renewer| renewer.number == self.number) {
            held.renewer = None;
            drop(held);
            keeper.unrenewed.notify_waiters();
        }
    }
}

/// The number of leases of a graph that are renewed side by side.
const RENEWED_AT_ONCE: usize = 4;

/// How often the task that renews leases looks for requests to stop, and at the clock.
fn look_interval(length: Duration) -> Duration {
    LOOK_FOR_STOPS.min(length / 3)
}

/// Renews all leases of a graph, three times per length of a lease, while there are any, and looks for
/// requests to stop its runs. In between it owns nothing, so that dropping the graph closes its store.
///
/// Leases end by the wall clock, so a jump of that clock makes them due at the next look.
async fn renew(renewer: Renewer, renewal: Renewal) {
    let Renewal { saver, services, length } = renewal;
    let next = || (Instant::now() + length / 3, after(services.now(), length / 3));
    let mut due = next();
    loop {
        tokio::time::sleep_until(due.0.min(Instant::now() + look_interval(length))).await;
        let (Some(keeper), Some(saver)) = (renewer.keeper.upgrade(), saver.upgrade()) else { return };
        let Some(leases) = keeper.to_renew(renewer.number) else { return };
        keeper.look_for_stops(&*saver, services.now()).await;
        if Instant::now() < due.0 && services.now() < due.1 {
            continue;
        }
        due = next();
        // Several at once, so that a slow renewal does not delay the others.
        let renewed = stream::iter(leases).for_each_concurrent(RENEWED_AT_ONCE, async |(thread, fence)| {
            // A store that fails now may succeed the next time; if not, the fence decides.
            let until = after(services.now(), length);
            if let Ok(false) = leases_of(&*saver).renew(&thread, fence, until).await {
                keeper.lose(&thread, fence);
            }
        });
        renewed.await;
    }
}
