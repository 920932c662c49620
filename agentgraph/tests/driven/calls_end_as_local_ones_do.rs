//! A driven call has the outcome, the state and the history of the same call on the local engine.

use std::collections::VecDeque;
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::host::{Ground, HostedGraph, Need, NeedKind, Reply, RunCall};
use agentgraph::prelude::*;
use agentgraph::{CompiledGraph, Error};

use crate::common::clock::Clock;
use crate::driver::{Done, Driver, Order};
use crate::graphs::{Work, asking, busy, failing, looping, step};
use crate::local::{SameIds, assert_same, assert_same_checkpoint, assert_same_history};

/// A graph that is called locally and driven, call by call.
struct Both {
    local: CompiledGraph<Work>,
    driver: Driver,
}

impl Both {
    fn new(build: impl Fn() -> CompiledGraph<Work>) -> Self {
        let local = build().services(SameIds::new()).checkpointer(MemorySaver::new());
        Both { local, driver: Driver::new(build(), build()) }
    }

    async fn agree(&mut self, call: RunCall, local: Result<Outcome<Work>, Error>) -> Done {
        let done = self.driver.call(call).await;
        assert_same(&done.end.clone().into_result::<Work>(&()), &local);
        let driven = self.local.clone().checkpointer(std::sync::Arc::clone(&self.driver.history));
        assert_same_history(&driven.history("t").await.unwrap(), &self.local.history("t").await.unwrap());
        let rows = done.rows.clone().into_iter().collect();
        let state = self.driver.near.thread_state("t", rows).await.unwrap().unwrap();
        let state: agentgraph::host::ThreadState =
            rmp_serde::from_slice(&rmp_serde::to_vec_named(&state).unwrap()).unwrap();
        let state = state.into_checkpoint::<Work>(&()).unwrap();
        assert_same_checkpoint(&state, &self.local.state("t").await.unwrap().unwrap());
        assert_same_checkpoint(&driven.state("t").await.unwrap().unwrap(), &state);
        done
    }
}

fn input() -> WorkInput {
    step("input", 0)
}

type WorkInput = crate::graphs::WorkUpdate;

fn invoke() -> RunCall {
    RunCall::invoke::<Work>(&(), &input()).unwrap()
}

#[tokio::test]
async fn parallel_nodes_joins_dispatches_and_branches() {
    for journaled in [true, false] {
        let mut both = Both::new(|| busy(false));
        both.driver.journaled = journaled;
        let local = both.local.invoke(input()).thread("t").await;
        let done = both.agree(invoke(), local).await;
        assert!(done.end.is_finished());
        assert!(done.journal.tasks.len() > 8);
        // A second run of the thread.
        let local = both.local.invoke(input()).thread("t").await;
        both.agree(invoke(), local).await;
    }
}

#[tokio::test]
async fn interrupts_are_answered_one_by_one() {
    for journaled in [true, false] {
        let mut both = Both::new(|| asking(false));
        both.driver.journaled = journaled;
        let local = both.local.invoke(input()).thread("t").await;
        let done = both.agree(invoke(), local).await;
        assert!(done.end.is_interrupted());
        let ids: Vec<_> = done.end.interrupts().iter().map(|one| one.id.unwrap()).collect();
        assert_eq!(ids.len(), 2);

        let local = both.local.resume("ambiguous").thread("t").await;
        let done = both.agree(RunCall::resume("ambiguous").unwrap(), local).await;
        assert_eq!(done.end.error_code(), Some("E_AMBIGUOUS_ANSWER"));

        for id in ids {
            let local = both.local.resume_many([(id, "yes")]).thread("t").await;
            both.agree(RunCall::resume_many([(id, "yes")]).unwrap(), local).await;
        }
        assert!(both.local.state("t").await.unwrap().unwrap().next.is_empty());
    }
}

#[tokio::test]
async fn limits_stop_a_run_and_proceed_continues_it() {
    for journaled in [true, false] {
        let mut both = Both::new(|| busy(false));
        both.driver.journaled = journaled;
        let local = both.local.invoke(input()).thread("t").max_supersteps(2).await;
        let done = both.agree(invoke().max_supersteps(2), local).await;
        assert_eq!(done.end.stop_reason(), Some(agentgraph::StopReason::Limit));
        assert_eq!(done.steps, 2);
        let local = both.local.invoke(input()).thread("t").await;
        let done = both.agree(invoke(), local).await;
        assert_eq!(done.end.error_code(), Some("E_RUN_UNFINISHED"));
        let local = both.local.proceed().thread("t").max_supersteps(1).await;
        both.agree(RunCall::proceed().max_supersteps(1), local).await;
        let local = both.local.invoke(input()).thread("t").abandon().await;
        let done = both.agree(invoke().abandon(), local).await;
        assert!(done.end.is_finished());
    }
}

