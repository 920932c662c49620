//! Edits, forks and replays make checkpoints of their own and never change the old ones; histories show
//! both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::checkpoint::Source;
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Code};

use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text};

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

/// Builds START -> `a` -> `b`.
fn a_then_b() -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

/// Returns the history as lines such as `0.2 Loop [b] i a`, newest first.
async fn lines(graph: &CompiledGraph<Words>) -> Vec<String> {
    let history = graph.history("t").await.unwrap();
    history
        .iter()
        .map(|one| format!("{} {:?} {:?} {}", one.id, one.source, one.next, text(&one.values)))
        .collect()
}

async fn with_history() -> CompiledGraph<Words> {
    let graph = a_then_b();
    graph.invoke(said("i")).thread("t").await.unwrap();
    assert_eq!(
        lines(&graph).await,
        [r#"0.2 Loop [] i a b"#, r#"0.1 Loop ["b"] i a"#, r#"0.0 Input ["a"] i"#]
    );
    graph
}

const BEFORE_B: CheckpointId = CheckpointId::new(0, 1);

#[tokio::test]
async fn an_edit_of_an_older_checkpoint_begins_a_branch_and_leaves_the_old_one_unchanged() {
    let graph = with_history().await;
    let old = graph.history("t").await.unwrap();
    let id = graph.update_state("t").at(BEFORE_B).update(said("EDIT")).await.unwrap();
    assert_eq!(id, CheckpointId::new(1, 2));
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!(
        (text(&state.values), state.next, state.parent),
        ("i a EDIT".into(), vec!["b".to_owned()], Some(BEFORE_B))
    );
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "i a EDIT b");
    assert_eq!(
        lines(&graph).await,
        [
            r#"1.3 Loop [] i a EDIT b"#,
            r#"1.2 Update ["b"] i a EDIT"#,
            r#"0.1 Loop ["b"] i a"#,
            r#"0.0 Input ["a"] i"#
        ]
    );
    let again = graph.history("t").branch(0).await.unwrap();
    let seen = |history: &[agentgraph::Checkpoint<Words>]| -> Vec<_> {
        history.iter().map(|one| (one.id, one.run, one.values.clone(), one.next.clone())).collect()
    };
    assert_eq!(seen(&again), seen(&old));
}

#[tokio::test]
async fn an_edit_as_a_node_goes_where_that_node_leads() {
    let graph = with_history().await;
    for (node, next) in [("a", vec!["b"]), ("b", vec![])] {
        graph.update_state("t").at(BEFORE_B).as_node(node, said("EDIT")).await.unwrap();
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((text(&state.values), state.source), ("i a EDIT".into(), Source::Update));
        assert_eq!(state.next, next);
    }
    let error = graph.update_state("t").as_node("c", said("x")).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownTarget);
}

#[tokio::test]
async fn an_edit_as_start_is_an_input_that_waits_and_one_as_end_ends_the_run() {
    let graph = with_history().await;
    graph.update_state("t").as_start(said("anew")).await.unwrap();
    assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["a"]);
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "i a b anew a b");
    graph.update_state("t").at(BEFORE_B).as_end(said("enough")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next.len()), ("i a enough".into(), 0));
    assert_eq!(graph.proceed().thread("t").await.unwrap_err().code(), Code::NothingToResume);
    assert_eq!(text(graph.invoke(said("j")).thread("t").await.unwrap().output()), "i a enough j a b");
}

#[tokio::test]
async fn a_thread_can_begin_with_an_edit() {
    let graph = a_then_b();
    let id = graph.update_state("t").as_node("a", said("seed")).await.unwrap();
    assert_eq!(id, CheckpointId::new(0, 0));
    assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["b"]);
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "seed b");
    let error = graph.update_state("nobody").await.unwrap_err();
    assert_eq!(error.code(), Code::NothingToResume);
}

