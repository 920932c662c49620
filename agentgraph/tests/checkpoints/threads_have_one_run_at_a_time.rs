//! A thread has one run at a time. A second call is refused, waits, or replaces the run. A run that lost
//! its thread stores nothing.
#![cfg(feature = "sqlite")]

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::Services;
use agentgraph::checkpoint::{Claim, LeaseTerms, Leases, Retention, SqliteSaver};
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::{Checkpointer, Code, Durability, Error, RunBuilder};
use tokio::sync::Semaphore;

use crate::common::clock::TokioClock;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text};
use crate::sqlite_folder::Folder;

/// A gate that lets one run through per opening.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) opens: Arc<Semaphore>,
    waits: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate { opens: Arc::new(Semaphore::new(0)), waits: Arc::new(Semaphore::new(0)) }
    }

    pub(crate) async fn pass(&self) {
        self.waits.add_permits(1);
        self.opens.acquire().await.unwrap().forget();
    }

    /// Waits until a run waits at the gate.
    pub(crate) async fn wait_for_run(&self) {
        self.waits.acquire().await.unwrap().forget();
    }

    pub(crate) fn open(&self) {
        self.opens.add_permits(1);
    }
}

/// Returns a graph that writes `first`, waits at the gate, and writes `slow` and `last`.
fn gated(gate: &Gate, saver: impl Checkpointer) -> CompiledGraph<Words> {
    let gate = gate.clone();
    let slow = move || {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Words::update().seen(["slow"])
        }
    };
    let graph = StateGraph::new().node("first", says("first")).node("slow", slow).node("last", says("last"));
    let graph = graph.edge(START, "first").edge("first", "slow").edge("slow", "last");
    graph.compile().unwrap().checkpointer(saver)
}

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

/// Returns pairs of savers, each pair on one store: one memory, one SQLite saver, two SQLite savers of
/// one file.
pub(crate) async fn savers(folder: &Folder) -> Vec<[Arc<dyn Checkpointer>; 2]> {
    let memory: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    let open = async |path| Arc::new(SqliteSaver::open(path).await.unwrap()) as Arc<dyn Checkpointer>;
    let alone = folder.fresh();
    let shared = open(&alone).await;
    let path = folder.fresh();
    vec![[Arc::clone(&memory), memory], [Arc::clone(&shared), shared], [open(&path).await, open(&path).await]]
}

fn in_background(run: RunBuilder<Words>) -> tokio::task::JoinHandle<Result<Outcome<Words>, Error>> {
    tokio::spawn(run.into_future())
}

async fn words(graph: &CompiledGraph<Words>) -> String {
    text(&graph.state("t").await.unwrap().unwrap().values)
}

#[tokio::test]
async fn a_second_run_is_refused() {
    let folder = Folder::new();
    for [saver, other] in savers(&folder).await {
        let gate = Gate::new();
        let graph = gated(&gate, saver);
        let elsewhere = gated(&gate, other);
        let first = in_background(graph.invoke(said("i")).thread("t"));
        gate.wait_for_run().await;
        for second in [elsewhere.invoke(said("j")).abandon(), elsewhere.proceed(), elsewhere.resume("x")] {
            let error = second.thread("t").await.unwrap_err();
            assert_eq!((error.code(), error.thread()), (Code::ThreadBusy, Some("t")));
        }
        let edit = elsewhere.update_state("t").update(said("k")).await.unwrap_err();
        assert_eq!(edit.code(), Code::ThreadBusy);
        assert_eq!(words(&elsewhere).await, "i first", "reading needs no lease");
        let beside = in_background(elsewhere.invoke(said("j")).thread("u"));
        gate.wait_for_run().await;
        gate.opens.add_permits(2);
        assert_eq!(text(first.await.unwrap().unwrap().output()), "i first slow last");
        assert_eq!(text(beside.await.unwrap().unwrap().output()), "j first slow last");
        gate.open();
        elsewhere.invoke(said("j")).thread("t").await.unwrap();
    }
}