#[tokio::test]
async fn failures_are_kept_and_proceed_tries_again() {
    for journaled in [true, false] {
        let mut both = Both::new(failing);
        both.driver.journaled = journaled;
        let local = both.local.invoke(input()).thread("t").await;
        let done = both.agree(invoke(), local).await;
        assert_eq!(done.end.error_code(), Some("E_NODE_FAILED"));
        let local = both.local.proceed().thread("t").await;
        both.agree(RunCall::proceed(), local).await;
        let local = both.local.resume(1).thread("t").await;
        let done = both.agree(RunCall::resume(1).unwrap(), local).await;
        assert_eq!(done.end.error_code(), Some("E_NOTHING_TO_RESUME"));
    }
}

#[tokio::test]
async fn a_thread_that_does_not_exist_has_nothing_to_continue() {
    let mut both = Both::new(failing);
    let local = both.local.proceed().thread("t").await;
    let done = both.driver.call(RunCall::proceed()).await;
    assert_same(&done.end.into_result::<Work>(&()), &local);
    assert!(both.driver.near.thread_state("t", Vec::new()).await.unwrap().is_none());
}

#[tokio::test]
async fn long_loops_yield_and_are_folded() {
    let mut both = Both::new(|| looping(1_100));
    let local = both.local.invoke(input()).thread("t").max_supersteps(1_060).await;
    let done = both.agree(invoke().max_supersteps(1_060), local).await;
    assert_eq!(done.steps, 1_060);
    let local = both.local.proceed().thread("t").await;
    let done = both.agree(RunCall::proceed(), local).await;
    assert_eq!(done.steps, 40);
}

#[tokio::test]
async fn eager_runs_merge_in_the_order_of_the_replies() {
    for seed in 0..12 {
        let mut driver = Driver::new(busy(true), busy(true));
        driver.order = Order::Random(seed);
        driver.journaled = seed % 2 == 0;
        let done = driver.call(invoke()).await;
        let outcome = done.end.into_result::<Work>(&()).unwrap();
        assert_eq!(outcome.status(), "finished");

        // The local engine merges the recorded order and reaches the same states.
        let history = busy(true).checkpointer(std::sync::Arc::clone(&driver.history));
        let recorded = history.history("t").await.unwrap();
        let replayed = history.proceed().thread("t").from(recorded.last().unwrap().id).await.unwrap();
        assert_eq!(replayed.output(), outcome.output());
    }
}

#[tokio::test]
async fn eager_interrupts_hold_their_own_branch_only() {
    let mut driver = Driver::new(asking(true), asking(true));
    let done = driver.call(invoke()).await;
    assert_eq!(done.end.interrupts().len(), 2);
    for left in [1, 0] {
        let id = done.end.interrupts()[left].id.unwrap();
        let done = driver.call(RunCall::resume_many([(id, "yes")]).unwrap()).await;
        assert_eq!(done.end.interrupts().len(), left);
    }
}

#[tokio::test]
async fn the_time_of_a_run_moves_with_the_replies_of_tasks_and_with_timers() {
    let flaky = |ctx: Ctx| async move { if ctx.attempt() == 1 { Err("once") } else { Ok(()) } };
    let again = RetryPolicy::attempts(2).initial(Duration::from_secs(60));
    let far = Clock::default();
    far.advance(Duration::from_secs(1_007));
    let graph = StateGraph::<Work>::new().node("flaky", flaky.retry(again)).edge(START, "flaky");
    let graph = graph.compile().unwrap().services(far.clone());
    let start = UNIX_EPOCH + Duration::from_secs(1_000);
    let mut run = graph.drive(invoke(), Ground::new("t", 1, start).journaled()).unwrap();
    let mut now = Duration::ZERO;
    let mut needs: VecDeque<Need> = run.needs().unwrap().into();
    let mut moved = Vec::new();
    while let Some(need) = needs.pop_front() {
        let (reply, then) = match need.kind {
            // The far clock stands, and a run's time never goes back.
            NeedKind::Task(task) => {
                (Reply::Task(graph.run_task(*task).await.unwrap()), now.max(Duration::from_secs(7)))
            }
            NeedKind::Timer(wait) => (Reply::Fired, now + wait),
            _ => (Reply::Stored(Ok(())), now),
        };
        moved.push(then > now);
        now = then;
        run.give(need.id, reply).unwrap();
        needs.extend(run.needs().unwrap());
        assert_eq!(run.now(), start + now);
    }
    // Rows, the first attempt, the wait, the second attempt, rows.
    assert_eq!(moved, [false, true, true, false, false]);
    assert!(run.end().unwrap().is_finished());
}
