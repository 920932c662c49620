//! The checkpoint of a thread names a checkpoint of each memory of its subgraphs, and a call continues
//! from there. A replay sees the memory as it was then, and a call undone with its task leaves no trace.
#![cfg(feature = "sqlite")]

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::checkpoint::{Catalog, ListQuery, Place, Retention, Rewrite, RowKind, SqliteSaver, Upkeep};
use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Checkpoint, CheckpointId, Checkpointer, Code, Durability, Memory, RetryPolicy};
use serde::{Deserialize, Serialize};

use crate::common::poll::{at_most, pending_for};
use crate::common::words::{Words, WordsUpdate, says, text};
use crate::sqlite_folder::Folder;

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// The memory of the subgraph.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Diary {
    #[reduce(append)]
    told: Vec<String>,
}

fn state_graph(eager: bool) -> StateGraph<Words> {
    if eager { StateGraph::new().eager() } else { StateGraph::new() }
}

/// Returns a node that gives the last word to the subgraph and returns all words the subgraph has
/// received.
fn diary(child: CompiledGraph<Diary>) -> Node<Words> {
    let sub = child.embed(
        |words: Snapshot<Words>| Diary::update().told(words.seen.last().cloned()),
        |diary: Diary| Words::update().seen([diary.told.join("+")]),
    );
    sub.memory(Memory::PerThread).into_node()
}

fn notes() -> CompiledGraph<Diary> {
    async fn note() {
        pending_for(12).await;
    }
    StateGraph::new().node("note", note).edge(START, "note").compile().unwrap()
}

/// Returns a graph of `before`, then `diary`, with this checkpointer.
fn diary_graph(eager: bool, saver: impl Checkpointer) -> CompiledGraph<Words> {
    async fn before() {}
    let graph = state_graph(eager).node("before", before).node("diary", diary(notes()));
    graph.edge(START, "before").edge("before", "diary").compile().unwrap().checkpointer(saver)
}

async fn run_with(graph: &CompiledGraph<Words>, word: &str, mode: Durability) -> String {
    let run = graph.invoke(Words::update().seen([word])).thread("t").durability(mode).abandon();
    run.await.unwrap().into_finished().unwrap().seen.pop().unwrap()
}

async fn history(graph: &CompiledGraph<Words>) -> Vec<Checkpoint<Words>> {
    graph.history("t").await.unwrap()
}

/// Returns the checkpoints at which `diary` runs next, oldest first.
async fn before_the_diary(graph: &CompiledGraph<Words>) -> Vec<CheckpointId> {
    let history = history(graph).await;
    history.iter().rev().filter(|one| one.next == ["diary"]).map(|one| one.id).collect()
}

async fn replay(graph: &CompiledGraph<Words>, from: CheckpointId, mode: Durability) -> String {
    let run = graph.proceed().thread("t").from(from).durability(mode);
    run.await.unwrap().into_finished().unwrap().seen.pop().unwrap()
}

/// LangGraph 1.2.22 gives the same results for the same graph (`checkpointer=True`): "a+b" three times,
/// "a" three times, then "a+z".
#[tokio::test]
async fn replays_of_a_checkpoint_start_from_the_same_memory() {
    for mode in MODES {
        for eager in [false, true] {
            let graph = diary_graph(eager, MemorySaver::new());
            // `Exit` stores no checkpoint inside a run to replay from.
            assert_eq!(run_with(&graph, "a", Durability::Sync).await, "a");
            assert_eq!(run_with(&graph, "b", Durability::Sync).await, "a+b");
            let [first, second] = before_the_diary(&graph).await[..] else { panic!("expected two runs") };
            for _ in 0..3 {
                assert_eq!(replay(&graph, second, mode).await, "a+b", "{mode:?} eager {eager}");
            }
            for _ in 0..3 {
                assert_eq!(replay(&graph, first, mode).await, "a", "{mode:?} eager {eager}");
            }
            assert_eq!(run_with(&graph, "z", mode).await, "a+z", "the run continues from the last replay");
            assert_eq!(replay(&graph, second, mode).await, "a+b", "older checkpoints are unchanged");
        }
    }
}

