//! Limits, cancellation and concurrency are exact and lose no work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentgraph::prelude::*;
use agentgraph::{CancellationToken, Code, StopReason};

use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, says, text};

#[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
struct Count {
    n: u64,
}

async fn add(state: Snapshot<Count>) -> CountUpdate {
    Count::update().n(state.n + 1)
}

/// Returns a graph that counts to five, one per superstep.
fn to_five() -> CompiledGraph<Count> {
    let more = |count: &Count| if count.n < 5 { "add" } else { END };
    let graph = StateGraph::new().node("add", add).edge(START, "add").branch("add", more, ["add", END]);
    graph.compile().unwrap()
}

#[tokio::test]
async fn a_run_of_five_supersteps_needs_a_limit_of_five() {
    for limit in 0..=7 {
        let outcome = to_five().invoke(Count::update()).max_supersteps(limit).await.unwrap();
        assert_eq!(outcome.output().n, limit.min(5));
        match outcome {
            Outcome::Finished { .. } => assert!(limit >= 5),
            Outcome::Stopped { reason, .. } => assert_eq!((reason, limit < 5), (StopReason::Limit, true)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn each_call_has_a_limit_of_its_own_and_continues_the_run() {
    let graph = to_five().checkpointer(MemorySaver::new());
    let first = graph.invoke(Count::update()).thread("t").max_supersteps(2).await.unwrap();
    let second = graph.proceed().thread("t").max_supersteps(2).await.unwrap();
    let third = graph.proceed().thread("t").max_supersteps(2).await.unwrap();
    assert_eq!([first.output().n, second.output().n, third.output().n], [2, 4, 5]);
    assert!(matches!(third, Outcome::Finished { .. }));
    assert_eq!((first.run(), second.run()), (third.run(), third.run()), "all calls belong to one run");
}

#[tokio::test]
async fn a_limit_of_zero_stores_the_input_and_runs_nothing() {
    let graph = to_five().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Count::update().n(3)).thread("t").max_supersteps(0).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }));
    assert_eq!(graph.proceed().thread("t").await.unwrap().into_finished().unwrap().n, 5);
}

#[tokio::test]
async fn the_context_reports_the_remaining_supersteps() {
    async fn reports(ctx: Ctx) -> WordsUpdate {
        Words::update().seen([format!("{}/{}", ctx.step(), ctx.remaining_steps())])
    }
    let more = |words: &Words| if words.seen.len() < 3 { "a" } else { END };
    let graph = StateGraph::new()
        .node("a", reports)
        .edge(START, "a")
        .branch("a", more, ["a", END])
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(3).await.unwrap();
    assert_eq!(text(outcome.output()), "1/2 2/1 3/0");
}

#[tokio::test]
async fn a_stopped_run_is_not_finished() {
    let outcome = to_five().invoke(Count::update()).max_supersteps(1).await.unwrap();
    let error = outcome.into_finished().unwrap_err();
    assert_eq!(error.code(), Code::NotFinished);
    assert!(
        error.to_string().contains("the run was stopped: the limit of supersteps was reached"),
        "{error}"
    );
}

#[tokio::test]
async fn a_new_run_on_an_unfinished_thread_is_refused_unless_the_old_one_is_abandoned() {
    let graph = to_five().checkpointer(MemorySaver::new());
    let first = graph.invoke(Count::update()).thread("t").max_supersteps(1).await.unwrap();
    let error = graph.invoke(Count::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::RunUnfinished);
    assert!(error.to_string().contains("`add` still to run; use `proceed()`"), "{error}");
    let second = graph.invoke(Count::update().n(0)).abandon().thread("t").await.unwrap();
    assert_eq!(second.output().n, 5);
    let abandoned: Vec<_> =
        graph.history("t").await.unwrap().into_iter().filter_map(|one| one.abandoned).collect();
    assert_eq!(abandoned, [first.run()]);
}

#[tokio::test]
async fn a_finished_thread_has_nothing_to_proceed_with() {
    let graph = to_five().checkpointer(MemorySaver::new());
    graph.invoke(Count::update()).thread("t").await.unwrap();
    for call in [graph.proceed(), graph.resume(1)] {
        assert_eq!(call.thread("t").await.unwrap_err().code(), Code::NothingToResume);
    }
    assert_eq!(graph.proceed().thread("nobody").await.unwrap_err().code(), Code::NothingToResume);
    assert_eq!(graph.history("t").await.unwrap().len(), 6, "refused calls store nothing");
}

#[tokio::test]
async fn a_missing_checkpointer_or_thread_is_an_error() {
    assert_eq!(to_five().proceed().thread("t").await.unwrap_err().code(), Code::NoCheckpointer);
    assert_eq!(to_five().resume(1).thread("t").await.unwrap_err().code(), Code::NoCheckpointer);
    assert_eq!(to_five().state("t").await.unwrap_err().code(), Code::NoCheckpointer);
    assert_eq!(to_five().history("t").await.unwrap_err().code(), Code::NoCheckpointer);
    let graph = to_five().checkpointer(MemorySaver::new());
    assert_eq!(graph.invoke(Count::update()).await.unwrap_err().code(), Code::NoThread);
    assert!(graph.state("t").await.unwrap().is_none());
    assert!(graph.history("t").await.unwrap().is_empty());
}

