//! The memory of a subgraph lasts for a call or for a thread, or there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::{Code, Durability, Memory, Subgraph};
use serde::{Deserialize, Serialize};

use crate::common::poll::pending_for;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text};

/// The words that the subgraph was given, and the number of its notes in a run.
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

fn diary_node(memory: Memory) -> Subgraph<Words, Diary> {
    let sub = diary().embed(
        |words: Snapshot<Words>| Diary::update().told(words.seen.last().cloned()),
        |diary: Diary| Words::update().seen([format!("{}/{}", diary.told.join("+"), diary.today)]),
    );
    sub.memory(memory)
}

fn graph_with_diary(memory: Memory) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("diary", diary_node(memory)).edge(START, "diary");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

async fn last_word(graph: &CompiledGraph<Words>, word: &str, thread: &str, mode: Durability) -> String {
    let run = graph.invoke(Words::update().seen([word])).thread(thread).durability(mode);
    run.await.unwrap().into_finished().unwrap().seen.pop().unwrap()
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[tokio::test]
async fn without_a_memory_per_thread_a_call_does_not_see_earlier_calls() {
    for memory in [Memory::PerCall, Memory::None] {
        let graph = graph_with_diary(memory);
        assert_eq!(last_word(&graph, "a", "t", Durability::Sync).await, "a/1");
        assert_eq!(last_word(&graph, "b", "t", Durability::Sync).await, "b/1");
    }
}

#[tokio::test]
async fn each_thread_has_its_own_memory() {
    for mode in MODES {
        let graph = graph_with_diary(Memory::PerThread);
        assert_eq!(last_word(&graph, "a", "t", mode).await, "a/1");
        assert_eq!(last_word(&graph, "b", "t", mode).await, "a+b/1", "run channels are reset: {mode:?}");
        assert_eq!(last_word(&graph, "c", "u", mode).await, "c/1", "another thread has another memory");
        assert_eq!(last_word(&graph, "d", "t", mode).await, "a+b+d/1");
    }
}

#[tokio::test]
async fn without_a_checkpointer_a_memory_per_thread_remembers_nothing() {
    let graph = StateGraph::new()
        .node("diary", diary_node(Memory::PerThread))
        .edge(START, "diary")
        .compile()
        .unwrap();
    for word in ["a", "b"] {
        let words = graph.invoke(Words::update().seen([word])).await.unwrap().into_finished().unwrap();
        assert_eq!(words.seen[1], format!("{word}/1"));
    }
}

#[tokio::test]
async fn successive_calls_of_a_node_share_a_memory_and_different_nodes_do_not() {
    let graph = StateGraph::new()
        .node("diary", diary_node(Memory::PerThread))
        .node("other", diary_node(Memory::PerThread))
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
async fn two_parallel_calls_of_a_memory_are_an_error_and_neither_runs() {
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
async fn parallel_children_that_share_a_memory_are_an_error() {
    let child = StateGraph::new()
        .node("diary", diary_node(Memory::PerThread))
        .edge(START, "diary")
        .compile()
        .unwrap();
    let once = |graph: StateGraph<Words>| graph.compile().unwrap().checkpointer(MemorySaver::new());
    let loops = once(StateGraph::new().node("x", child.clone()).edge(START, "x"));
    assert_eq!(last_word(&loops, "a", "t", Durability::Sync).await, "a/1");
    assert_eq!(last_word(&loops, "b", "t", Durability::Sync).await, "a+b/1", "the outer child has no memory");

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
async fn a_memory_over_the_same_state_reads_the_outer_state() {
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
async fn a_waiting_memory_can_be_resumed_and_forgets_an_abandoned_call() {
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
async fn a_child_without_memory_stores_nothing_and_restarts_after_a_failure() {
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
async fn a_child_without_memory_cannot_ask_in_a_stored_run() {
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
async fn a_drain_lets_a_child_without_memory_finish() {
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