#[tokio::test]
async fn forks_and_edits_continue_from_the_memory_of_their_checkpoint() {
    for eager in [false, true] {
        let graph = diary_graph(eager, MemorySaver::new());
        run_with(&graph, "a", Durability::Sync).await;
        let after_a = history(&graph).await[0].id;
        run_with(&graph, "b", Durability::Sync).await;
        // A copy of the checkpoint, then an edit at it.
        graph.update_state("t").at(after_a).await.unwrap();
        assert_eq!(run_with(&graph, "c", Durability::Sync).await, "a+c");
        graph.update_state("t").at(after_a).update(Words::update().seen(["edited"])).await.unwrap();
        assert_eq!(run_with(&graph, "d", Durability::Sync).await, "a+d");
        // Edits of the newest checkpoint: as a node, as the start and as the end of a run.
        graph.update_state("t").as_node("diary", Words::update().seen(["x"])).await.unwrap();
        assert_eq!(run_with(&graph, "e", Durability::Sync).await, "a+d+e");
        graph.update_state("t").as_start(Words::update().seen(["f"])).await.unwrap();
        let end = graph.proceed().thread("t").await.unwrap();
        assert_eq!(end.output().seen.last().unwrap(), "a+d+e+f");
        graph.update_state("t").as_end(Words::update().seen(["over"])).await.unwrap();
        assert_eq!(run_with(&graph, "g", Durability::Sync).await, "a+d+e+f+g");
    }
}

/// Returns a graph whose runs call a subgraph six times. Each call adds 7 to its memory.
fn sums(saver: impl Checkpointer, eager: bool) -> CompiledGraph<Words> {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Sum {
        total: u64,
    }
    async fn add(sum: Snapshot<Sum>) -> SumUpdate {
        pending_for(30).await;
        Sum::update().total(sum.total + 7)
    }
    let child = StateGraph::new().node("add", add).edge(START, "add").compile().unwrap();
    let sub = child
        .embed(|_: Snapshot<Words>| Sum::update(), |sum: Sum| Words::update().seen([sum.total.to_string()]));
    let graph = state_graph(eager).node("sum", sub.memory(Memory::PerThread)).edge(START, "sum");
    let goes_on = |words: &Words| if words.seen.len().is_multiple_of(7) { END } else { "sum" };
    graph.branch("sum", goes_on, ["sum", END]).compile().unwrap().checkpointer(saver)
}

#[tokio::test]
async fn dropped_calls_leave_no_trace_in_the_memory() {
    let folder = Folder::new();
    for eager in [false, true] {
        let savers: [Arc<dyn Checkpointer>; 2] =
            [Arc::new(MemorySaver::new()), Arc::new(SqliteSaver::open(folder.fresh()).await.unwrap())];
        for saver in savers {
            let graph = sums(Arc::clone(&saver), eager);
            let run = || {
                let run =
                    graph.invoke(Words::update().seen(["begin"])).thread("t").durability(Durability::Exit);
                Box::pin(run.into_future())
            };
            let mut undone = 0;
            let first = loop {
                match at_most(run(), 3 + 5 * undone).await {
                    Some(end) => break end.unwrap().into_finished().unwrap(),
                    None => undone += 1,
                }
            };
            assert!(undone > 5, "{undone}");
            assert_eq!(first.seen.last().unwrap(), "42", "after {undone} dropped calls");
            for polls in 3..20 {
                assert!(at_most(run(), polls).await.is_none());
            }
            let second = run().await.unwrap().into_finished().unwrap();
            assert_eq!(second.seen.last().unwrap(), "84", "the memory of the first run is kept");
        }
    }
}

