//! The rows that a driven run leaves are those that the next one needs, and few.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use agentgraph::Memory;
use agentgraph::host::{Ground, HostedGraph, NeedKind, Reply, RunCall, ThreadRows};
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use crate::driver::{Done, Driver};
use crate::graphs::{Work, asking, busy, failing, looping, step};

#[tokio::test]
async fn a_long_loop_keeps_few_rows_and_does_not_slow_down() {
    let mut driver = Driver::new(looping(2_000), looping(2_000));
    let call = RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
    let done = driver.call_once(call.max_supersteps(1_000)).await;
    assert!(done.rows.len() < 200, "{} rows", done.rows.len());
    let sizes: Vec<usize> = done.journal.needs.iter().map(Vec::len).collect();
    let sum = |part: &[usize]| part.iter().sum::<usize>();
    let (first, last) = (sum(&sizes[200..600]), sum(&sizes[sizes.len() - 400..]));
    assert!(last < first * 3 / 2, "{first} bytes are asked for at the start, {last} at the end");
}

#[tokio::test]
async fn a_finished_thread_keeps_no_pending_writes() {
    let mut driver = Driver::new(busy(false), busy(false));
    let done = driver.call(RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap()).await;
    assert!(done.rows.keys().all(|key| !key.contains(".w")), "{:?}", done.rows.keys());
}