#[tokio::test]
async fn an_edit_as_several_nodes_merges_in_task_order_not_in_call_order() {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("j", says("j"));
    let graph = graph.edge(START, "a").edge(START, "b").edge(["a", "b"], "j").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.update_state("t").as_node("b", said("B")).as_node("a", said("A")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next), ("A B".into(), vec!["j".to_owned()]));
    graph.update_state("u").as_node("a", said("A")).await.unwrap();
    assert!(graph.state("u").await.unwrap().unwrap().next.is_empty(), "the join waits for b");
    graph.update_state("u").as_node("b", said("B")).await.unwrap();
    assert_eq!(graph.state("u").await.unwrap().unwrap().next, ["j"], "and remembers a");
}

#[tokio::test]
async fn an_edit_without_changes_is_a_fork_with_the_same_values_and_next_nodes() {
    let graph = with_history().await;
    let copy = graph.update_state("t").at(BEFORE_B).await.unwrap();
    let (old, new) =
        (graph.state_at("t", BEFORE_B).await.unwrap().unwrap(), graph.state("t").await.unwrap().unwrap());
    assert_eq!((new.id, new.source, &new.values, &new.next), (copy, Source::Fork, &old.values, &old.next));
    assert_ne!(new.run, old.run);
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "i a b");
}

#[tokio::test]
async fn an_edit_of_the_newest_checkpoint_stays_on_its_branch() {
    let graph = with_history().await;
    let id = graph.update_state("t").update(said("EDIT")).await.unwrap();
    assert_eq!(id, CheckpointId::new(0, 3));
    let id = graph.update_state("t").at(id).update(said("EDIT")).await.unwrap();
    assert_eq!(id, CheckpointId::new(0, 4));
    assert_eq!(graph.proceed().thread("t").await.unwrap_err().code(), Code::NothingToResume);
}

#[tokio::test]
async fn a_missing_checkpoint_is_an_error_that_says_so() {
    let graph = with_history().await;
    let nowhere = CheckpointId::new(3, 7);
    assert_eq!(graph.update_state("t").at(nowhere).await.unwrap_err().code(), Code::UnknownCheckpoint);
    assert_eq!(graph.proceed().thread("t").from(nowhere).await.unwrap_err().code(), Code::UnknownCheckpoint);
    assert!(graph.state_at("t", nowhere).await.unwrap().is_none());
    assert_eq!(graph.history("t").await.unwrap().len(), 3);
}

#[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default, PartialEq)]
struct Sum {
    #[reduce(with = add, write = i64)]
    v: i64,
}

fn add(total: &mut i64, more: i64) {
    *total += more;
}

#[tokio::test]
async fn a_fork_does_not_inherit_later_writes_of_the_old_branch() {
    let adds = |n: i64| move || std::future::ready(Sum::update().v(n));
    let graph = StateGraph::new().node("a", adds(10)).node("b", adds(100)).edge(START, "a").edge("a", "b");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Sum::update().v(1)).thread("t").await.unwrap();
    assert_eq!(outcome.output().v, 111);
    graph.update_state("t").at(CheckpointId::new(0, 0)).as_node("a", Sum::update().v(20)).await.unwrap();
    assert_eq!(graph.proceed().thread("t").await.unwrap().output().v, 121);
}

#[tokio::test]
async fn a_replay_runs_only_the_nodes_after_the_checkpoint_again() {
    let calls = [Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0))];
    let counted = |calls: &Arc<AtomicU32>, word: &'static str| {
        let calls = Arc::clone(calls);
        move || std::future::ready(said(&format!("{word}{}", calls.fetch_add(1, Ordering::SeqCst))))
    };
    let graph = StateGraph::new().node("a", counted(&calls[0], "a")).node("b", counted(&calls[1], "b"));
    let graph = graph.edge(START, "a").edge("a", "b").compile().unwrap().checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    let second = graph.proceed().thread("t").from(BEFORE_B).await.unwrap();
    assert_eq!((text(first.output()), text(second.output())), ("a0 b0".into(), "a0 b1".into()));
    assert_ne!(first.run(), second.run());
    let third = graph.proceed().thread("t").from(BEFORE_B).await.unwrap();
    assert_eq!((text(third.output()), third.checkpoint()), ("a0 b2".into(), Some(CheckpointId::new(2, 3))));
    let end = first.checkpoint().unwrap();
    assert_eq!(graph.proceed().thread("t").from(end).await.unwrap_err().code(), Code::NothingToResume);
    assert_eq!(text(&graph.state_at("t", end).await.unwrap().unwrap().values), "a0 b0");
}