#[tokio::test]
async fn a_call_in_a_failed_superstep_is_kept_or_abandoned_with_its_task() {
    for mode in MODES {
        let fails = Arc::new(AtomicBool::new(false));
        let failing = Arc::clone(&fails);
        let beside = move || {
            let fails = failing.load(Ordering::SeqCst);
            async move {
                pending_for(40).await;
                if fails { Err::<(), BoxError>("not now".into()) } else { Ok(()) }
            }
        };
        let calls = Arc::new(AtomicU32::new(0));
        let counting = Arc::clone(&calls);
        let note = move || {
            counting.fetch_add(1, Ordering::SeqCst);
            std::future::ready(())
        };
        let child = StateGraph::<Diary>::new().node("note", note).edge(START, "note").compile().unwrap();
        let graph = StateGraph::new().node("diary", diary(child)).node("beside", beside);
        let graph = graph.edge(START, "diary").edge(START, "beside").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        assert_eq!(run_with(&graph, "a", mode).await, "a");

        fails.store(true, Ordering::SeqCst);
        let fail = |word: &'static str| {
            graph.invoke(Words::update().seen([word])).thread("t").durability(mode).abandon().into_future()
        };
        fail("b").await.unwrap_err();
        fail("c").await.unwrap_err();
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        fails.store(false, Ordering::SeqCst);
        let end = graph.proceed().thread("t").durability(mode).await.unwrap().into_finished().unwrap();
        assert_eq!(end.seen.last().unwrap(), "a+c", "{mode:?}: `b` was abandoned with its task");
        assert_eq!(calls.load(Ordering::SeqCst), 3, "a finished call does not run again");
        assert_eq!(
            run_with(&graph, "d", mode).await,
            "a+c+d",
            "{mode:?}: `c` is kept because its task was merged"
        );
    }
}

#[tokio::test]
async fn an_edit_that_ends_a_superstep_keeps_the_memories_of_its_finished_tasks() {
    async fn fails() -> Result<()> {
        pending_for(40).await;
        Err("not now".into())
    }
    let build = || {
        let graph = StateGraph::new().node("diary", diary(notes())).node("fails", fails);
        let graph = graph.edge(START, "diary").branch(
            START,
            |words: &Words| if words.seen.contains(&"b".to_owned()) { END } else { "fails" },
            ["fails", END],
        );
        graph.compile().unwrap().checkpointer(MemorySaver::new())
    };
    for as_end in [false, true] {
        let graph = build();
        graph.invoke(Words::update().seen(["a"])).thread("t").await.unwrap_err();
        let edit = graph.update_state("t");
        let update = Words::update().seen(["edited"]);
        let edit = if as_end { edit.as_end(update) } else { edit.as_node("fails", update) };
        edit.await.unwrap();
        assert_eq!(run_with(&graph, "b", Durability::Sync).await, "a+b", "as end {as_end}");
    }
    // An edit as `diary` replaces its task, and the memory of that call is dropped.
    let graph = build();
    graph.invoke(Words::update().seen(["a"])).thread("t").await.unwrap_err();
    let edit = graph.update_state("t").as_node("diary", Words::update().seen(["no diary"]));
    edit.as_node("fails", Words::update()).await.unwrap();
    assert_eq!(run_with(&graph, "b", Durability::Sync).await, "b");
}

/// Returns a subgraph whose second node fails `times` times.
fn failing_diary(times: &Arc<AtomicU32>) -> CompiledGraph<Diary> {
    let times = Arc::clone(times);
    let second = move || {
        let fails =
            times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        std::future::ready(if fails { Err::<(), BoxError>("not now".into()) } else { Ok(()) })
    };
    async fn first() -> DiaryUpdate {
        Diary::update().told(["first"])
    }
    let graph = StateGraph::new().node("first", first).node("second", second);
    graph.edge(START, "first").edge("first", "second").compile().unwrap()
}

#[tokio::test]
async fn a_retry_continues_the_call_and_a_handler_discards_it() {
    for mode in MODES {
        for eager in [false, true] {
            let times = Arc::new(AtomicU32::new(0));
            let sub = diary(failing_diary(&times)).retry(RetryPolicy::attempts(2).initial(Duration::ZERO));
            let graph =
                state_graph(eager).node("diary", sub.on_error("handle")).node("handle", says("handled"));
            let graph = graph.edge(START, "diary").compile().unwrap().checkpointer(MemorySaver::new());
            let case = format!("{mode:?} eager {eager}");
            assert_eq!(run_with(&graph, "a", mode).await, "a+first");
            times.store(1, Ordering::SeqCst);
            assert_eq!(
                run_with(&graph, "b", mode).await,
                "a+first+b+first",
                "{case}: the second attempt continues the call"
            );
            times.store(2, Ordering::SeqCst);
            assert_eq!(run_with(&graph, "c", mode).await, "handled");
            assert_eq!(
                run_with(&graph, "d", mode).await,
                "a+first+b+first+d+first",
                "{case}: `c` left no memory"
            );
        }
    }
}