/// Calls a subgraph of two supersteps in each of 150 rounds, itself or inside a memory.
fn calling(eager: bool, memory: bool) -> CompiledGraph<Work> {
    let one = |work: Snapshot<Work>| std::future::ready(Work::update().count(work.count + 1));
    let called = StateGraph::new().node("a", one).node("b", one).edge(START, "a").edge("a", "b");
    let called = called.compile().unwrap();
    let node = if memory {
        let around = StateGraph::new().node("called", called).edge(START, "called").compile().unwrap();
        around.memory(Memory::PerThread).into_node()
    } else {
        called.into_node()
    };
    let next = |work: &Work| if work.count.is_multiple_of(300) { END } else { "call" };
    let graph = StateGraph::new().node("call", node).edge(START, "call").branch("call", next, ["call", END]);
    if eager { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
}

#[tokio::test]
async fn the_rows_of_subgraph_calls_go_when_their_tasks_are_merged_or_their_run_is_over() {
    let of_calls = |done: &Done| done.rows.keys().filter(|key| key.contains("_3a")).count();
    for (eager, memory) in [(false, false), (false, true), (true, false)] {
        let mut driver = Driver::new(calling(eager, memory), calling(eager, memory));
        let mut left = Vec::new();
        for _ in 0..3 {
            let call = RunCall::invoke::<Work>(&(), &Work::update()).unwrap();
            left.push(of_calls(&driver.call_once(call).await));
        }
        // An eager run may have others under way, so those of its calls go when the next one begins.
        assert_eq!(left, if eager { [left[0]; 3] } else { [0; 3] }, "{eager} {memory}");
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Book {
    /// Large, and written seldom.
    text: String,
    /// Written in each step.
    #[reduce(last)]
    margin: String,
    page: u64,
}

/// Turns pages, writes in the margin of each, and has a text of its own on some.
fn reading(last: u64, margin: fn(u64) -> usize, has_text: fn(u64) -> bool) -> CompiledGraph<Book> {
    let read = move |book: Snapshot<Book>| {
        let page = book.page + 1;
        let update = Book::update().page(page).margin(format!("{page} {}", "m".repeat(margin(page))));
        std::future::ready(if has_text(page) { update.text(text_of(page)) } else { update })
    };
    let next = move |book: &Book| if book.page < last { "read" } else { END };
    let graph = StateGraph::new().node("read", read).edge(START, "read").branch("read", next, ["read", END]);
    graph.compile().unwrap()
}

fn text_of(page: u64) -> String {
    format!("text of page {page} ").repeat(1_500)
}

/// Reads to the end, in calls of so many pages, and looks at the thread after each: from its rows alone.
async fn read_in_parts(last: u64, part: u64, has_text: fn(u64) -> bool) {
    let build = || reading(last, |_| 3_000, has_text);
    let mut driver = Driver::new(build(), build());
    let mut call = RunCall::invoke::<Book>(&(), &Book::update()).unwrap();
    let (mut page, mut text) = (0, String::new());
    while page < last {
        let done = driver.call_once(call.max_supersteps(part)).await;
        for page in page + 1..=(page + part).min(last) {
            if has_text(page) {
                text = text_of(page);
            }
        }
        page = (page + part).min(last);
        let seen = state(&driver, &done).await;
        assert_eq!((seen.page, &seen.text), (page, &text), "{} rows", done.rows.len());
        call = RunCall::proceed();
    }
}

async fn state(driver: &Driver, done: &Done) -> Book {
    let rows = done.rows.clone().into_iter().collect();
    let state = driver.near.thread_state("t", rows).await.unwrap().unwrap();
    state.into_checkpoint::<Book>(&()).unwrap().values
}

#[tokio::test]
async fn a_large_value_outlives_the_rows_that_later_full_ones_make_obsolete() {
    // The margins make a full row every few dozen pages, which refers to the text in an older row.
    read_in_parts(240, 20, |page| page == 3 || page == 130).await;
}

#[tokio::test]
async fn a_large_value_outlives_the_segment_that_its_row_is_folded_into() {
    // 1,024 deltas are folded; then large margins lead to a full row, which refers to the text in one of
    // them.
    let margin = |page| if page > 1_600 { 3_000 } else { 10 };
    let build = || reading(1_700, margin, |page| page == 500);
    let mut driver = Driver::new(build(), build());
    let call = RunCall::invoke::<Book>(&(), &Book::update()).unwrap();
    let done = driver.call_once(call.max_supersteps(1_600)).await;
    assert!(done.rows.keys().any(|key| key.ends_with(".2")), "no segment: {:?}", done.rows.keys());

    let mut driver = Driver::new(build(), build());
    let call = RunCall::invoke::<Book>(&(), &Book::update()).unwrap();
    let done = driver.call_once(call.max_supersteps(2_000)).await;
    let mut fulls = done.rows.keys().filter(|key| key.ends_with(".0"));
    assert!(
        fulls.next_back().is_some_and(|last| &**last > ".00000000.0000000000000640"),
        "{:?}",
        done.rows.keys()
    );
    let seen = state(&driver, &done).await;
    assert_eq!((seen.page, seen.text), (1_700, text_of(500)));
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Collection {
    item: String,
    #[reduce(append)]
    items: Vec<String>,
    turns: u64,
}

/// A subgraph that remembers what it was given, and fails for one of the items after a few supersteps.
fn collecting() -> CompiledGraph<Work> {
    async fn turn(collection: Snapshot<Collection>) -> Result<CollectionUpdate> {
        let update = Collection::update().turns(collection.turns + 1);
        match collection.turns {
            0 => Ok(update.items([collection.item.clone()])),
            25 if collection.item == "bad" => Err("the item is bad".into()),
            _ => Ok(update),
        }
    }
    let next = |collection: &Collection| if collection.turns <= 30 { "turn" } else { END };
    let inside = StateGraph::new().node("turn", turn).edge(START, "turn").branch("turn", next, ["turn", END]);
    let inside = inside.compile().unwrap().embed(
        |work: Snapshot<Work>| {
            let item = work.lines.last().cloned().unwrap_or_default();
            Collection::update().item(item).turns(0)
        },
        |collection: Collection| Work::update().lines([collection.items.join("+")]),
    );
    let graph = StateGraph::new().node("collect", inside.memory(Memory::PerThread)).edge(START, "collect");
    graph.compile().unwrap()
}

#[tokio::test]
async fn a_memory_keeps_the_checkpoint_that_its_thread_names_while_a_failed_call_adds_others() {
    let mut driver = Driver::new(collecting(), collecting());
    let give = |item: &str| RunCall::invoke::<Work>(&(), &Work::update().lines([item])).unwrap();
    driver.call_once(give("tea")).await;
    let failed = driver.call_once(give("bad")).await;
    assert_eq!(failed.end.error_code(), Some("E_NODE_FAILED"), "{:?}", failed.end);
    let done = driver.call_once(give("milk").abandon()).await;
    let outcome = done.end.into_result::<Work>(&()).unwrap();
    assert_eq!(outcome.output().lines.last().map(String::as_str), Some("tea+milk"));
}

#[tokio::test]
async fn a_journaled_run_asks_for_its_commits_to_be_stored_and_for_the_rest_when_it_pauses() {
    let graph = asking(false);
    for journaled in [true, false] {
        let ground = Ground::new("t", 1, UNIX_EPOCH);
        let ground = if journaled { ground.journaled() } else { ground };
        let call = RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
        let mut run = graph.drive(call, ground).unwrap();
        let mut commits = Vec::new();
        while run.end().is_none() {
            // The last task is done; the others wait for answers.
            for need in run.needs().unwrap().into_iter().rev() {
                let reply = match need.kind {
                    NeedKind::Task(task) => Reply::Task(graph.run_task(*task).await.unwrap()),
                    NeedKind::Store(change) => {
                        commits.push(change.set.iter().any(|(key, _)| !key.contains(".w")));
                        Reply::Stored(Ok(()))
                    }
                    other => panic!("{other:?}"),
                };
                run.give(need.id, reply).unwrap();
            }
        }
        // The input; then the result and the questions, together or as they come.
        let expected: &[bool] = if journaled { &[true, false] } else { &[true, false, false] };
        assert_eq!(commits, expected);
    }
}

/// A graph, a call without a history, and one with it.
type Late<'a> = (&'a dyn Fn() -> CompiledGraph<Work>, [RunCall; 2]);

/// A graph, and calls on one thread of it.
type Calls<'a> = (&'a dyn Fn() -> CompiledGraph<Work>, Vec<RunCall>);

/// The rows are lost, and read from the history: calls end as if they were there.
#[tokio::test]
async fn a_thread_goes_on_with_the_rows_that_its_history_has() {
    let invoke = || RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
    let give = |item: &str| RunCall::invoke::<Work>(&(), &Work::update().lines([item])).unwrap();
    let loops = || looping(2_000);
    let nested = || StateGraph::new().node("inner", failing()).edge(START, "inner").compile().unwrap();
    let calls: [Calls<'_>; 5] = [
        (&|| busy(false), vec![invoke(), invoke()]),
        (&|| asking(false), vec![invoke(), RunCall::update_state::<Work>(&(), &step("edit", 1)).unwrap()]),
        (&collecting, vec![give("tea"), give("bad"), give("milk").abandon()]),
        // So long that its rows have segments.
        (&loops, vec![invoke().max_supersteps(1_100), RunCall::proceed().max_supersteps(1_000)]),
        // A subgraph that has failed beside a finished task.
        (&nested, vec![invoke(), RunCall::proceed()]),
    ];
    for (build, calls) in calls {
        let [mut kept, mut lost] = [Driver::new(build(), build()), Driver::new(build(), build())];
        for call in calls {
            let (there, here) = (kept.call_once(call.clone()).await, lost.call_once(call).await);
            assert_eq!((there.end, there.journal.tasks), (here.end, here.journal.tasks));
            let rows = ThreadRows::read("t", &*lost.history).await.unwrap();
            lost.rows = rows.into_vec().into_iter().collect();
        }
    }
}

#[tokio::test]
async fn a_large_value_is_among_the_rows_that_the_history_has() {
    let build = || reading(240, |_| 3_000, |page| page == 3);
    let mut driver = Driver::new(build(), build());
    let call = RunCall::invoke::<Book>(&(), &Book::update()).unwrap();
    driver.call_once(call.max_supersteps(200)).await;
    let rows = ThreadRows::read("t", &*driver.history).await.unwrap();
    driver.rows = rows.into_vec().into_iter().collect();
    let done = driver.call_once(RunCall::proceed()).await;
    let seen = state(&driver, &done).await;
    assert_eq!((seen.page, seen.text), (240, text_of(3)));
}

/// A store that is attached when the thread is there already gets what the thread has, then what follows.
#[tokio::test]
async fn a_history_begins_with_the_rows_when_its_store_comes_later() {
    let invoke = || RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
    let loops = || looping(2_000);
    let calls: [Late<'_>; 3] = [
        (&|| busy(false), [invoke(), invoke()]),
        (&|| asking(false), [invoke(), RunCall::update_state::<Work>(&(), &step("edit", 1)).unwrap()]),
        // So long that its rows have segments.
        (&loops, [invoke().max_supersteps(1_000), RunCall::proceed().max_supersteps(1_000)]),
    ];
    for (build, [before, after]) in calls {
        let mut driver = Driver::new(build(), build());
        driver.call_once(before).await;
        driver.history = Arc::new(MemorySaver::new());
        let done = driver.call_once(after).await;

        let rows = done.rows.into_iter().collect();
        let state = driver.near.thread_state("t", rows).await.unwrap().unwrap();
        let state = state.into_checkpoint::<Work>(&()).unwrap();
        let kept = build().checkpointer(Arc::clone(&driver.history));
        let history = kept.history("t").await.unwrap();
        assert!(history.len() > 1);
        for checkpoint in &history {
            assert_eq!(kept.state_at("t", checkpoint.id).await.unwrap().unwrap().values, checkpoint.values);
        }
        let newest = kept.state("t").await.unwrap().unwrap();
        assert_eq!((newest.values, newest.interrupts), (state.values, state.interrupts));
    }
}
