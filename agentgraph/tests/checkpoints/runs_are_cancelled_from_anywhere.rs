//! `graph.cancel(thread)` stops the run that has the thread, wherever it runs and whatever it waits for, and
//! no other run. `graph.running()` lists the threads that runs have.
#![cfg(feature = "sqlite")]

use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::checkpoint::{Claim, HeldQuery, LeaseTerms, Leases, SqliteSaver};
use agentgraph::prelude::*;
use agentgraph::run::{Cancellation, WhenBusy};
use agentgraph::{
    Checkpointer, Code, DependencyGraph, Durability, Error, RetryPolicy, RunBuilder, StopReason,
};
use futures_util::FutureExt;
use tokio::task::{JoinHandle, yield_now};

use crate::common::words::{Words, WordsUpdate, says, text};
use crate::sqlite_folder::Folder;

/// A node that never ends in its first calls, and says its word in later ones.
#[derive(Clone)]
struct Slow {
    waits: u32,
    calls: Arc<AtomicU32>,
}

impl Slow {
    fn once() -> Self {
        Slow { waits: 1, calls: Arc::default() }
    }

    fn node(&self) -> impl Fn() -> futures_util::future::BoxFuture<'static, WordsUpdate> + Clone + use<> {
        let Slow { waits, calls } = self.clone();
        move || {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            async move {
                if call < waits {
                    pending::<()>().await;
                }
                Words::update().seen(["slow"])
            }
            .boxed()
        }
    }

    /// Waits until the node was called so many times.
    async fn called(&self, times: u32) {
        while self.calls.load(Ordering::SeqCst) < times {
            yield_now().await;
        }
    }
}

fn chain(slow: &Slow) -> StateGraph<Words> {
    let graph = StateGraph::new().node("first", says("first")).node("slow", slow.node());
    let graph = graph.node("last", says("last")).edge(START, "first").edge("first", "slow");
    graph.edge("slow", "last")
}

fn in_background(run: RunBuilder<Words>) -> JoinHandle<Result<Outcome<Words>, Error>> {
    tokio::spawn(run.into_future())
}

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

#[track_caller]
fn is_cancelled(outcome: &Result<Outcome<Words>, Error>) -> bool {
    matches!(outcome, Ok(Outcome::Stopped { reason: StopReason::Cancelled, .. }))
}