#[tokio::test]
async fn an_interrupted_call_is_resumed_by_its_task_and_abandoned_with_it() {
    async fn ask(ctx: Ctx) -> Result<DiaryUpdate> {
        let word: String = ctx.interrupt("?")?;
        Ok(Diary::update().told([word]))
    }
    for mode in MODES {
        for eager in [false, true] {
            let child = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
            let graph = state_graph(eager).node("diary", diary(child)).edge(START, "diary");
            let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
            let invoke = |word: &'static str| {
                graph.invoke(Words::update().seen([word])).thread("t").durability(mode).abandon()
            };
            let answer = async |word: &'static str| {
                let end = graph.resume(word).thread("t").durability(mode).await.unwrap();
                end.into_finished().unwrap().seen.pop().unwrap()
            };
            invoke("a").await.unwrap();
            assert_eq!(answer("A").await, "a+A");
            invoke("b").await.unwrap();
            invoke("c").await.unwrap();
            assert_eq!(answer("C").await, "a+A+c+C", "{mode:?} eager {eager}: `b` was abandoned");
            invoke("d").await.unwrap();
            // An edit of the state keeps the interrupt.
            graph.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
            assert_eq!(answer("D").await, "a+A+c+C+d+D", "{mode:?} eager {eager}");
        }
    }
}

#[tokio::test]
async fn two_tasks_of_a_superstep_cannot_call_the_same_memory_even_one_after_the_other() {
    async fn split() -> Command<Words> {
        Command::to(["x", "y"].map(|word| Dispatch::new("x", word.to_owned())).to_vec())
    }
    let middle = StateGraph::new().node("diary", diary(notes())).edge(START, "diary").compile().unwrap();
    let sub = middle.embed(
        |Input(word): Input<String>| Words::update().seen([word]),
        |words: Words| Words::update().seen(words.seen),
    );
    let graph = StateGraph::new().node("split", split.targets(["x"])).node("x", sub).edge(START, "split");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let run = graph.invoke(Words::update()).thread("t").max_concurrency(1);
    let error = run.await.unwrap_err();
    assert!(error.to_string().contains("E_CONCURRENT_SUBGRAPH"), "{error}");
    // The same holds if the first call is stored and `proceed` runs the second.
    let error = graph.proceed().thread("t").max_concurrency(1).await.unwrap_err();
    assert!(error.to_string().contains("E_CONCURRENT_SUBGRAPH"), "{error}");
}

/// In an eager run a call can begin while another call waits for an answer, at any depth.
#[tokio::test]
async fn another_task_of_an_eager_run_cannot_call_a_memory_whose_call_waits() {
    async fn asks(ctx: Ctx, words: Snapshot<Words>) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt(format!("question {}", words.seen.len()))?;
        Ok(Words::update().seen([answer]))
    }
    async fn slow() {
        pending_for(20).await;
    }
    let asking = StateGraph::new().node("ask", asks).edge(START, "ask").compile().unwrap();
    let asking =
        asking.embed(|_: Snapshot<Words>| Words::update(), |words: Words| Words::update().seen(words.seen));
    let part =
        StateGraph::new().node("m", asking.memory(Memory::PerThread)).edge(START, "m").compile().unwrap();
    let graph = StateGraph::new().eager().node("part", part).node("slow", slow);
    let graph = graph.edge(START, "part").edge(START, "slow").edge("slow", "part").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());

    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("E_CONCURRENT_SUBGRAPH"), "{error}");
    let open = graph.state("t").await.unwrap().unwrap().interrupts;
    assert_eq!(open.iter().map(|one| one.value.as_str().unwrap()).collect::<Vec<_>>(), ["question 0"]);

    // `resume` runs the refused task again, beside the task that now has its answer.
    let error = graph.resume("first").thread("t").await.unwrap_err();
    assert!(error.to_string().contains("E_CONCURRENT_SUBGRAPH"), "{error}");
    let asks = graph.proceed().thread("t").await.unwrap();
    let open: Vec<_> = asks.interrupts().iter().map(|one| one.value.as_str().unwrap()).collect();
    assert_eq!(open, ["question 1"], "the second call continues from the memory of the first");
    let done = graph.resume("second").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(done.seen, ["first", "first", "second"]);
}

