//! Which results are stored, when, and what becomes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::checkpoint::{Place, WaitingQuery, catalog};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};

use super::world::{World, count_of, node};
use crate::common::words::{Words, text};

/// The result is in the store when the step is over, also if the run does not wait for its commits.
#[tokio::test]
async fn the_result_is_stored_before_the_step_is_over() {
    for durability in [Durability::Sync, Durability::Async] {
        let world = World::new();
        let again = world.clone();
        let node = node(move |ctx| {
            let world = again.clone();
            async move {
                let mark = ctx.once("x", world.work("<x>".to_owned(), 1)).await?;
                assert!(world.saver.has_stored_marked("<x>"), "{durability:?}");
                Ok(vec![mark])
            }
        });
        let graph = world.compile(StateGraph::new().node("a", node).edge(START, "a"));
        let outcome = graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
        assert_eq!(text(outcome.output()), "<x>");
    }
}

#[tokio::test]
async fn waiting_threads_and_open_questions_do_not_show_it() {
    let world = World::new();
    let graph = world.compile(StateGraph::new().node("a", world.asks(2)).edge(START, "a"));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let waiting = catalog::waiting(&world.saver, WaitingQuery::default()).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let tail = world.saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert_eq!(tail.writes.len(), 3, "two results and a question");
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts.len(), 1);
    graph.resume(true).thread("t").await.unwrap();
    let tail = world.saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert_eq!(tail.writes, [], "the commit of the task drops its results");
}

#[tokio::test]
async fn edits_of_the_state_and_copies_take_it_over() {
    for eager in [false, true] {
        let world = World::new();
        let graph = StateGraph::new().node("a", world.asks(1)).edge(START, "a");
        let graph = world.compile(if eager { graph.eager() } else { graph });
        graph.invoke(Words::update()).thread("t").await.unwrap();
        graph.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
        graph.copy_thread("t", "copy").await.unwrap();
        for thread in ["t", "copy"] {
            let words = graph.resume(true).thread(thread).await.unwrap().into_finished().unwrap();
            assert_eq!(text(&words), "edited <a.0>", "{thread}, eager: {eager}");
        }
        assert_eq!(world.effects(), ["<a.0>"], "eager: {eager}");
    }
}

#[tokio::test]
async fn forks_replays_and_new_runs_do_it_again() {
    let calls: Arc<AtomicU32> = Arc::default();
    let counter = Arc::clone(&calls);
    let node = move |ctx: Ctx| {
        let calls = Arc::clone(&counter);
        async move {
            let n = ctx.once("count", async move { count_of(&calls).await }).await?;
            let _: bool = ctx.interrupt("go on?")?;
            Ok::<_, BoxError>(Words::update().seen([n.to_string()]))
        }
    };
    let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap().checkpoint().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    graph.update_state("t").update(Words::update()).await.unwrap();
    // From the checkpoint before the edit: a replay, on a branch of its own.
    graph.proceed().from(first).thread("t").await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    graph.invoke(Words::update()).thread("t").abandon().await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let words = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "2");
    // The same node in the next run.
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn each_task_of_a_node_has_its_own() {
    let world = World::new();
    let again = world.clone();
    let work = move |ctx: Ctx, Input(page): Input<u32>| {
        let world = again.clone();
        async move {
            let mark = ctx.once("fetch", world.work(format!("<{page}>"), 1)).await?;
            let _: bool = ctx.interrupt(page)?;
            Ok::<_, BoxError>(Words::update().seen([mark]))
        }
    };
    for eager in [false, true] {
        let graph = StateGraph::new().node("work", work.clone()).branch(
            START,
            |_: &Words| {
                vec![1u32, 2, 3].into_iter().map(|page| Dispatch::new("work", page)).collect::<Vec<_>>()
            },
            ["work"],
        );
        let graph = if eager { graph.eager() } else { graph };
        let thread = if eager { "e" } else { "s" };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let waits = graph.invoke(Words::update()).thread(thread).await.unwrap();
        let answers: Vec<_> = waits.interrupts().iter().map(|open| (open.id.unwrap(), true)).collect();
        let words = graph.resume_many(answers).thread(thread).await.unwrap().into_finished().unwrap();
        assert_eq!(text(&words), "<1> <2> <3>");
    }
    assert_eq!(world.effects().len(), 6);
}

/// Without a checkpointer, and with `Durability::Exit`, nothing is stored before the end of a call.
#[tokio::test]
async fn runs_that_store_nothing_do_it_again_after_an_interrupt() {
    for is_kept in [false, true] {
        let calls: Arc<AtomicU32> = Arc::default();
        let counter = Arc::clone(&calls);
        let node = node(move |ctx| {
            let calls = Arc::clone(&counter);
            async move {
                let n = ctx.once("count", async move { count_of(&calls).await }).await?;
                if is_kept {
                    let _: bool = ctx.interrupt("go on?")?;
                }
                Ok(vec![n.to_string()])
            }
        });
        let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
        if is_kept {
            let graph = graph.checkpointer(MemorySaver::new());
            graph.invoke(Words::update()).thread("t").durability(Durability::Exit).await.unwrap();
            let outcome = graph.resume(true).thread("t").durability(Durability::Exit).await.unwrap();
            assert_eq!(text(outcome.output()), "1");
        } else {
            assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "0");
        }
    }
}

/// A store that fails ends the run, and the step is done again: its result is not stored.
#[tokio::test]
async fn a_failing_store_ends_the_run() {
    let world = World::new();
    let graph = world.compile(StateGraph::new().node("a", world.works(1)).edge(START, "a"));
    world.saver.fail_writes(1);
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Store);
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), world.count("<a.0>")), ("<a.0>".to_owned(), 2));
}
