//! Runs that end before their nodes finish: deadlines, drains, step timeouts, budgets and the policy for
//! siblings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::{Budget, Code};

use crate::common::clock::TokioClock;
use crate::common::words::{Words, WordsUpdate, says, text};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a node that writes `word` after this many seconds.
fn slow(word: &'static str, seconds: u32) -> impl Fn() -> SlowFuture + Clone + Send + Sync + 'static {
    move || {
        Box::pin(async move {
            tokio::time::sleep(SECOND * seconds).await;
            Words::update().seen([word])
        })
    }
}

type SlowFuture = std::pin::Pin<Box<dyn Future<Output = WordsUpdate> + Send>>;

fn reason(outcome: &Outcome<Words>) -> Option<StopReason> {
    match outcome {
        Outcome::Stopped { reason, .. } => Some(*reason),
        _ => None,
    }
}

/// Returns a graph that writes `tick` once a second, without end.
fn ticking() -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("tick", slow("tick", 1)).edge(START, "tick").edge("tick", "tick");
    graph.compile().unwrap().services(TokioClock::default()).checkpointer(MemorySaver::new())
}

#[tokio::test(start_paused = true)]
async fn a_deadline_cuts_off_the_running_node_and_keeps_committed_work() {
    let graph = ticking();
    let call = graph.invoke(Words::update()).thread("t").deadline(SECOND * 5 / 2);
    let outcome = call.await.unwrap();
    assert_eq!((reason(&outcome), text(outcome.output())), (Some(StopReason::Deadline), "tick tick".into()));
    let outcome = graph.proceed().thread("t").deadline(SECOND * 3 / 2).await.unwrap();
    assert_eq!(
        (reason(&outcome), text(outcome.output())),
        (Some(StopReason::Deadline), "tick tick tick".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_keeps_the_results_of_finished_siblings() {
    let graph = StateGraph::new().node("quick", slow("quick", 1)).node("slow", slow("slow", 9));
    let graph = graph.edge(START, "quick").edge(START, "slow").compile().unwrap();
    let graph = graph.services(TokioClock::default()).checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").deadline(SECOND * 2).await.unwrap();
    assert_eq!(reason(&outcome), Some(StopReason::Deadline));
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next), ("quick".to_owned(), vec!["slow".to_owned()]));
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "quick slow");
}

#[tokio::test(start_paused = true)]
async fn a_superstep_that_takes_too_long_fails_and_its_finished_tasks_are_kept() {
    let graph = StateGraph::new().node("quick", slow("quick", 1)).node("slow", slow("slow", 9));
    let graph = graph.edge(START, "quick").edge(START, "slow").compile().unwrap();
    let graph = graph.services(TokioClock::default()).checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t").step_timeout(SECOND * 2).await.unwrap_err();
    assert_eq!(error.code(), Code::StepTimeout);
    assert!(error.to_string().contains("with `slow` unfinished"), "{error}");
    assert_eq!(text(&graph.state("t").await.unwrap().unwrap().values), "quick");
    let outcome = graph.proceed().thread("t").step_timeout(SECOND * 10).await.unwrap();
    assert_eq!(text(outcome.output()), "quick slow");
}

#[tokio::test(start_paused = true)]
async fn a_step_timeout_restarts_with_every_superstep() {
    let error = ticking().invoke(Words::update()).thread("t").step_timeout(SECOND / 2).await.unwrap_err();
    assert_eq!(error.code(), Code::StepTimeout);
    let call = ticking().invoke(Words::update()).thread("t").step_timeout(SECOND * 3 / 2).max_supersteps(4);
    let outcome = call.await.unwrap();
    assert_eq!(reason(&outcome), Some(StopReason::Limit));
}

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_the_superstep_and_a_cancel_does_not() {
    for (drains, seen) in [(true, "tick"), (false, "")] {
        let graph = ticking();
        let token = CancellationToken::new();
        let call = graph.invoke(Words::update()).thread("t");
        let call = if drains { call.drain(token.clone()) } else { call.cancel(token.clone()) };
        let stop = async {
            tokio::time::sleep(SECOND / 2).await;
            token.cancel()
        };
        let (outcome, ()) = tokio::join!(call.into_future(), stop);
        let outcome = outcome.unwrap();
        assert_eq!(text(outcome.output()), seen);
        let expected = if drains { StopReason::Drained } else { StopReason::Cancelled };
        assert_eq!(reason(&outcome), Some(expected));
        assert_eq!(
            reason(&graph.proceed().thread("t").max_supersteps(1).await.unwrap()),
            Some(StopReason::Limit)
        );
    }
}

