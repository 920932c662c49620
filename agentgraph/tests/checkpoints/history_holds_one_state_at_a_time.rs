//! A history that is streamed takes the memory of a few states, however many it returns. The tests count the
//! allocated bytes; they measure no time.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{CheckpointId, MemorySaver};
use allocation_counter::{AllocationInfo, measure};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Work {
    n: u64,
    #[reduce(append)]
    lines: Vec<String>,
    page: String,
    draft: String,
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A thread of `steps` steps, each of which changes the state.
fn thread(
    steps: u64,
    change: impl Fn(u64) -> WorkUpdate + Clone + Send + Sync + 'static,
) -> CompiledGraph<Work> {
    let step = move |work: Snapshot<Work>| std::future::ready(change(work.n).n(work.n + 1));
    let graph = StateGraph::new().node("step", step).edge(START, "step").edge("step", "step");
    let graph = graph.compile().unwrap().checkpointer(Arc::new(MemorySaver::new()));
    run(graph.invoke(Work::update()).thread("t").max_supersteps(steps).into_future()).unwrap();
    graph
}

/// Streams the history, and checks each state with `is_right`.
fn streamed(graph: &CompiledGraph<Work>, steps: u64, is_right: impl Fn(&Work) -> bool) -> AllocationInfo {
    measure(|| {
        run(async {
            let mut history = graph.history("t").stream();
            for n in (0..=steps).rev() {
                let found = history.try_next().await.unwrap().unwrap();
                assert_eq!((found.id, found.values.n), (CheckpointId::new(0, n), n));
                assert!(is_right(&found.values), "step {n}");
            }
            assert!(history.next().await.is_none());
        });
    })
}

const MEGABYTE: u64 = 1 << 20;

#[test]
fn a_growing_list_takes_a_few_times_its_greatest_length() {
    let graph = thread(600, |n| Work::update().lines([format!("{n:01000}")]));
    let info = streamed(&graph, 600, |work| work.lines.len() as u64 == work.n);
    assert!(info.bytes_max < 12 * MEGABYTE, "{} bytes", info.bytes_max);
    let collected = measure(|| drop(run(graph.history("t").into_future()).unwrap()));
    assert!(collected.bytes_max > 150 * MEGABYTE, "the states together have {} bytes", collected.bytes_max);
}

/// The drafts are so long that fulls are written, which refer to the page.
#[test]
fn an_unchanged_field_is_held_once_beside_its_state() {
    let graph = thread(300, |n| match n {
        0 => Work::update().page("p".repeat(2_000_000)),
        _ => Work::update().draft("d".repeat(30_000)),
    });
    let info = streamed(&graph, 300, |work| work.page.len() == if work.n == 0 { 0 } else { 2_000_000 });
    assert!(info.bytes_max < 10 * MEGABYTE, "{} bytes", info.bytes_max);
}

#[test]
fn a_text_that_every_step_replaces_is_held_a_few_times() {
    let graph = thread(200, |n| Work::update().page(format!("{n}").repeat(200_000)));
    let info = streamed(&graph, 200, |work| work.n == 0 || work.page.ends_with(&(work.n - 1).to_string()));
    assert!(info.bytes_max < 16 * MEGABYTE, "{} bytes", info.bytes_max);
}

/// Reading backwards costs a few times reading forwards, not more with each step.
#[test]
fn the_allocations_of_a_step_do_not_grow_with_the_thread() {
    let cost = |steps: u64| {
        let graph = thread(steps, |_| Work::update().lines(["x"]));
        streamed(&graph, steps, |work| work.lines.len() as u64 == work.n).count_total / steps
    };
    // Each state has as many lines as steps, which are allocations of their own.
    let (short, long) = (cost(200), cost(800));
    assert!(long - 400 < 3 * short, "{short} allocations a step, then {long}");
}

/// `limit`, filters and branches select what a collected history does.
#[tokio::test]
async fn a_stream_returns_what_a_collected_history_does() {
    let step =
        |work: Snapshot<Work>| std::future::ready(Work::update().n(work.n + 1).lines([work.n.to_string()]));
    let graph = StateGraph::new().node("step", step).edge(START, "step").edge("step", "step");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Work::update()).thread("t").max_supersteps(1_500).await.unwrap();
    let fork = CheckpointId::new(0, 700);
    graph.proceed().thread("t").from(fork).max_supersteps(300).await.unwrap();
    let all = graph.history("t").await.unwrap();
    let ids: Vec<u64> = all.iter().map(|one| one.id.step).collect();
    assert_eq!(ids.len() as u64, ids[0] + 1, "every step once, over both branches");
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1] + 1));
    for one in &all {
        let alone = graph.state_at("t", one.id).await.unwrap().unwrap();
        assert_eq!((&alone.values, &alone.next), (&one.values, &one.next), "{}", one.id);
    }
    let some =
        || graph.history("t").before(CheckpointId::new(1, 900)).limit(40).filter(|one| one.values.n % 3 == 0);
    let collected: Vec<_> = some().await.unwrap().iter().map(|one| one.id).collect();
    let streamed: Vec<_> = some().stream().map_ok(|one| one.id).try_collect().await.unwrap();
    assert_eq!((collected.len(), &collected), (40, &streamed));
    let bare = StateGraph::<Work>::new().node("a", async || {}).edge(START, "a").compile().unwrap();
    let mut refused = bare.history("t").stream();
    assert!(refused.next().await.unwrap().is_err());
    assert!(refused.next().await.is_none());
}