#[tokio::test]
async fn a_run_can_begin_from_a_checkpoint_in_the_middle_of_another_run() {
    let graph = with_history().await;
    let outcome = graph.invoke(said("j")).thread("t").from(BEFORE_B).await.unwrap();
    assert_eq!(text(outcome.output()), "i a j a b");
    let history = graph.history("t").source(Source::Input).await.unwrap();
    assert_eq!(history.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), ["1.2", "0.0"]);
    assert_eq!(history[0].abandoned, Some(history[1].run));
}

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("?")?;
    Ok(said(&answer))
}

/// Builds a graph in which `quick` finishes while `ask` waits, and a counter of the runs of `quick`.
fn asking() -> (CompiledGraph<Words>, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let quick = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(said("quick"))
    };
    let graph =
        StateGraph::new().node("quick", quick).node("ask", asks).edge(START, "quick").edge(START, "ask");
    (graph.compile().unwrap().checkpointer(MemorySaver::new()), calls)
}

#[tokio::test]
async fn a_state_can_be_edited_while_an_answer_is_awaited() {
    let (graph, calls) = asking();
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.update_state("t").update(said("EDIT")).await.unwrap();
    graph.update_state("t").update(said("AGAIN")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next), ("EDIT AGAIN quick".into(), vec!["ask".to_owned()]));
    let id = state.interrupts[0].id;
    assert_ne!(id, first.interrupts()[0].id);
    let old = [(first.interrupts()[0].id.unwrap(), "late")];
    assert_eq!(graph.resume_many(old).thread("t").await.unwrap_err().code(), Code::UnknownInterrupt);
    let outcome = graph.resume_many([(id.unwrap(), "yes")]).thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "EDIT AGAIN quick yes");
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the finished task does not run again");
}

#[tokio::test]
async fn a_static_interrupt_that_was_reported_does_not_stop_again_after_an_edit() {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
    let graph = graph.interrupt_before(["b"]).compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.update_state("t").update(said("EDIT")).await.unwrap();
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "a EDIT b");
}

#[tokio::test]
async fn a_replay_before_an_interrupt_asks_again_and_forgets_the_old_answer() {
    let (graph, calls) = asking();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let first = graph.resume("first").thread("t").await.unwrap();
    assert_eq!(text(first.output()), "quick first");
    let again = graph.proceed().thread("t").from(CheckpointId::new(0, 0)).await.unwrap();
    assert_eq!(again.interrupts().len(), 1);
    let second = graph.resume("second").thread("t").await.unwrap();
    assert_eq!((text(second.output()), calls.load(Ordering::SeqCst)), ("quick second".into(), 2));
}