/// Pairs of savers, each pair on one store: one memory, one SQLite saver, two SQLite savers of one file,
/// which are as two processes.
async fn savers(folder: &Folder) -> Vec<[Arc<dyn Checkpointer>; 2]> {
    let memory: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    let open = async |path| Arc::new(SqliteSaver::open(path).await.unwrap()) as Arc<dyn Checkpointer>;
    let alone = folder.fresh();
    let shared = open(&alone).await;
    let path = folder.fresh();
    vec![[Arc::clone(&memory), memory], [Arc::clone(&shared), shared], [open(&path).await, open(&path).await]]
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_in_a_node_is_stopped_and_can_go_on() {
    let folder = Folder::new();
    for [saver, other] in savers(&folder).await {
        let slow = Slow::once();
        let graph = chain(&slow).compile().unwrap().checkpointer(saver);
        let elsewhere = chain(&Slow::once()).compile().unwrap().checkpointer(other);
        assert_eq!(elsewhere.cancel("t").await.unwrap(), Cancellation::NotRunning, "nothing has begun");
        assert!(elsewhere.running().await.unwrap().is_empty());

        let run = in_background(graph.invoke(said("i")).thread("t"));
        slow.called(1).await;
        let running = elsewhere.running().await.unwrap();
        assert_eq!(running.len(), 1);
        assert_eq!((&*running[0].thread, running[0].is_here, running[0].is_cancelled), ("t", false, false));
        assert!(graph.running().await.unwrap()[0].is_here);

        assert_eq!(elsewhere.cancel("t").until_ended().await.unwrap(), Cancellation::Requested);
        assert!(elsewhere.running().await.unwrap().is_empty(), "the thread is free when that returns");
        assert!(is_cancelled(&run.await.unwrap()));
        assert_eq!(elsewhere.cancel("t").await.unwrap(), Cancellation::NotRunning, "it has stopped");

        let whole = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(text(&whole), "i first slow last", "the next run of the thread never sees the request");
        assert_eq!(elsewhere.cancel("t").await.unwrap(), Cancellation::NotRunning, "it has finished");
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_hears_of_it_within_a_second() {
    let folder = Folder::new();
    let path = folder.fresh();
    let slow = Slow::once();
    let open = async || SqliteSaver::open(&path).await.unwrap();
    let graph = chain(&slow).compile().unwrap().checkpointer(open().await);
    let elsewhere = chain(&slow).compile().unwrap().checkpointer(open().await);
    let run = in_background(graph.invoke(said("i")).thread("t"));
    slow.called(1).await;
    let asked = tokio::time::Instant::now();
    elsewhere.cancel("t").await.unwrap();
    assert!(elsewhere.running().await.unwrap().iter().all(|run| run.is_cancelled));
    assert!(is_cancelled(&run.await.unwrap()));
    let took = asked.elapsed();
    assert!(took <= Duration::from_millis(1_001), "{took:?} by a clock that only timers move");
}

#[tokio::test(start_paused = true)]
async fn only_the_run_that_has_the_thread_is_asked() {
    let folder = Folder::new();
    for [saver, other] in savers(&folder).await {
        let slow = Slow { waits: 2, calls: Arc::default() };
        let graph = chain(&slow).compile().unwrap().checkpointer(saver);
        let elsewhere = chain(&slow).compile().unwrap().checkpointer(other);
        let t = in_background(graph.invoke(said("i")).thread("t"));
        let u = in_background(graph.invoke(said("j")).thread("u"));
        slow.called(2).await;
        elsewhere.cancel("t").until_ended().await.unwrap();
        assert!(is_cancelled(&t.await.unwrap()));
        let running = elsewhere.running().await.unwrap();
        assert_eq!(running.iter().map(|run| &*run.thread).collect::<Vec<_>>(), ["u"]);
        assert!(!running[0].is_cancelled && !u.is_finished());

        // A run that takes the thread over is not asked in the place of the one before.
        let slow = Slow::once();
        let takes = chain(&slow).compile().unwrap().checkpointer(MemorySaver::new());
        let first = in_background(takes.invoke(said("i")).thread("t"));
        slow.called(1).await;
        let asking = takes.cancel("t");
        let second = takes.invoke(said("k")).thread("t").when_busy(WhenBusy::RollBack).await.unwrap();
        assert_eq!(text(&second.into_finished().unwrap()), "k first slow last");
        assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
        assert_eq!(asking.await.unwrap(), Cancellation::NotRunning);
        u.abort();
    }
}

#[tokio::test]
async fn a_request_of_a_run_that_ends_first_ends_with_it() {
    let graph: Arc<std::sync::OnceLock<CompiledGraph<Words>>> = Arc::default();
    let cancels = {
        let graph = Arc::clone(&graph);
        move || {
            let graph = Arc::clone(&graph);
            async move {
                let asked = graph.wait().cancel("t").await?;
                agentgraph::Result::<_>::Ok(Words::update().seen([format!("{asked:?}")]))
            }
        }
    };
    let built = StateGraph::new().node("cancels", cancels).edge(START, "cancels");
    let graph = graph.get_or_init(|| built.compile().unwrap().checkpointer(MemorySaver::new()));
    for run in 1..4 {
        let words = graph.invoke(Words::update()).thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(words.seen.len(), run, "the run was at its end");
        assert_eq!(words.seen[run - 1], "Requested");
    }
}

#[tokio::test]
async fn finished_siblings_are_stored() {
    let slow = Slow::once();
    let fast = Slow { waits: 0, calls: Arc::default() };
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let (slow, fast) = (Slow { calls: Arc::default(), ..slow }, Slow { calls: Arc::default(), ..fast });
        let graph = StateGraph::new().node("fast", fast.node()).node("slow", slow.node());
        let graph = graph.edge(START, "fast").edge(START, "slow").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let run = graph.invoke(Words::update()).thread("t").durability(durability);
        let run = in_background(run);
        slow.called(1).await;
        graph.cancel("t").until_ended().await.unwrap();
        assert!(is_cancelled(&run.await.unwrap()));
        let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(text(&words), "slow slow");
        let calls = [&fast, &slow].map(|node| node.calls.load(Ordering::SeqCst));
        assert_eq!(calls, [1, 2], "{durability:?}");
    }
}

#[tokio::test]
async fn every_discipline_and_subgraphs_hear_of_it() {
    for kind in ["superstep", "eager", "subgraph", "retry", "busy subgraph"] {
        let slow = Slow::once();
        let graph = match kind {
            "eager" => chain(&slow).eager().compile().unwrap(),
            "subgraph" => {
                let child = chain(&slow).compile().unwrap();
                StateGraph::new().node("child", child).edge(START, "child").compile().unwrap()
            }
            "busy subgraph" => {
                // Its nodes are always ready, so nothing in it waits.
                let calls = Arc::clone(&slow.calls);
                let spin = move || {
                    let stops = calls.fetch_add(1, Ordering::SeqCst) > 100_000;
                    async move { Command::<Words>::new().goto(if stops { END } else { "spin" }) }
                };
                let child = StateGraph::new().node("spin", spin.targets(["spin"])).edge(START, "spin");
                let child = child.compile().unwrap();
                StateGraph::new().node("child", child).edge(START, "child").compile().unwrap()
            }
            "retry" => {
                let calls = Arc::clone(&slow.calls);
                let fails = move || {
                    let call = calls.fetch_add(1, Ordering::SeqCst);
                    async move { if call == 0 { Err(std::fmt::Error) } else { Ok(()) } }
                };
                let policy = RetryPolicy::attempts(2).initial(Duration::from_secs(3600));
                StateGraph::new().node("fails", fails.retry(policy)).edge(START, "fails").compile().unwrap()
            }
            _ => chain(&slow).compile().unwrap(),
        };
        let graph = graph.checkpointer(MemorySaver::new());
        let run = in_background(graph.invoke(said("i")).thread("t").max_supersteps(1_000_000));
        slow.called(1).await;
        graph.cancel("t").until_ended().await.unwrap();
        assert!(is_cancelled(&run.await.unwrap()), "{kind}");
        if !kind.starts_with("busy") {
            let whole = graph.proceed().thread("t").await.unwrap();
            whole.into_finished().unwrap();
        }
    }
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let slow = move || {
        let call = seen.fetch_add(1, Ordering::SeqCst);
        async move {
            if call == 0 {
                pending::<()>().await;
            }
            2
        }
    };
    let graph = DependencyGraph::<u64>::new().node("a", || 1).node("b", slow).edge("a", "b");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let run = tokio::spawn(graph.invoke(()).thread("t").into_future());
    while calls.load(Ordering::SeqCst) == 0 {
        yield_now().await;
    }
    assert_eq!(graph.running().await.unwrap().len(), 1);
    graph.cancel("t").until_ended().await.unwrap();
    let stopped = run.await.unwrap().unwrap();
    assert!(matches!(stopped, Outcome::Stopped { reason: StopReason::Cancelled, .. }));
    assert_eq!(graph.proceed().thread("t").await.unwrap().into_finished().unwrap()["b"], 2);
}

#[tokio::test]
async fn waiting_and_failed_threads_are_not_running() {
    async fn asks(ctx: Ctx) -> agentgraph::Result<WordsUpdate> {
        let word: String = ctx.interrupt("which?")?;
        if word == "none" { Err("no word".into()) } else { Ok(Words::update().seen([word])) }
    }
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::NotRunning);
    graph.resume("none").thread("t").await.unwrap_err();
    assert_eq!(graph.cancel("t").until_ended().await.unwrap(), Cancellation::NotRunning);
    assert!(graph.state("t").await.unwrap().unwrap().next.contains(&"asks".to_owned()));
}

#[tokio::test]
async fn a_dropped_or_killed_run_leaves_no_request_behind() {
    let folder = Folder::new();
    // Dropped after the request: the thread is free, and the next run goes on.
    let slow = Slow::once();
    let graph = chain(&slow).compile().unwrap().checkpointer(MemorySaver::new());
    let mut run = graph.invoke(said("i")).thread("t").into_future();
    while slow.calls.load(Ordering::SeqCst) == 0 {
        assert!((&mut run).now_or_never().is_none());
    }
    // A dropped request is either made or not; it cannot be half made.
    drop(graph.cancel("t").until_ended().into_future());
    assert!(!graph.running().await.unwrap()[0].is_cancelled);
    let mut waits = graph.cancel("t").until_ended().into_future();
    assert!((&mut waits).now_or_never().is_none(), "the run is not polled, so it cannot end");
    drop(waits);
    assert!(graph.running().await.unwrap()[0].is_cancelled);
    drop(run);
    let whole = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&whole), "i first slow last");

    // Killed after the request: its saver is gone without a release, and its lease with it.
    let path = folder.fresh();
    let killed = SqliteSaver::open(&path).await.unwrap();
    let now = std::time::SystemTime::now();
    let terms = LeaseTerms { now, until: now + Duration::from_secs(3_600), seize: false };
    let Claim::Granted { fence } = killed.acquire("t", terms).await.unwrap() else { panic!("it is free") };
    let graph = chain(&Slow { waits: 0, calls: Arc::default() }).compile().unwrap();
    let graph = graph.checkpointer(SqliteSaver::open(&path).await.unwrap());
    assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::Requested);
    let held = killed.held(HeldQuery::at(now)).await.unwrap();
    assert_eq!((held[0].fence, held[0].asked_to_stop), (fence, true));
    drop(killed);
    assert!(graph.running().await.unwrap().is_empty());
    assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::NotRunning);
    let whole = graph.invoke(said("i")).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&whole), "i first slow last");
}