/// Returns a graph of two subgraphs without memory. `outer` contains a memory inside a memory; `other`
/// contains one memory.
fn nested_memories(eager: bool, saver: impl Checkpointer) -> CompiledGraph<Words> {
    let once = |name: &'static str, node: Node<Words>| {
        state_graph(eager).node(name, node).edge(START, name).compile().unwrap()
    };
    let say_all = |child: CompiledGraph<Words>, memory| {
        let sub = child.embed(
            |words: Snapshot<Words>| Words::update().seen(words.seen.last().cloned()),
            |words: Words| Words::update().seen([words.seen.join(",")]),
        );
        sub.memory(memory).into_node()
    };
    let inner = once("diary", diary(notes()));
    let remembers = say_all(inner.clone(), Memory::PerThread);
    let forgets = say_all(inner, Memory::PerCall);
    let middle = once("middle", remembers);
    let graph = state_graph(eager).node("outer", say_all(middle, Memory::PerCall)).node("other", forgets);
    graph.edge(START, "outer").edge("outer", "other").compile().unwrap().checkpointer(saver)
}

#[tokio::test]
async fn the_root_checkpoint_names_memories_of_every_depth() {
    for mode in MODES {
        for eager in [false, true] {
            let saver = Arc::new(MemorySaver::new());
            let graph = nested_memories(eager, Arc::clone(&saver));
            let run = async |word: &'static str| {
                let run = graph.invoke(Words::update().seen([word])).thread("t").durability(mode);
                text(&run.await.unwrap().into_finished().unwrap())
            };
            run("a").await;
            let after_a = history(&graph).await[0].clone();
            let named: Vec<&str> = after_a.memories.keys().map(String::as_str).collect();
            assert_eq!(
                named,
                ["other|diary", "outer|middle", "outer|middle|diary"],
                "{mode:?} eager {eager}"
            );
            let with_b = run("b").await;
            let after_b = history(&graph).await[0].clone();
            assert!(after_b.memories.iter().all(|(memory, at)| *at > after_a.memories[memory]));
            for _ in 0..2 {
                graph.update_state("t").at(after_a.id).await.unwrap();
                assert_eq!(run("b").await, with_b, "{mode:?} eager {eager}");
            }
        }
    }
}

#[tokio::test]
async fn a_run_dropped_at_any_poll_remembers_each_call_once() {
    for mode in [Durability::Sync, Durability::Async] {
        for eager in [false, true] {
            let graph = nested_memories(eager, MemorySaver::new());
            let first_run = |thread: &'static str| graph.invoke(Words::update().seen(["a"])).thread(thread);
            first_run("whole").await.unwrap();
            let whole = graph.invoke(Words::update().seen(["b"])).thread("whole").await.unwrap();
            let mut polls = 1;
            loop {
                let thread = format!("cut-{polls}");
                graph.invoke(Words::update().seen(["a"])).thread(&thread).await.unwrap();
                let second = graph.invoke(Words::update().seen(["b"])).thread(&thread).durability(mode);
                if let Some(end) = at_most(second.into_future(), polls).await {
                    assert_eq!(end.unwrap().output(), whole.output());
                    break;
                }
                let state = graph.state(&thread).await.unwrap().unwrap();
                let has_begun = state.values.seen.contains(&"b".to_owned());
                let end = match (has_begun, state.next.is_empty()) {
                    (true, true) => state.values,
                    (true, false) => graph.proceed().thread(&thread).await.unwrap().into_finished().unwrap(),
                    (false, _) => {
                        let again = graph.invoke(Words::update().seen(["b"])).thread(&thread);
                        again.await.unwrap().into_finished().unwrap()
                    }
                };
                assert_eq!(&end, whole.output(), "{mode:?} eager {eager}, dropped after {polls} polls");
                polls += 1;
            }
            assert!(polls > 10, "{polls}");
        }
    }
}