#[tokio::test]
async fn a_history_can_be_limited_and_filtered() {
    let graph = with_history().await;
    graph.update_state("t").at(BEFORE_B).update(said("EDIT")).await.unwrap();
    graph.proceed().thread("t").await.unwrap();
    let ids = |history: Vec<agentgraph::Checkpoint<Words>>| -> Vec<String> {
        history.iter().map(|one| one.id.to_string()).collect()
    };
    let all = || graph.history("t");
    assert_eq!(ids(all().await.unwrap()), ["1.3", "1.2", "0.1", "0.0"]);
    assert_eq!(ids(all().limit(3).await.unwrap()), ["1.3", "1.2", "0.1"]);
    assert_eq!(ids(all().before(CheckpointId::new(1, 2)).await.unwrap()), ["0.1", "0.0"]);
    assert_eq!(ids(all().before(CheckpointId::new(0, 2)).await.unwrap()), ["0.1", "0.0"]);
    assert_eq!(ids(all().branch(0).limit(2).await.unwrap()), ["0.2", "0.1"]);
    assert_eq!(ids(all().source(Source::Loop).await.unwrap()), ["1.3", "0.1"]);
    assert_eq!(ids(all().source(Source::Loop).limit(1).await.unwrap()), ["1.3"]);
    assert_eq!(ids(all().filter(|one| one.next == ["b"]).await.unwrap()), ["1.2", "0.1"]);
    let run = graph.state_at("t", BEFORE_B).await.unwrap().unwrap().run;
    assert_eq!(ids(all().filter(move |one| one.run == run).await.unwrap()), ["0.1", "0.0"]);
    assert!(ids(all().limit(0).await.unwrap()).is_empty());
    assert!(ids(graph.history("nobody").await.unwrap()).is_empty());
}

#[tokio::test]
async fn a_filtered_history_searches_back_to_the_first_checkpoint() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").edge("a", "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").max_supersteps(700).await.unwrap();
    let early = graph.history("t").filter(|one| one.id.step % 300 == 1).limit(3).await.unwrap();
    assert_eq!(early.iter().map(|one| one.id.step).collect::<Vec<_>>(), [601, 301, 1]);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn branches_are_kept_in_a_file_too() {
    let path =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("branches-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let graph = || async {
        let graph =
            StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
        graph.compile().unwrap().checkpointer(SqliteSaver::open(&path).await.unwrap())
    };
    let one = graph().await;
    one.invoke(said("i")).thread("t").await.unwrap();
    one.update_state("t").at(BEFORE_B).update(said("EDIT")).await.unwrap();
    drop(one);
    let two = graph().await;
    assert_eq!(text(two.proceed().thread("t").await.unwrap().output()), "i a EDIT b");
    assert_eq!(two.history("t").await.unwrap().len(), 4);
    assert_eq!(text(&two.state_at("t", CheckpointId::new(0, 2)).await.unwrap().unwrap().values), "i a b");
    drop(two);
    std::fs::remove_file(&path).unwrap();
}

/// Runs a graph until `ask` waits beside `ok`, which has finished. Both lead to `joined`, and `ok` leads
/// to `next`.
async fn waits_beside_a_finished_sibling() -> CompiledGraph<Words> {
    async fn ask(ctx: Ctx) -> agentgraph::Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("?")?]))
    }
    let graph = StateGraph::new().node("ok", says("ok")).node("ask", ask).node("joined", says("joined"));
    let graph = graph.edge(START, "ok").edge(START, "ask").edge(["ok", "ask"], "joined");
    let graph = graph.node("next", says("next")).edge("ok", "next");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(said("i")).thread("t").await.unwrap();
    assert_eq!(text(&graph.state("t").await.unwrap().unwrap().values), "i ok");
    graph
}

#[tokio::test]
async fn an_edit_as_a_waiting_node_is_merged_with_results_of_finished_siblings() {
    let graph = waits_beside_a_finished_sibling().await;
    graph.update_state("t").as_node("ask", said("EDIT")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next.join(" ")), ("i ok EDIT".into(), "joined next".into()));
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "i ok EDIT joined next");
}

#[tokio::test]
async fn an_edit_as_a_finished_node_replaces_its_result() {
    let graph = waits_beside_a_finished_sibling().await;
    graph.update_state("t").as_node("ok", said("EDIT")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next.join(" ")), ("i EDIT".into(), "next".into()));
}

#[tokio::test]
async fn an_edit_as_end_keeps_the_results_of_finished_siblings() {
    let graph = waits_beside_a_finished_sibling().await;
    graph.update_state("t").as_end(said("EDIT")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next.len()), ("i ok EDIT".into(), 0));
}