#[tokio::test]
async fn running_threads_come_in_pages() {
    let slow = Slow { waits: 3, calls: Arc::default() };
    let graph = chain(&slow).compile().unwrap().checkpointer(MemorySaver::new());
    let runs: Vec<_> =
        ["c", "a", "b"].map(|thread| in_background(graph.invoke(said("i")).thread(thread))).into();
    slow.called(3).await;
    let names = async |query: agentgraph::run::RunningThreads| {
        query.await.unwrap().into_iter().map(|run| run.thread).collect::<Vec<_>>()
    };
    assert_eq!(names(graph.running()).await, ["a", "b", "c"]);
    assert_eq!(names(graph.running().limit(2)).await, ["a", "b"]);
    assert_eq!(names(graph.running().after("b")).await, ["c"]);
    assert!(graph.running().await.unwrap()[0].until > UNIX_EPOCH);
    for run in &runs {
        run.abort();
    }
    for run in runs {
        run.await.unwrap_err();
    }
    assert!(graph.running().await.unwrap().is_empty(), "a dropped run has no thread");
}

#[tokio::test]
async fn without_a_checkpointer_the_error_names_the_other_way() {
    let graph = chain(&Slow::once()).compile().unwrap();
    for error in [graph.cancel("t").await.unwrap_err(), graph.running().await.unwrap_err()] {
        assert_eq!(error.code(), Code::NoCheckpointer);
    }
}