#[tokio::test]
async fn pruning_keeps_the_memories_of_kept_checkpoints() {
    for eager in [false, true] {
        let saver = Arc::new(MemorySaver::new());
        let graph = diary_graph(eager, Arc::clone(&saver));
        for word in ["a", "b", "c", "d", "e"] {
            run_with(&graph, word, Durability::Sync).await;
        }
        let third = before_the_diary(&graph).await[2];
        let rows = async || {
            let place = Place { thread: "t", namespace: "diary" };
            saver.list(place, ListQuery::default()).await.unwrap().len()
        };
        let before = rows().await;
        let policy = Retention::keep(move |one| one.place.namespace.is_empty() && one.id == third);
        graph.prune(policy).thread("t").await.unwrap();
        assert!(rows().await < before);
        assert_eq!(rows().await, 2, "the memory checkpoints named by the third and the newest checkpoint");
        assert_eq!(replay(&graph, third, Durability::Sync).await, "a+b+c", "eager {eager}");
        assert_eq!(replay(&graph, third, Durability::Sync).await, "a+b+c", "eager {eager}");
        graph.prune(Retention::keep_latest_per_thread()).thread("t").await.unwrap();
        assert_eq!(rows().await, 1);
        assert_eq!(run_with(&graph, "f", Durability::Sync).await, "a+b+c+f");
    }
}

#[tokio::test]
async fn a_copied_thread_has_the_memories_of_the_original_at_each_checkpoint() {
    let graph = diary_graph(false, MemorySaver::new());
    run_with(&graph, "a", Durability::Sync).await;
    run_with(&graph, "b", Durability::Sync).await;
    graph.copy_thread("t", "copy").await.unwrap();
    let [first, second] = before_the_diary(&graph).await[..] else { panic!("expected two runs") };
    run_with(&graph, "only the original", Durability::Sync).await;
    let replayed = async |from| {
        let end = graph.proceed().thread("copy").from(from).await.unwrap();
        end.into_finished().unwrap().seen.pop().unwrap()
    };
    assert_eq!(replayed(second).await, "a+b");
    assert_eq!(replayed(first).await, "a");
    let end = graph.invoke(Words::update().seen(["z"])).thread("copy").await.unwrap();
    assert_eq!(end.output().seen.last().unwrap(), "a+z");
    assert_eq!(run_with(&graph, "y", Durability::Sync).await, "a+b+only the original+y");
}

#[tokio::test]
async fn an_edit_of_a_memory_applies_from_the_next_call() {
    let saver = Arc::new(MemorySaver::new());
    let graph = diary_graph(false, Arc::clone(&saver));
    run_with(&graph, "a", Durability::Sync).await;
    let memory = notes().checkpointer(Arc::clone(&saver)).namespace("diary");
    memory.update_state("t").update(Diary::update().told(["a note"])).await.unwrap();
    assert_eq!(run_with(&graph, "b", Durability::Sync).await, "a+a note+b");
    let second = before_the_diary(&graph).await[1];
    assert_eq!(replay(&graph, second, Durability::Sync).await, "a+a note+b");
    assert_eq!(
        replay(&graph, second, Durability::Sync).await,
        "a+a note+b",
        "the replay uses this memory checkpoint although it is no longer the newest"
    );
}

/// Returns those of these texts that a record contains.
fn texts_in<'a>(record: &[u8], texts: &'a [String]) -> Vec<&'a str> {
    let found = texts.iter().filter(|text| record.windows(text.len()).any(|bytes| bytes == text.as_bytes()));
    found.map(String::as_str).collect()
}