#[tokio::test]
async fn a_node_can_request_a_drain_which_has_no_effect_in_the_last_superstep() {
    async fn drains(ctx: Ctx) -> WordsUpdate {
        ctx.drain();
        Words::update().seen([ctx.node()])
    }
    let graph = StateGraph::new().node("a", drains).node("b", says("b")).node("c", drains);
    let graph = graph.edge(START, "a").edge("a", "b").edge("b", "c").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!((reason(&outcome), text(outcome.output())), (Some(StopReason::Drained), "a".into()));
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "a b c");
}

/// Returns a graph that spends three tokens per superstep, without end.
fn spending() -> CompiledGraph<Words> {
    async fn spends(ctx: Ctx) -> WordsUpdate {
        ctx.spend("tokens", 3);
        Words::update().seen([format!("{:?}", ctx.remaining("tokens"))])
    }
    let graph = StateGraph::new().node("spends", spends).edge(START, "spends").edge("spends", "spends");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn spent_units_are_counted_per_run_and_not_per_call() {
    let graph = spending();
    let budget = |limit| Budget::new().units("tokens", limit);
    let outcome = graph.invoke(Words::update()).thread("t").budget(budget(7)).await.unwrap();
    assert_eq!((reason(&outcome), outcome.spent("tokens")), (Some(StopReason::Budget), 9));
    assert_eq!(text(outcome.output()), "Some(4) Some(1) Some(0)");
    let outcome = graph.proceed().thread("t").budget(budget(9)).await.unwrap();
    assert_eq!(
        (reason(&outcome), outcome.spent("tokens")),
        (Some(StopReason::Budget), 9),
        "no token is left"
    );
    let outcome = graph.proceed().thread("t").budget(budget(10)).await.unwrap();
    assert_eq!(outcome.spent("tokens"), 12);
    let outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(
        (reason(&outcome), outcome.spent("tokens")),
        (Some(StopReason::Limit), 15),
        "tokens are counted without a budget too"
    );
}

#[tokio::test]
async fn a_new_run_has_spent_nothing() {
    let graph = spending();
    graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    let outcome = graph.invoke(Words::update()).abandon().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(outcome.spent("tokens"), 3);
    assert_eq!(graph.proceed().thread("t").max_supersteps(1).await.unwrap().spent("tokens"), 6);
}

#[tokio::test]
async fn an_edit_as_start_resets_spent_units_and_other_edits_keep_them() {
    let graph = spending();
    graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    graph.update_state("t").update(Words::update()).await.unwrap();
    let outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(outcome.spent("tokens"), 9);
    graph.update_state("t").as_start(Words::update()).await.unwrap();
    let outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(outcome.spent("tokens"), 3);
}

#[tokio::test]
async fn units_spent_by_failed_attempts_count() {
    async fn fails(ctx: Ctx) -> Result<WordsUpdate> {
        ctx.spend("cents", 5);
        if ctx.spent("cents") < 15 { Err("no".into()) } else { Ok(Words::update().seen(["good"])) }
    }
    let graph = StateGraph::new().node("a", fails).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    graph.proceed().thread("t").await.unwrap_err();
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!((text(outcome.output()), outcome.spent("cents")), ("good".into(), 15));
}

#[tokio::test]
async fn a_budget_of_supersteps_spans_the_calls_of_a_run() {
    let graph = spending();
    let budget = || Budget::new().supersteps(5);
    let outcome = graph.invoke(Words::update()).thread("t").budget(budget()).max_supersteps(3).await.unwrap();
    assert_eq!(reason(&outcome), Some(StopReason::Limit));
    let outcome = graph.proceed().thread("t").budget(budget()).await.unwrap();
    assert_eq!((reason(&outcome), outcome.spent("tokens")), (Some(StopReason::Budget), 15));
}

#[tokio::test(start_paused = true)]
async fn a_time_budget_counts_time_in_calls_but_not_between_them() {
    let graph = ticking();
    let budget = || Budget::new().time(SECOND * 7 / 2);
    let outcome = graph.invoke(Words::update()).thread("t").budget(budget()).max_supersteps(2).await.unwrap();
    assert_eq!(reason(&outcome), Some(StopReason::Limit));
    tokio::time::sleep(SECOND * 100).await;
    let outcome = graph.proceed().thread("t").budget(budget()).await.unwrap();
    assert_eq!(
        (reason(&outcome), text(outcome.output())),
        (Some(StopReason::Budget), "tick tick tick".into())
    );
}

/// Returns a graph of `fails`, which fails at once, and `slow`, which takes a second and counts its
/// starts and ends.
fn failing(begun: &Arc<AtomicU32>, ended: &Arc<AtomicU32>) -> StateGraph<Words> {
    let begun = Arc::clone(begun);
    let ended = Arc::clone(ended);
    let slow = move || {
        let begun = Arc::clone(&begun);
        let ended = Arc::clone(&ended);
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(SECOND).await;
            ended.fetch_add(1, Ordering::SeqCst);
            Words::update().seen(["slow"])
        }
    };
    async fn fails(words: Snapshot<Words>) -> Result<WordsUpdate> {
        tokio::task::yield_now().await;
        if words.seen.is_empty() { Err("no".into()) } else { Ok(Words::update()) }
    }
    StateGraph::new().node("fails", fails).node("slow", slow).edge(START, "fails").edge(START, "slow")
}