#[tokio::test]
async fn queued_calls_run_in_the_order_of_arrival() {
    let folder = Folder::new();
    for [saver, _] in savers(&folder).await {
        let gate = Gate::new();
        let graph = gated(&gate, saver);
        let mut calls = Vec::new();
        for word in ["1", "2", "3", "4"] {
            let call = graph.invoke(said(word)).thread("t").when_busy(WhenBusy::Queue);
            calls.push(in_background(call));
            tokio::task::yield_now().await;
        }
        gate.opens.add_permits(4);
        for call in calls {
            call.await.unwrap().unwrap();
        }
        let turn = |word: &str| format!("{word} first slow last");
        assert_eq!(words(&graph).await, ["1", "2", "3", "4"].map(turn).join(" "));
    }
}

#[tokio::test(start_paused = true)]
async fn a_queued_call_notices_that_another_saver_released_the_thread() {
    let folder = Folder::new();
    let path = folder.fresh();
    let gate = Gate::new();
    let graph = gated(&gate, SqliteSaver::open(&path).await.unwrap());
    let elsewhere = gated(&gate, SqliteSaver::open(&path).await.unwrap());
    let first = in_background(graph.invoke(said("i")).thread("t"));
    gate.wait_for_run().await;
    let second = in_background(elsewhere.invoke(said("j")).thread("t").when_busy(WhenBusy::Queue));
    gate.opens.add_permits(2);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(words(&graph).await, "i first slow last j first slow last");
}

#[tokio::test]
async fn a_queued_call_can_be_cancelled() {
    let gate = Gate::new();
    let graph = gated(&gate, MemorySaver::new());
    let first = in_background(graph.invoke(said("i")).thread("t"));
    gate.wait_for_run().await;
    let token = agentgraph::CancellationToken::new();
    let second = graph.invoke(said("j")).thread("t").when_busy(WhenBusy::Queue).cancel(token.clone());
    let second = in_background(second);
    tokio::task::yield_now().await;
    token.cancel();
    assert_eq!(second.await.unwrap().unwrap_err().code(), Code::ThreadBusy);
    gate.open();
    assert_eq!(text(first.await.unwrap().unwrap().output()), "i first slow last");
}

#[tokio::test]
async fn a_replaced_run_ends_and_its_committed_work_stays() {
    let folder = Folder::new();
    for [saver, _] in savers(&folder).await {
        let gate = Gate::new();
        let graph = gated(&gate, saver);
        let first = in_background(graph.invoke(said("i")).thread("t"));
        gate.wait_for_run().await;
        let second = in_background(graph.invoke(said("j")).thread("t").when_busy(WhenBusy::Replace));
        let error = first.await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::LeaseLost, Some("t")));
        gate.wait_for_run().await;
        gate.open();
        let second = second.await.unwrap().unwrap();
        assert_eq!(text(second.output()), "i first j first slow last");
        let history = graph.history("t").source(agentgraph::checkpoint::Source::Input).await.unwrap();
        assert_eq!(history[0].abandoned, Some(history[1].run));
    }
}

