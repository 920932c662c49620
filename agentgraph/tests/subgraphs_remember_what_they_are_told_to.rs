//! The memory of a subgraph: a call, a thread, or none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::{Code, Durability, Memory, Subgraph};
use common::poll::pending_for;
use common::saver::NotingSaver;
use common::words::{Words, WordsUpdate, says, text};
use serde::{Deserialize, Serialize};

/// Notes down what it is told, and counts its calls.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Diary {
    #[reduce(append)]
    told: Vec<String>,
    #[channel(run)]
    today: u32,
}

fn diary() -> CompiledGraph<Diary> {
    async fn note(diary: Snapshot<Diary>) -> DiaryUpdate {
        pending_for(9).await;
        Diary::update().today(diary.today + 1)
    }
    StateGraph::new().node("note", note).edge(START, "note").compile().unwrap()
}

fn told(memory: Memory) -> Subgraph<Words, Diary> {
    let sub = diary().embed(
        |words: Snapshot<Words>| Diary::update().told(words.seen.last().cloned()),
        |diary: Diary| Words::update().seen([format!("{}/{}", diary.told.join("+"), diary.today)]),
    );
    sub.memory(memory)
}

fn around(memory: Memory) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("diary", told(memory)).edge(START, "diary");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

async fn tell(graph: &CompiledGraph<Words>, word: &str, thread: &str, mode: Durability) -> String {
    let run = graph.invoke(Words::update().seen([word])).thread(thread).durability(mode);
    run.await.unwrap().into_finished().unwrap().seen.pop().unwrap()
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[tokio::test]
async fn a_call_remembers_nothing_of_the_one_before() {
    for memory in [Memory::PerCall, Memory::None] {
        let graph = around(memory);
        assert_eq!(tell(&graph, "a", "t", Durability::Sync).await, "a/1");
        assert_eq!(tell(&graph, "b", "t", Durability::Sync).await, "b/1");
    }
}

#[tokio::test]
async fn a_memory_per_thread_is_that_of_a_thread_of_its_own() {
    for mode in MODES {
        let graph = around(Memory::PerThread);
        assert_eq!(tell(&graph, "a", "t", mode).await, "a/1");
        assert_eq!(tell(&graph, "b", "t", mode).await, "a+b/1", "run channels begin anew: {mode:?}");
        assert_eq!(tell(&graph, "c", "u", mode).await, "c/1", "another thread knows nothing");
        assert_eq!(tell(&graph, "d", "t", mode).await, "a+b+d/1");
    }
}

#[tokio::test]
async fn without_a_checkpointer_there_is_no_thread_to_remember() {
    let graph =
        StateGraph::new().node("diary", told(Memory::PerThread)).edge(START, "diary").compile().unwrap();
    assert_eq!(tell(&graph, "a", "t", Durability::Sync).await, "a/1");
    assert_eq!(tell(&graph, "b", "t", Durability::Sync).await, "b/1");
}

#[tokio::test]
async fn calls_one_after_the_other_in_a_run_share_it_and_nodes_do_not() {
    let graph = StateGraph::new()
        .node("diary", told(Memory::PerThread))
        .node("other", told(Memory::PerThread))
        .edge(START, "diary")
        .branch(
            "diary",
            |words: &Words| if words.seen.len() < 3 { "diary" } else { "other" },
            ["diary", "other"],
        )
        .compile()
        .unwrap();
    for mode in MODES {
        let graph = graph.clone().checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update().seen(["a"])).thread("t").durability(mode).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "a a/1 a+a/1/1 a+a/1/1/1", "{mode:?}");
    }
}

#[tokio::test]
async fn two_parallel_calls_are_an_error_and_neither_runs() {
    async fn split() -> Command<Words> {
        Command::to(["a", "b"].map(|word| Dispatch::new("diary", word.to_owned())).to_vec())
    }
    let calls = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&calls);
    let note = move || {
        counting.fetch_add(1, Ordering::SeqCst);
        std::future::ready(())
    };
    let child = StateGraph::<Diary>::new().node("note", note).edge(START, "note").compile().unwrap();
    let sub = child.embed(|Input(word): Input<String>| Diary::update().told([word]), |_| Words::update());
    let graph = StateGraph::new().node("split", split.targets(["diary"]));
    let graph = graph.node("diary", sub.memory(Memory::PerThread)).edge(START, "split").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!((error.code(), calls.load(Ordering::SeqCst)), (Code::ConcurrentSubgraph, 0));
}