#[tokio::test(start_paused = true)]
async fn siblings_of_a_failed_task_are_drained_unless_the_policy_cancels_them() {
    for (of_graph, of_run, drained) in [
        (None, None, true),
        (Some(Siblings::Cancel), None, false),
        (None, Some(Siblings::Cancel), false),
        (Some(Siblings::Cancel), Some(Siblings::Drain), true),
    ] {
        let begun = Arc::default();
        let ended = Arc::default();
        let mut graph = failing(&begun, &ended);
        if let Some(policy) = of_graph {
            graph = graph.siblings(policy);
        }
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let mut call = graph.invoke(Words::update()).thread("t");
        if let Some(policy) = of_run {
            call = call.siblings(policy);
        }
        assert_eq!(call.await.unwrap_err().node(), Some("fails"));
        assert_eq!((begun.load(Ordering::SeqCst), ended.load(Ordering::SeqCst)), (1, u32::from(drained)));
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(text(&state.values), if drained { "slow" } else { "" });
        let left: &[&str] = if drained { &["fails"] } else { &["fails", "slow"] };
        assert_eq!(state.next, left);
    }
}

/// Returns a graph that runs `tick` without end. `last` is its node for the limit and has an edge to
/// itself.
fn with_on_limit<M>(last: impl IntoNode<Words, M>) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("tick", says("tick")).node("last", last).edge(START, "tick");
    let graph = graph.edge("tick", "tick").edge("last", "last").on_limit("last").compile().unwrap();
    assert!(graph.warnings().iter().all(|warning| !warning.to_string().contains("`last` can never run")));
    graph.checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn the_on_limit_node_runs_once_on_the_last_state_and_its_routing_is_ignored() {
    async fn last(ctx: Ctx, words: Snapshot<Words>) -> Command<Words> {
        let word = format!("last-{}-{}", words.seen.len(), ctx.remaining_steps());
        Command::update(Words::update().seen([word])).goto("last")
    }
    let graph = with_on_limit(last);
    let outcome = graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    assert_eq!(
        (reason(&outcome), text(outcome.output())),
        (Some(StopReason::Limit), "tick tick last-2-0".into())
    );
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next), ("tick tick last-2-0".into(), vec!["tick".to_owned()]));
    let outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(text(outcome.output()), "tick tick last-2-0 tick last-4-0");
}

#[tokio::test]
async fn an_on_limit_node_that_fails_interrupts_or_writes_nothing_leaves_the_run_unchanged() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        ctx.interrupt::<bool>("more?")?;
        Ok(Words::update())
    }
    async fn fails() -> Result<WordsUpdate> {
        Err("no".into())
    }
    async fn says_nothing() {}
    async fn stopped(graph: CompiledGraph<Words>) -> Result<Outcome<Words>, agentgraph::Error> {
        let ended = graph.invoke(Words::update()).thread("t").max_supersteps(2).await;
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((text(&state.values), state.next), ("tick tick".into(), vec!["tick".to_owned()]));
        assert!(state.interrupts.is_empty());
        ended
    }
    assert_eq!(stopped(with_on_limit(fails)).await.unwrap_err().node(), Some("last"));
    let error = stopped(with_on_limit(asks)).await.unwrap_err();
    assert!(error.to_string().contains("no call waits for its answer"), "{error}");
    assert_eq!(reason(&stopped(with_on_limit(says_nothing)).await.unwrap()), Some(StopReason::Limit));
}