#[tokio::test]
async fn an_edit_as_a_node_keeps_finished_dispatches_and_handlers_each_in_its_place() {
    async fn work(ctx: Ctx, Input(n): Input<u32>) -> agentgraph::Result<WordsUpdate> {
        match n {
            1 => Err("torn".into()),
            2 => Ok(Words::update().seen([ctx.interrupt::<String>("?")?])),
            n => Ok(Words::update().seen([format!("page {n}")])),
        }
    }
    let pages = || async { Command::<Words>::to([1_u32, 2, 3].map(|n| Dispatch::new("work", n)).to_vec()) };
    let graph = StateGraph::new().node("pages", pages).node("work", work.on_error("mend"));
    let graph = graph.node("mend", says("mended")).node("end", says("end"));
    let graph = graph.edge(START, "pages").edge("mend", "end").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(said("i")).thread("t").await.unwrap();
    graph.update_state("t").as_node("work", said("EDIT")).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next.join(" ")), ("i EDIT mended page 3".into(), "end".into()));
}

#[tokio::test]
async fn writes_of_finished_siblings_are_shown_as_they_will_be_merged() {
    async fn ask(ctx: Ctx) -> agentgraph::Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("?")?]))
    }
    let over = || async { Words::update().overwrite_seen(vec!["over".to_owned()]) };
    let graph = StateGraph::new().node("over", over).node("ok", says("ok")).node("ask", ask);
    let graph = graph.edge(START, "over").edge(START, "ok").edge(START, "ask").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(said("i")).thread("t").await.unwrap();
    assert_eq!(text(&graph.state("t").await.unwrap().unwrap().values), "over");
    assert_eq!(text(graph.resume("a").thread("t").await.unwrap().output()), "over");
}

#[tokio::test]
async fn an_edit_as_an_unknown_node_names_the_remedy() {
    let graph = with_history().await;
    for (name, hint) in
        [(START, "use `.as_start(..)`"), (END, "use `.as_end(..)`"), ("aa", "did you mean `a`?")]
    {
        let error = graph.update_state("t").as_node(name, said("x")).await.unwrap_err();
        assert_eq!(error.code(), Code::UnknownTarget);
        assert!(error.to_string().contains("to act as") && error.to_string().contains(hint), "{error}");
    }
}

#[tokio::test]
async fn a_run_from_a_checkpoint_needs_a_checkpointer() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let error = graph.invoke(said("i")).from(BEFORE_B).await.unwrap_err();
    assert_eq!(error.code(), Code::NoCheckpointer);
}

async fn asks_alone(ctx: Ctx) -> Result<WordsUpdate> {
    Ok(said(&ctx.interrupt::<String>("?")?))
}

/// A failed edit leaves no pending writes for the commit that comes in its place.
#[tokio::test]
async fn an_edit_stores_the_results_that_it_takes_over_or_fails_as_a_whole() {
    let saver = NotingSaver::memory();
    let graph =
        StateGraph::new().node("a", says("a")).node("asks", asks_alone).edge(START, "a").edge(START, "asks");
    let graph = graph.compile().unwrap().checkpointer(saver.clone());
    graph.invoke(said("i")).thread("t").await.unwrap();
    saver.fail_puts(1);
    let failed = graph.update_state("t").update(said("EDIT")).await.unwrap_err();
    assert_eq!(failed.code(), Code::Store);
    let done = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&done), "i a yes");
    assert!(graph.waiting().await.unwrap().is_empty(), "a finished thread has no open interrupt");

    graph.invoke(said("j")).thread("t").await.unwrap();
    let before = saver.writes().len();
    graph.update_state("t").update(said("EDIT")).await.unwrap();
    assert_eq!(saver.writes().len(), before, "the results are stored with the commit");
    let done = graph.resume("no").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&done), "i a yes j EDIT a no", "the finished task did not run again");
}