#[tokio::test]
async fn a_delta_names_changed_memories_and_a_full_names_all() {
    let names: Vec<String> = (0..20).map(|number| format!("memory_{number:02}")).collect();
    let mut graph = StateGraph::new();
    for name in &names {
        graph = graph.node(name.clone(), diary(notes()));
    }
    for pair in names.windows(2) {
        graph = graph.edge(pair[0].clone(), pair[1].clone());
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.edge(START, names[0].clone()).compile().unwrap().checkpointer(Arc::clone(&saver));
    // The state is so large that commits stay deltas.
    let long = "long ".repeat(4000);
    graph.invoke(Words::update().seen([&long, "a"])).thread("t").await.unwrap();
    let rows = saver.list(Place::root("t"), ListQuery::default()).await.unwrap();
    let deltas: Vec<_> = rows.iter().rev().filter(|row| row.kind == RowKind::Delta).collect();
    assert_eq!(deltas.len(), 20);
    for (at, row) in deltas.iter().enumerate() {
        // The memory of the node that ran, and the name of the node that runs next.
        let expected: Vec<&str> = names[at..].iter().take(2).map(String::as_str).collect();
        assert_eq!(texts_in(&row.record, &names), expected, "{}", row.id);
    }
    // A fork begins with a full.
    graph.update_state("t").await.unwrap();
    let at = history(&graph).await[1].id;
    graph.update_state("t").at(at).await.unwrap();
    let newest = &saver.list(Place::root("t"), ListQuery::default()).await.unwrap()[0];
    assert_eq!((newest.kind, texts_in(&newest.record, &names).len()), (RowKind::Full, 20));
}

#[tokio::test]
async fn a_segment_names_the_memories_of_the_deltas_it_folds() {
    async fn spin() -> WordsUpdate {
        Words::update().seen(["spin"])
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = StateGraph::new().node("diary", diary(notes())).node("spin", spin);
    let graph = graph.edge(START, "diary").edge("diary", "spin");
    let ends = |words: &Words| if words.seen.len() < 1_100 { "spin" } else { END };
    let graph = graph.branch("spin", ends, ["spin", END]).compile().unwrap().checkpointer(Arc::clone(&saver));
    let long = "long ".repeat(4000);
    let run = graph.invoke(Words::update().seen([&long, "a"])).thread("t").max_supersteps(2_000);
    run.await.unwrap();
    let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert!(tail.rows.iter().any(|row| row.kind == RowKind::Segment));
    assert_eq!(graph.state("t").await.unwrap().unwrap().memories["diary"], CheckpointId::new(0, 1));
    let outcome = graph.invoke(Words::update().seen(["b"])).thread("t").await.unwrap();
    assert!(outcome.output().seen.contains(&"a+b".to_owned()));
}

/// The segment folds deltas of several calls; the last of these calls names no memory.
#[tokio::test]
async fn a_segment_records_that_its_last_call_names_no_memories() {
    /// Returns the word given to the call, without the words added since.
    fn given_word(words: &Words) -> &str {
        words.seen.iter().rev().find(|word| *word != "spin").map_or("", |word| word)
    }
    async fn asks(ctx: Ctx, words: Snapshot<Words>) -> Result<()> {
        if given_word(&words) == "c" { Ok(ctx.interrupt("go on?")?) } else { Ok(()) }
    }
    let spins = |words: &Words| {
        let spun = words.seen.iter().filter(|word| *word == "spin").count();
        if given_word(words) == "c" && spun < 1_100 { "spin" } else { "second" }
    };
    let outer = StateGraph::new().node("first", asks).node("spin", says("spin")).node("second", asks);
    let outer = outer.node("diary", diary(notes())).edge(START, "first").edge("second", "diary");
    let outer = outer.branch("first", spins, ["spin", "second"]).branch("spin", spins, ["spin", "second"]);
    let outer = outer.compile().unwrap().embed(
        |words: Snapshot<Words>| Words::update().seen(words.seen.last().cloned()),
        |words: Words| Words::update().seen(words.seen.last().cloned()),
    );
    let graph = StateGraph::new().node("outer", outer.memory(Memory::PerThread)).edge(START, "outer");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());

    let call = |word: String| graph.invoke(Words::update().seen([word])).thread("t").max_supersteps(2_000);
    call("a ".repeat(10_000)).await.unwrap().into_finished().unwrap();
    // Pruning leaves a full, which names the inner memory.
    graph.prune(Retention::keep_last(1)).await.unwrap();
    call("b".to_owned()).await.unwrap().into_finished().unwrap();
    assert_eq!(call("c".to_owned()).await.unwrap().interrupts().len(), 1);
    let asks_again = graph.resume(()).thread("t").max_supersteps(2_000).await.unwrap();
    assert_eq!(asks_again.interrupts().len(), 1);
    let end = graph.resume(()).thread("t").await.unwrap().into_finished().unwrap();
    assert!(end.seen.last().unwrap().ends_with("+b+spin"), "the second call is remembered");
}

#[tokio::test]
async fn the_on_limit_node_has_a_memory_too() {
    for eager in [false, true] {
        let graph = state_graph(eager).node("spin", says("spin")).node("diary", diary(notes()));
        let graph = graph.edge(START, "spin").branch("spin", |_: &Words| "spin", ["spin"]).on_limit("diary");
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        for expected in ["spin", "spin+spin", "spin+spin+spin"] {
            let run = graph.invoke(Words::update().seen(["a"])).thread("t").abandon().max_supersteps(2);
            let stopped = run.await.unwrap();
            assert_eq!(stopped.output().seen.last().unwrap(), expected, "eager {eager}");
        }
        let newest = history(&graph).await[0].clone();
        assert_eq!(newest.memories["diary"], CheckpointId::new(0, 5), "eager {eager}");
    }
}

#[tokio::test]
async fn a_call_left_by_a_command_keeps_its_memory_up_to_that_point() {
    async fn first() -> DiaryUpdate {
        Diary::update().told(["first"])
    }
    async fn leave(diary: Snapshot<Diary>) -> Command<Diary> {
        Command::parent("after").parent_update(Words::update().seen([diary.told.join("+")]))
    }
    for mode in MODES {
        for eager in [false, true] {
            let child = StateGraph::new().node("first", first).node("leave", leave.targets(["first"]));
            let child = child.edge(START, "first").edge("first", "leave").compile().unwrap();
            let graph =
                state_graph(eager).node("diary", diary(child).targets(["after"])).node("after", || async {});
            let graph = graph.edge(START, "diary").compile().unwrap().checkpointer(MemorySaver::new());
            assert_eq!(run_with(&graph, "a", mode).await, "a+first");
            assert_eq!(run_with(&graph, "b", mode).await, "a+first+b+first", "{mode:?} eager {eager}");
        }
    }
}

#[tokio::test]
async fn records_of_runs_without_memories_do_not_mention_memories() {
    let middle = StateGraph::new().node("says", says("x")).edge(START, "says").compile().unwrap();
    let graph = StateGraph::new().node("sub", middle).edge(START, "sub").compile().unwrap();
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.checkpointer(Arc::clone(&saver));
    run_with(&graph, "a", Durability::Sync).await;
    assert_eq!(history(&graph).await[0].memories, BTreeMap::new());
    let keys = ["memories".to_owned(), "remembered".to_owned(), "is_named".to_owned()];
    for namespace in saver.namespaces("t").await.unwrap() {
        let place = Place { thread: "t", namespace: &namespace };
        for row in saver.list(place, ListQuery::default()).await.unwrap() {
            assert!(texts_in(&row.record, &keys).is_empty(), "{namespace} {}", row.id);
        }
    }
}

#[tokio::test]
async fn a_missing_memory_checkpoint_is_an_error_that_names_it() {
    let saver = Arc::new(MemorySaver::new());
    let graph = diary_graph(false, Arc::clone(&saver));
    run_with(&graph, "a", Durability::Sync).await;
    run_with(&graph, "b", Durability::Sync).await;
    let [first, second] = before_the_diary(&graph).await[..] else { panic!("expected two runs") };
    replay(&graph, first, Durability::Sync).await;
    let place = Place { thread: "t", namespace: "diary" };
    let gone = [(0, 0..u64::MAX)];
    saver.rewrite(Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &gone }).await.unwrap();
    let error = graph.proceed().thread("t").from(second).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownCheckpoint);
    assert!(error.to_string().contains("`diary`") && error.to_string().contains("0.1"), "{error}");
}
