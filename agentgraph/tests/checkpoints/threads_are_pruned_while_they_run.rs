//! A retention policy is applied while a run goes on: the store does not grow with the number of steps, and
//! everything that stays is read as before.

use std::sync::Arc;

use agentgraph::checkpoint::{Catalog, Retention};
use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Durability, MemorySaver};
use serde::{Deserialize, Serialize};

use crate::common::saver::NotingSaver;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Work {
    n: u64,
    /// Set once, and referred to by later fulls.
    page: String,
    #[reduce(append)]
    lines: Vec<String>,
    /// Set in every step, so that fulls are written.
    scratch: String,
}

fn after(n: u64) -> Work {
    Work {
        n,
        page: if n == 0 { String::new() } else { "p".repeat(20_000) },
        lines: (0..n).filter(|n| n % 100 == 0).map(|n| n.to_string()).collect(),
        scratch: if n == 0 { String::new() } else { format!("{:01$}", n, 500) },
    }
}

async fn work(work: Snapshot<Work>) -> WorkUpdate {
    let update = Work::update().n(work.n + 1).scratch(format!("{:01$}", work.n + 1, 500));
    let update = if work.n == 0 { update.page("p".repeat(20_000)) } else { update };
    if work.n.is_multiple_of(100) { update.lines([work.n.to_string()]) } else { update }
}

/// A graph that looks at its own thread every 700 steps.
fn graph<C: Checkpointer + Catalog>(saver: Arc<C>, steps: u64, most: u64) -> CompiledGraph<Work> {
    let looks = Arc::clone(&saver);
    let node = move |state: Snapshot<Work>| {
        let looks = Arc::clone(&looks);
        async move {
            if state.n % 700 == 699 {
                let usage = looks.usage().await.unwrap();
                assert!(usage.rows <= most, "{} rows after {} steps", usage.rows, state.n);
                assert!(usage.bytes < 400_000, "{} bytes after {} steps", usage.bytes, state.n);
            }
            work(state).await
        }
    };
    let more = move |state: &Work| if state.n < steps { "work" } else { END };
    let graph = StateGraph::new().node("work", node).edge(START, "work").branch("work", more, ["work", END]);
    graph.compile().unwrap().checkpointer(saver)
}

async fn assert_is_bounded<C: Checkpointer + Catalog>(saver: Arc<C>, durability: Durability) {
    const STEPS: u64 = 5_000;
    let graph = graph(Arc::clone(&saver), STEPS, 200).retention(Retention::keep_last(5));
    let run = graph.invoke(Work::update()).thread("t").max_supersteps(u64::MAX).durability(durability);
    assert_eq!(run.await.unwrap().into_finished().unwrap(), after(STEPS));
    let history = graph.history("t").await.unwrap();
    assert!((5..200).contains(&history.len()), "{} checkpoints", history.len());
    for (checkpoint, n) in history.iter().zip((0..=STEPS).rev()) {
        assert_eq!(checkpoint.values, after(n), "{}", checkpoint.id);
        assert_eq!(graph.state_at("t", checkpoint.id).await.unwrap().unwrap().values, after(n));
    }
}

#[tokio::test]
async fn a_long_run_in_memory_keeps_few_checkpoints() {
    assert_is_bounded(Arc::new(MemorySaver::new()), Durability::Sync).await;
}

#[tokio::test]
async fn a_long_run_that_stores_behind_itself_keeps_few_checkpoints() {
    assert_is_bounded(Arc::new(MemorySaver::new()), Durability::Async).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_long_run_in_a_file_keeps_few_checkpoints_and_a_small_file() {
    let folder = crate::sqlite_folder::Folder::new();
    let path = folder.fresh();
    let saver = Arc::new(agentgraph::checkpoint::SqliteSaver::open(&path).await.unwrap());
    assert_is_bounded(Arc::clone(&saver), Durability::Sync).await;
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 2_000_000, "{size} bytes");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_long_run_in_postgres_keeps_few_checkpoints() {
    let server = crate::postgres_server::PostgresServer::get();
    let saver = agentgraph::checkpoint::PostgresSaver::builder(server.url()).schema(server.fresh_schema());
    assert_is_bounded(Arc::new(saver.connect().await.unwrap()), Durability::Sync).await;
}

/// Each pruning reads what it keeps. If it keeps everything, the next one is as far away as the thread is
/// long.
#[tokio::test]
async fn a_policy_that_keeps_everything_is_applied_ever_less_often() {
    let saver = NotingSaver::memory().at_once();
    let looked = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counts = Arc::clone(&looked);
    let policy = Retention::keep(move |_| {
        counts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        true
    });
    async fn count(work: Snapshot<Work>) -> WorkUpdate {
        Work::update().n(work.n + 1)
    }
    let graph = StateGraph::new().node("count", count).edge(START, "count").edge("count", "count");
    let graph = graph.compile().unwrap().checkpointer(saver).retention(policy);
    graph.invoke(Work::update()).thread("t").max_supersteps(4_000).await.unwrap();
    let looked = looked.load(std::sync::atomic::Ordering::Relaxed);
    assert!((4_000..16_000).contains(&looked), "{looked} checkpoints were looked at");
}

/// A pruning that fails is reported, and the run goes on.
#[tokio::test]
async fn a_run_goes_on_if_its_thread_cannot_be_pruned() {
    let saver = NotingSaver::memory();
    let graph = StateGraph::new().node("work", work).edge(START, "work").edge("work", "work");
    let graph = graph.compile().unwrap().checkpointer(saver.clone()).retention(Retention::keep_last(1));
    saver.fail_rewrites(1);
    let outcome = graph.invoke(Work::update()).thread("t").max_supersteps(200).await.unwrap();
    assert_eq!((outcome.output(), saver.still_to_fail()), (&after(200), 0));
    assert!(graph.history("t").await.unwrap().len() < 80);
}

/// The memory of a subgraph is pruned between its calls. The checkpoints that the kept ones name stay.
#[tokio::test]
async fn memories_are_pruned_while_the_run_around_them_goes_on() {
    async fn count(work: Snapshot<Work>) -> WorkUpdate {
        Work::update().n(work.n + 1)
    }
    let inner = StateGraph::new().node("inner", count).edge(START, "inner").compile().unwrap();
    let graph = StateGraph::new()
        .node("outer", inner.memory(agentgraph::Memory::PerThread))
        .edge(START, "outer")
        .edge("outer", "outer");
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver)).retention(Retention::keep_last(3));
    graph.invoke(Work::update()).thread("t").max_supersteps(1_000).await.unwrap();
    let usage = saver.usage().await.unwrap();
    assert!(usage.rows < 400, "{} rows", usage.rows);
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!(state.values.n, 1_000);
    graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.n, 1_001);
}
