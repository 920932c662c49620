//! Reading a checkpoint takes a bounded number of rows and bytes, however long the thread is, whether
//! one call or many made it, and after pruning.

use std::sync::Arc;

use agentgraph::checkpoint::{Checkpointer, ListQuery, Place, Retention, RowKind, Tail};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, MemorySaver};
use serde::{Deserialize, Serialize};

/// The number of deltas that are folded into one segment.
const FOLDED: u64 = 1_024;

/// The bytes that may be read beyond twice the live bytes.
const SLACK: usize = 64 * 1024;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Log {
    /// Large enough that no full is written for thousands of steps.
    #[reduce(append)]
    lines: Vec<String>,
    page: String,
    text: String,
}

async fn adds_a_line() -> LogUpdate {
    Log::update().lines(["x".to_owned()])
}

fn looped(saver: Arc<MemorySaver>) -> CompiledGraph<Log> {
    let graph = StateGraph::new().node("add", adds_a_line).edge(START, "add").edge("add", "add");
    graph.compile().unwrap().checkpointer(saver)
}

/// Makes a thread of at least `steps` steps, in calls of 300 steps, which is no divisor of a segment.
async fn grow_thread(saver: &Arc<MemorySaver>, steps: u32) {
    let graph = looped(Arc::clone(saver));
    let lines = (0..4_000).map(|line| format!("{line:0100}"));
    graph.invoke(Log::update().lines(lines)).thread("t").max_supersteps(300).await.unwrap();
    for _ in 0..steps / 300 {
        graph.proceed().thread("t").max_supersteps(300).await.unwrap();
    }
}

async fn read(saver: &MemorySaver, step: u64) -> Tail {
    saver.get(Place::root("t"), Some(CheckpointId::new(0, step))).await.unwrap().unwrap()
}

async fn newest(saver: &MemorySaver) -> u64 {
    saver.list(Place::root("t"), ListQuery::default()).await.unwrap()[0].id.step
}

/// Returns the step of the full, and the numbers of segments and deltas.
fn count_rows(tail: &Tail) -> (u64, u64, u64) {
    let full = tail.rows.iter().filter(|row| row.kind == RowKind::Full).map(|row| row.id.step);
    let of = |kind| tail.rows.iter().filter(|row| row.kind == kind).count() as u64;
    let fulls: Vec<u64> = full.collect();
    assert_eq!(fulls.len(), 1);
    (fulls[0], of(RowKind::Segment), of(RowKind::Delta))
}

#[tokio::test]
async fn every_1024_deltas_are_one_segment() {
    let saver = Arc::new(MemorySaver::new());
    grow_thread(&saver, 3_300).await;
    let last = newest(&saver).await;
    let mut most = 0;
    for step in (0..=last).filter(|step| step % 97 == 0 || (step + 3) % FOLDED < 6) {
        let (full, segments, deltas) = count_rows(&read(&saver, step).await);
        let behind = step - full;
        assert_eq!((segments, deltas), (behind / FOLDED, behind % FOLDED), "step {step}, full {full}");
        most = most.max(behind);
    }
    assert!(most > 3 * FOLDED, "a full was written after {most} deltas");
}

/// Pruning rewrites the kept part of the segments as fulls, one for every 1,024 steps.
#[tokio::test]
async fn a_pruned_thread_reads_fewer_than_1024_deltas_now_and_later() {
    let saver = Arc::new(MemorySaver::new());
    grow_thread(&saver, 3_300).await;
    let last = newest(&saver).await;
    let graph = looped(Arc::clone(&saver));
    graph.prune(Retention::keep(|one| one.id.step >= 100)).await.unwrap();
    for step in (100..=last).filter(|step| step % 97 == 0 || (step - 97) % FOLDED < 6) {
        let tail = read(&saver, step).await;
        let behind = (step - 100) % FOLDED;
        assert_eq!(count_rows(&tail), (step - behind, 0, behind), "step {step}");
    }
    for _ in 0..5 {
        graph.proceed().thread("t").max_supersteps(300).await.unwrap();
    }
    for step in (last..=newest(&saver).await).step_by(7) {
        let (full, segments, deltas) = count_rows(&read(&saver, step).await);
        assert!(deltas < FOLDED && segments <= (step - full) / FOLDED, "{segments} and {deltas} at {step}");
    }
}

/// Makes `calls` changes, each in a call of its own, so that each call begins with a read.
async fn change_in_many_calls(page: &str, text: usize, calls: usize) -> Arc<MemorySaver> {
    let saver = Arc::new(MemorySaver::new());
    let graph = StateGraph::<Log>::new().node("rest", async || {}).edge(START, "rest").compile().unwrap();
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(Log::update().page(page)).thread("t").await.unwrap();
    for call in 0..calls {
        graph.invoke(Log::update().text(format!("{call:0text$}"))).thread("t").await.unwrap();
    }
    saver
}

/// Asserts that reading a checkpoint takes at most twice its live bytes, plus slack and headers.
async fn assert_bounded(saver: &MemorySaver, page: usize, text: usize) {
    for step in 0..=newest(saver).await {
        let tail = read(saver, step).await;
        let mut bytes: usize = tail.rows.iter().map(|row| row.record.len()).sum();
        if !tail.rows.iter().any(|row| row.record.len() > page) {
            // The full refers to the page, which is read from another record.
            bytes += page;
        }
        // The bytes that headers may add.
        let headers = 400 * tail.rows.len();
        assert!(bytes <= 2 * (page + text) + SLACK + headers, "{bytes} bytes at step {step}");
    }
}

#[tokio::test]
async fn bytes_that_a_call_reads_count_towards_the_next_full() {
    let saver = change_in_many_calls("", 2_000, 200).await;
    assert_bounded(&saver, 0, 2_000).await;
}

#[tokio::test]
async fn bytes_that_a_full_refers_to_count_towards_the_next_full() {
    let page = "p".repeat(300_000);
    let saver = change_in_many_calls(&page, 20_000, 120).await;
    assert_bounded(&saver, page.len(), 20_000).await;
    let rows = saver.list(Place::root("t"), ListQuery::default()).await.unwrap();
    let whole = rows.iter().filter(|row| row.record.len() > page.len());
    assert_eq!(whole.count(), 1, "the page is stored once");
    assert!(rows.iter().filter(|row| row.kind == RowKind::Full).count() > 3);
}