/// Returns a graph of `quick`, which finishes at once, and `stuck`. In its first run, `stuck` cancels
/// `cancel` once both have begun, and then hangs.
fn one_is_stuck(runs: Arc<AtomicUsize>, cancel: CancellationToken) -> StateGraph<Words> {
    let quick = move || {
        runs.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Words::update().seen(["quick"]))
    };
    let stuck = move |words: Snapshot<Words>| {
        let cancel = cancel.clone();
        async move {
            if words.seen.is_empty() && !cancel.is_cancelled() {
                pending_for(1).await;
                cancel.cancel();
                std::future::pending::<()>().await;
            }
            Words::update().seen(["stuck"])
        }
    };
    StateGraph::new().node("quick", quick).node("stuck", stuck).edge(START, "quick").edge(START, "stuck")
}

#[tokio::test]
async fn a_cancelled_run_stops_at_the_next_await_and_keeps_finished_siblings() {
    let runs = Arc::new(AtomicUsize::new(0));
    let cancel = CancellationToken::new();
    let graph =
        one_is_stuck(Arc::clone(&runs), cancel.clone()).compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").cancel(cancel).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Cancelled, .. }), "{outcome:?}");
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values).as_str(), &state.next[..]), ("quick", &["stuck".to_owned()][..]));
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "quick stuck");
    assert_eq!(runs.load(Ordering::SeqCst), 1, "a finished task does not run again");
}

#[tokio::test]
async fn a_run_with_a_cancelled_token_runs_nothing() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let graph = to_five().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Count::update()).thread("t").cancel(cancel).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Cancelled, .. }));
    assert_eq!(graph.proceed().thread("t").await.unwrap().output().n, 5);
}

#[tokio::test]
async fn a_single_task_is_cancelled_where_it_waits() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let waits = move |words: Snapshot<Words>| {
        let token = token.clone();
        async move {
            if words.seen.len() == 1 && !token.is_cancelled() {
                token.cancel();
                std::future::pending::<()>().await;
            }
            Words::update().seen(["waits"])
        }
    };
    let graph =
        StateGraph::new().node("a", says("a")).node("waits", waits).edge(START, "a").edge("a", "waits");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").cancel(cancel).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { .. }));
    assert_eq!(text(outcome.output()), "a");
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "a waits");
}

#[tokio::test]
async fn at_most_max_concurrency_tasks_run_at_once_and_all_run() {
    for allowed in [0, 1, 2, 3, 50] {
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&most);
        let work = move |Input(at): Input<u32>| {
            let now = Arc::clone(&now);
            let most = Arc::clone(&most);
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                pending_for(7 - at % 5).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Words::update().seen([at.to_string()])
            }
        };
        async fn split() -> Command<Words> {
            Command::new().goto((0..10_u32).map(|at| Dispatch::new("work", at)).collect::<Vec<_>>())
        }
        let graph =
            StateGraph::new().node("split", split).node("work", work).edge(START, "split").compile().unwrap();
        let outcome = graph.invoke(Words::update()).max_concurrency(allowed).await.unwrap();
        assert_eq!(text(outcome.output()), "0 1 2 3 4 5 6 7 8 9");
        assert_eq!(seen.load(Ordering::SeqCst), allowed.clamp(1, 10));
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_in_the_middle_of_a_superstep_keeps_each_finished_task() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let work = move |Input(at): Input<u32>| {
        let runs = Arc::clone(&counted);
        async move {
            pending_for(1).await;
            if at == 5 && runs.load(Ordering::SeqCst) == 5 {
                runs.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            runs.fetch_add(1, Ordering::SeqCst);
            Words::update().seen([at.to_string()])
        }
    };
    async fn split() -> Command<Words> {
        Command::new().goto((0..10_u32).map(|at| Dispatch::new("work", at)).collect::<Vec<_>>())
    }
    let graph = StateGraph::new().node("split", split).node("work", work).edge(START, "split");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let run = Box::pin(graph.invoke(Words::update()).thread("t").max_concurrency(1).into_future());
    assert!(crate::common::poll::at_most(run, 100).await.is_none(), "the sixth task hangs");
    assert_eq!(runs.load(Ordering::SeqCst), 6);
    let outcome = graph.proceed().thread("t").max_concurrency(1).await.unwrap();
    assert_eq!(text(outcome.output()), "0 1 2 3 4 5 6 7 8 9");
    assert_eq!(runs.load(Ordering::SeqCst), 11, "only the sixth task ran twice");
}