#[tokio::test]
async fn proceed_with_replace_continues_the_same_run() {
    let gate = Gate::new();
    let graph = gated(&gate, MemorySaver::new());
    let first = in_background(graph.invoke(said("i")).thread("t"));
    gate.wait_for_run().await;
    let second = in_background(graph.proceed().thread("t").when_busy(WhenBusy::Replace));
    assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
    gate.open();
    let second = second.await.unwrap().unwrap();
    assert_eq!(text(second.output()), "i first slow last");
    let runs: std::collections::HashSet<_> =
        graph.history("t").await.unwrap().into_iter().map(|one| one.run).collect();
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn a_rolled_back_run_leaves_a_branch_and_no_trace_on_the_new_one() {
    let folder = Folder::new();
    for [saver, _] in savers(&folder).await {
        let gate = Gate::new();
        let graph = gated(&gate, saver);
        gate.open();
        graph.invoke(said("before")).thread("t").await.unwrap();
        gate.wait_for_run().await;
        for round in ["j", "k"] {
            let first = in_background(graph.invoke(said("i")).thread("t"));
            gate.wait_for_run().await;
            let rolled_back = graph.state("t").await.unwrap().unwrap();
            let second = in_background(graph.invoke(said(round)).thread("t").when_busy(WhenBusy::RollBack));
            assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
            gate.wait_for_run().await;
            gate.open();
            second.await.unwrap().unwrap();
            let history = graph.history("t").await.unwrap();
            let begun =
                history.iter().find(|one| one.source == agentgraph::checkpoint::Source::Input).unwrap();
            assert_eq!(begun.abandoned, Some(rolled_back.run));
            let old = graph.state_at("t", rolled_back.id).await.unwrap().unwrap();
            assert!(text(&old.values).ends_with("i first"), "a rolled-back run can still be read");
        }
        assert_eq!(words(&graph).await, "before first slow last j first slow last k first slow last");
    }
}

#[tokio::test]
async fn rolling_back_the_first_run_of_a_thread_begins_the_thread_anew() {
    let gate = Gate::new();
    let graph = gated(&gate, MemorySaver::new());
    let first = in_background(graph.invoke(said("i")).thread("t"));
    gate.wait_for_run().await;
    let second = in_background(graph.invoke(said("j")).thread("t").when_busy(WhenBusy::RollBack));
    assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
    gate.open();
    second.await.unwrap().unwrap();
    assert_eq!(words(&graph).await, "j first slow last");
    assert_eq!(graph.history("t").await.unwrap().len(), 4);
    assert_eq!(graph.history("t").branch(0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn when_busy_changes_nothing_on_a_free_thread() {
    let gate = Gate::new();
    let graph = gated(&gate, MemorySaver::new());
    for (at, policy) in [WhenBusy::Queue, WhenBusy::Replace, WhenBusy::RollBack].into_iter().enumerate() {
        gate.open();
        graph.invoke(said("i")).thread("t").when_busy(policy).await.unwrap();
        assert_eq!(words(&graph).await.matches("last").count(), at + 1);
    }
    gate.open();
    let unfinished = graph.invoke(said("i")).thread("t").max_supersteps(1).await.unwrap();
    assert!(matches!(unfinished, Outcome::Stopped { .. }));
    let refused = graph.invoke(said("i")).thread("t").when_busy(WhenBusy::Replace).await.unwrap_err();
    assert_eq!(refused.code(), Code::RunUnfinished, "an unfinished run is not an active run");
}

/// The worker makes no call and renews no lease, as one that is stopped, or whose runtime has ended.
#[tokio::test(start_paused = true)]
async fn a_worker_that_stalls_for_longer_than_its_lease_loses_it() {
    for policy in [WhenBusy::Refuse, WhenBusy::Queue, WhenBusy::Replace] {
        let folder = Folder::new();
        let path = folder.fresh();
        let one = SqliteSaver::open(&path).await.unwrap();
        let two = Arc::new(SqliteSaver::open(&path).await.unwrap());
        let clock = JumpingClock::default();
        let until = clock.now() + Duration::from_secs(30);
        let terms = LeaseTerms { now: clock.now(), until, seize: false };
        let Claim::Granted { fence: old } = one.acquire("t", terms).await.unwrap() else { panic!() };
        assert_eq!(two.acquire("t", terms).await.unwrap(), Claim::Held { fence: old, until });
        tokio::time::advance(Duration::from_secs(31)).await;
        let later =
            LeaseTerms { now: clock.now(), until: clock.now() + Duration::from_secs(30), seize: false };
        // Both the other saver and its own know that the writer lives.
        for saver in [&one, &*two] {
            assert_eq!(saver.acquire("t", later).await.unwrap(), Claim::Held { fence: old, until });
        }
        let gate = Gate::new();
        let graph = gated(&gate, Arc::clone(&two)).services(clock.clone());
        gate.open();
        let before = clock.now();
        graph.invoke(said("i")).thread("t").when_busy(policy).await.unwrap();
        // It has waited for a renewal.
        assert!(clock.now().duration_since(before).unwrap() <= Duration::from_secs(3));
        assert!(!one.renew("t", old, until).await.unwrap());
        assert_eq!(words(&graph).await, "i first slow last");
    }
}

/// Services whose wall clock jumps, while tokio's clock goes on evenly.
#[derive(Clone)]
struct JumpingClock {
    began: tokio::time::Instant,
    ahead: Arc<AtomicU64>,
}

impl Default for JumpingClock {
    fn default() -> Self {
        JumpingClock { began: tokio::time::Instant::now(), ahead: Arc::default() }
    }
}

#[async_trait::async_trait]
impl Services for JumpingClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.began.elapsed() + Duration::from_secs(self.ahead.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        7
    }
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_frees_no_thread_of_an_active_run() {
    let folder = Folder::new();
    for [saver, other] in savers(&folder).await {
        let gate = Gate::new();
        let clock = JumpingClock::default();
        let graph = gated(&gate, saver).services(clock.clone());
        let elsewhere = gated(&gate, other).services(clock.clone());
        let first = in_background(graph.invoke(said("i")).thread("t"));
        gate.wait_for_run().await;
        clock.ahead.store(24 * 3600, Ordering::SeqCst);
        for second in [elsewhere.invoke(said("j")).abandon(), graph.proceed(), elsewhere.proceed()] {
            assert_eq!(second.thread("t").await.unwrap_err().code(), Code::ThreadBusy);
            clock.ahead.fetch_add(24 * 3600, Ordering::SeqCst);
        }
        assert_eq!(elsewhere.prune(Retention::keep_last(1)).await.unwrap().busy, ["t"]);
        let queued = elsewhere.invoke(said("j")).thread("t").when_busy(WhenBusy::Queue);
        let queued = in_background(queued);
        tokio::time::sleep(Duration::from_secs(10)).await;
        gate.opens.add_permits(2);
        assert_eq!(text(first.await.unwrap().unwrap().output()), "i first slow last");
        let queued = queued.await.unwrap().unwrap();
        assert_eq!(text(queued.output()), "i first slow last j first slow last");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_run_keeps_its_lease() {
    let folder = Folder::new();
    let path = folder.fresh();
    let graph = |saver| {
        let sleeps = || async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Words::update().seen(["slept"])
        };
        let graph = StateGraph::new().node("sleeps", sleeps).edge(START, "sleeps").compile().unwrap();
        graph.checkpointer(saver).services(TokioClock::default()).lease(Duration::from_secs(1))
    };
    let one = graph(SqliteSaver::open(&path).await.unwrap());
    let two = graph(SqliteSaver::open(&path).await.unwrap());
    let first = in_background(one.invoke(said("i")).thread("t"));
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(two.proceed().thread("t").await.unwrap_err().code(), Code::ThreadBusy);
    }
    assert_eq!(text(first.await.unwrap().unwrap().output()), "i slept");
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(alive(), 0, "no task renews a released lease");
}

fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// The task that renewed the leases belonged to the first runtime.
#[test]
fn leases_are_renewed_after_another_runtime_with_runs_of_the_graph_has_ended() {
    let gate = Gate::new();
    let saver = NotingSaver::memory();
    let graph = gated(&gate, saver.clone()).lease(Duration::from_secs(3));
    let started = |runtime: &tokio::runtime::Runtime, thread: &str| {
        let run = runtime.spawn(graph.invoke(said("i")).thread(thread).into_future());
        runtime.block_on(gate.wait_for_run());
        run
    };
    let [first, second, third] = [(); 3].map(|()| paused_runtime());
    let dropped = started(&first, "a");
    let active = started(&second, "b");
    drop((dropped, first));
    saver.renewed();
    let a_while = || tokio::time::sleep(Duration::from_secs(10));
    second.block_on(async { a_while().await });
    assert!(saver.renewed().contains(&"b".to_owned()), "the run was active when the first runtime ended");
    active.abort();
    drop(second);
    let later = started(&third, "c");
    third.block_on(async { a_while().await });
    assert!(saver.renewed().contains(&"c".to_owned()), "the run began after the first runtime ended");
    gate.open();
    assert_eq!(text(third.block_on(later).unwrap().unwrap().output()), "i first slow last");
}

#[test]
fn a_renewal_that_hangs_in_the_store_does_not_delay_other_renewals() {
    let gate = Gate::new();
    let saver = NotingSaver::memory();
    let graph = gated(&gate, saver.clone()).lease(Duration::from_secs(3));
    let runtime = paused_runtime();
    let runs = ["a", "b", "c"].map(|thread| {
        let run = runtime.spawn(graph.invoke(said("i")).thread(thread).into_future());
        runtime.block_on(gate.wait_for_run());
        run
    });
    saver.hang("a");
    runtime.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await });
    let mut renewed = saver.renewed();
    renewed.sort();
    renewed.dedup();
    assert_eq!(renewed, ["a", "b", "c"]);
    drop(runs);
}

#[test]
fn leases_are_renewed_while_another_runtime_is_idle() {
    let gate = Gate::new();
    let saver = NotingSaver::memory();
    let graph = gated(&gate, saver.clone()).services(TokioClock::default()).lease(Duration::from_millis(30));
    let [idle, driven] = [(); 2].map(|()| paused_runtime());
    let started = |runtime: &tokio::runtime::Runtime, thread: &str| {
        let run = runtime.spawn(graph.invoke(said("i")).thread(thread).into_future());
        runtime.block_on(gate.wait_for_run());
        run
    };
    let sleep = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
    let _left = started(&idle, "a");
    // Longer than the lease, by the clock of this runtime.
    driven.block_on(async { sleep(3600).await });
    let _run = started(&driven, "b");
    saver.renewed();
    driven.block_on(async { sleep(1).await });
    assert!(saver.renewed().contains(&"b".to_owned()));
}

#[tokio::test]
async fn a_lease_may_have_the_maximum_duration() {
    let folder = Folder::new();
    let path = folder.fresh();
    let gate = Gate::new();
    let one = gated(&gate, SqliteSaver::open(&path).await.unwrap()).lease(Duration::MAX);
    let two = gated(&gate, SqliteSaver::open(&path).await.unwrap());
    let first = in_background(one.invoke(said("i")).thread("t"));
    gate.wait_for_run().await;
    assert_eq!(two.invoke(said("j")).thread("t").await.unwrap_err().code(), Code::ThreadBusy);
    gate.open();
    assert_eq!(text(first.await.unwrap().unwrap().output()), "i first slow last");
}

#[tokio::test(start_paused = true)]
async fn a_run_notices_that_another_process_took_its_thread() {
    let folder = Folder::new();
    let path = folder.fresh();
    let gate = Gate::new();
    let lease = Duration::from_secs(3);
    let one = gated(&gate, SqliteSaver::open(&path).await.unwrap()).lease(lease);
    let two = gated(&gate, SqliteSaver::open(&path).await.unwrap()).lease(lease);
    let first = in_background(one.invoke(said("i")).thread("t"));
    gate.wait_for_run().await;
    let second = in_background(two.invoke(said("j")).thread("t").when_busy(WhenBusy::Replace));
    // The gate stays closed, so only the renewal can notice the loss.
    assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
    gate.wait_for_run().await;
    gate.open();
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_dropped_run_releases_its_thread_at_once() {
    let folder = Folder::new();
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        for [saver, other] in savers(&folder).await {
            let gate = Gate::new();
            let graph = gated(&gate, saver);
            let elsewhere = gated(&gate, other);
            let first = in_background(graph.invoke(said("i")).thread("t").durability(durability));
            gate.wait_for_run().await;
            first.abort();
            assert!(first.await.unwrap_err().is_cancelled());
            // A background writer releases the lease after it has stored.
            graph.state("t").await.unwrap();
            gate.open();
            let again = elsewhere.invoke(said("j")).thread("t").abandon().await.unwrap();
            assert!(text(again.output()).ends_with("j first slow last"), "{durability:?}");
        }
    }
}

#[tokio::test]
async fn threads_of_a_dead_owner_are_free_and_threads_of_a_living_owner_are_held() {
    let folder = Folder::new();
    let path = folder.fresh();
    let gate = Gate::new();
    let now = std::time::SystemTime::now();
    let terms = LeaseTerms { now, until: now + Duration::from_secs(3600), seize: false };
    let dead = SqliteSaver::open(&path).await.unwrap();
    assert!(matches!(dead.acquire("t", terms).await.unwrap(), Claim::Granted { .. }));
    let living = SqliteSaver::open(&path).await.unwrap();
    assert!(matches!(living.acquire("t", terms).await.unwrap(), Claim::Held { .. }));
    // The operating system does the same for a killed process.
    drop(dead);
    let graph = gated(&gate, living);
    gate.open();
    graph.invoke(said("i")).thread("t").await.unwrap();
}

#[tokio::test]
async fn a_deleted_thread_is_not_recreated_by_its_active_run() {
    let folder = Folder::new();
    for [saver, other] in savers(&folder).await {
        let gate = Gate::new();
        let graph = gated(&gate, saver);
        let elsewhere = gated(&gate, other);
        let first = in_background(graph.invoke(said("i")).thread("t"));
        gate.wait_for_run().await;
        elsewhere.delete_thread("t").await.unwrap();
        gate.open();
        assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
        assert!(elsewhere.state("t").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_replaced_run_ends_its_stream() {
    use futures_util::StreamExt;
    let gate = Gate::new();
    let graph = gated(&gate, MemorySaver::new());
    let mut events = graph.invoke(said("i")).thread("t").stream();
    let heard = Arc::new(Mutex::new(None));
    let hears = Arc::clone(&heard);
    let first = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let agentgraph::EventKind::Ended(outcome) = event.kind {
                *hears.lock().unwrap() = Some(outcome.unwrap_err().code());
            }
        }
    });
    gate.wait_for_run().await;
    let second = in_background(graph.invoke(said("j")).thread("t").when_busy(WhenBusy::Replace));
    first.await.unwrap();
    assert_eq!(*heard.lock().unwrap(), Some(Code::LeaseLost));
    gate.open();
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_failed_commit_leaves_no_lease_behind() {
    let saver = NotingSaver::memory();
    let gate = Gate::new();
    let graph = gated(&gate, saver.clone());
    saver.fail_puts(1);
    assert_eq!(graph.invoke(said("i")).thread("t").await.unwrap_err().code(), Code::Store);
    gate.open();
    graph.invoke(said("i")).thread("t").await.unwrap();
}

/// Its outcome would describe the run that replaced it.
#[tokio::test]
async fn a_call_replaced_before_it_reads_its_thread_fails_with_lease_lost() {
    let gate = Gate::new();
    let memory = Arc::new(MemorySaver::new());
    let saver = NotingSaver::new(Arc::clone(&memory));
    let first = gated(&gate, saver.clone());
    let second = gated(&gate, memory);
    let replaces = second.clone();
    let at_gate = gate.clone();
    saver.meanwhile(async move {
        drop(in_background(replaces.invoke(said("j")).thread("t").when_busy(WhenBusy::Replace)));
        at_gate.wait_for_run().await;
    });
    let error = first.invoke(said("i")).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::LeaseLost, "{error}");
    gate.open();
    gate.open();
    let queued = second.invoke(said("k")).thread("t").when_busy(WhenBusy::Queue).await.unwrap();
    assert_eq!(text(queued.output()), "j first slow last k first slow last");
}