#[tokio::test]
async fn a_memory_in_two_children_that_run_beside_each_other_is_the_same() {
    let child =
        StateGraph::new().node("diary", told(Memory::PerThread)).edge(START, "diary").compile().unwrap();
    let once = |graph: StateGraph<Words>| graph.compile().unwrap().checkpointer(MemorySaver::new());
    let loops = once(StateGraph::new().node("x", child.clone()).edge(START, "x"));
    assert_eq!(tell(&loops, "a", "t", Durability::Sync).await, "a/1");
    assert_eq!(tell(&loops, "b", "t", Durability::Sync).await, "a+b/1", "also in a child that has none");

    async fn split() -> Command<Words> {
        Command::to(["x", "y"].map(|word| Dispatch::new("x", word.to_owned())).to_vec())
    }
    let sub = child.embed(
        |Input(word): Input<String>| Words::update().seen([word]),
        |words: Words| Words::update().seen(words.seen),
    );
    let graph =
        once(StateGraph::new().node("split", split.targets(["x"])).node("x", sub).edge(START, "split"));
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("E_CONCURRENT_SUBGRAPH"), "{error}");
}

#[tokio::test]
async fn a_memory_over_the_same_state_reads_the_state_around_it() {
    async fn count(words: Snapshot<Words>) -> WordsUpdate {
        Words::update().seen([words.seen.len().to_string()])
    }
    let child = StateGraph::new().node("count", count).edge(START, "count").compile().unwrap();
    let graph = StateGraph::new().node("sub", child.memory(Memory::PerThread)).edge(START, "sub");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    for expected in ["a 1", "a 1 a 3"] {
        let outcome = graph.invoke(Words::update().seen(["a"])).thread("t").await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), expected);
    }
}

#[tokio::test]
async fn a_memory_that_waits_goes_on_and_a_call_that_was_given_up_has_never_been() {
    async fn ask(ctx: Ctx) -> Result<DiaryUpdate> {
        let word: String = ctx.interrupt("?")?;
        Ok(Diary::update().told([word]))
    }
    let child = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let sub = child.embed(
        |words: Snapshot<Words>| Diary::update().told(words.seen.last().cloned()),
        |diary: Diary| Words::update().seen([diary.told.join("+")]),
    );
    let graph = StateGraph::new().node("diary", sub.memory(Memory::PerThread)).edge(START, "diary");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let invoke = |word: &'static str| graph.invoke(Words::update().seen([word])).thread("t");
    invoke("a").await.unwrap();
    assert_eq!(graph.state("t").await.unwrap().unwrap().children[0].namespace, "diary");
    let outcome = graph.resume("A").thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a a+A");
    let first = invoke("b").await.unwrap();
    let second = invoke("c").abandon().await.unwrap();
    assert_ne!(first.interrupts()[0].id, second.interrupts()[0].id);
    let outcome = graph.resume("C").thread("t").await.unwrap();
    assert_eq!(outcome.output().seen.last().unwrap(), "a+A+c+C");
}

#[tokio::test]
async fn nothing_is_stored_of_a_child_without_memory_and_a_call_that_is_cut_off_starts_over() {
    let calls = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&calls);
    let first = move || {
        counting.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Words::update().seen(["secret"]))
    };
    let tries = Arc::new(AtomicU32::new(0));
    let trying = Arc::clone(&tries);
    let second = move || {
        let fails = trying.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if fails {
                Err(agentgraph::Terminal::new("not yet").into())
            } else {
                Ok::<_, agentgraph::BoxError>(())
            }
        }
    };
    let child = StateGraph::new().node("first", first).node("second", second).edge(START, "first");
    let child = child.edge("first", "second").compile().unwrap();
    let graph = StateGraph::new().node("sub", child.memory(Memory::None)).node("q", says("q"));
    let saver = NotingSaver::memory();
    let graph = graph.edge(START, "sub").edge("sub", "q").compile().unwrap().checkpointer(saver.clone());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert!(!saver.has_stored("secret"));
    assert!(graph.state("t").await.unwrap().unwrap().children.is_empty());
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), calls.load(Ordering::SeqCst)), ("secret q".into(), 2));
}

#[tokio::test]
async fn a_child_without_memory_cannot_ask_where_the_run_is_kept() {
    async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
        let word: String = ctx.interrupt("?")?;
        Ok(Words::update().seen([word]))
    }
    let child = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let graph =
        StateGraph::new().node("sub", child.memory(Memory::None)).edge(START, "sub").compile().unwrap();
    let error = graph.clone().checkpointer(MemorySaver::new()).invoke(Words::update()).thread("t").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("Memory::PerCall"), "{error}");
    assert_eq!(graph.invoke(Words::update()).await.unwrap().interrupts().len(), 1);
}

#[tokio::test]
async fn a_drain_waits_for_the_end_of_a_child_that_could_not_go_on() {
    async fn drain(ctx: Ctx) -> WordsUpdate {
        ctx.drain();
        Words::update().seen(["c1"])
    }
    let child = StateGraph::new().node("drain", drain).node("c2", says("c2")).edge(START, "drain");
    let child = child.edge("drain", "c2").compile().unwrap();
    let graph = StateGraph::new().node("sub", child.memory(Memory::None)).node("q", says("q"));
    let graph = graph.edge(START, "sub").edge("sub", "q").compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Drained, .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "c1 c2");
}
