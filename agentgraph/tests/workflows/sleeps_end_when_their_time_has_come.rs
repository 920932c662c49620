//! A sleeping task keeps no run: its thread is a row with the end of the sleep. The task goes on with the
//! first call after that end, and not before, in every discipline, after kills and in another process.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::Services;
use agentgraph::node::{Node, OnceError};
use agentgraph::prelude::*;
use agentgraph::run::{InterruptKind, StepKind};
use agentgraph::subgraph::Memory;
use agentgraph::{BoxError, Code};
use futures_util::future::join;

use crate::common::clock::Clock;
use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text};

const HOUR: Duration = Duration::from_secs(3600);

/// A node that sleeps for a number of hours, and then says so.
fn sleeper(hours: u32) -> Node<Words> {
    let node = move |ctx: Ctx| async move {
        ctx.sleep("hours", HOUR * hours).await?;
        Ok::<_, BoxError>(Words::update().seen([format!("{hours}h")]))
    };
    node.into_node()
}

/// Graphs in which `long` sleeps for two hours, `short` for one, and `awake` not at all.
fn shapes() -> Vec<(&'static str, StateGraph<Words>)> {
    let flat = || {
        StateGraph::new()
            .node("long", sleeper(2))
            .node("short", sleeper(1))
            .node("awake", says("awake"))
            .edge(START, "long")
            .edge(START, "short")
            .edge(START, "awake")
    };
    let around = |inner: StateGraph<Words>, memory: Memory| {
        let inner = inner.compile().unwrap().memory(memory);
        StateGraph::new().node("inner", inner).edge(START, "inner")
    };
    vec![
        ("supersteps", flat()),
        ("eager", flat().eager()),
        ("a subgraph", around(flat(), Memory::PerCall)),
        ("an eager subgraph", around(flat().eager(), Memory::PerCall)),
        ("a subgraph with a memory", around(flat(), Memory::PerThread)),
        ("a subgraph of an eager graph", around(flat(), Memory::PerCall).eager()),
    ]
}

fn compiled(graph: StateGraph<Words>, saver: &NotingSaver, clock: &Clock) -> CompiledGraph<Words> {
    graph.compile().unwrap().checkpointer(saver.clone()).services(clock.clone())
}

fn at(hours: u32) -> SystemTime {
    UNIX_EPOCH + HOUR * hours
}

#[tokio::test]
async fn a_task_goes_on_with_the_first_call_after_its_end_in_every_discipline() {
    for (name, graph) in shapes() {
        let clock = Clock::default();
        let graph = compiled(graph, &NotingSaver::memory(), &clock);
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let mut ends: Vec<_> = outcome.interrupts().iter().map(|sleep| sleep.until.unwrap()).collect();
        ends.sort();
        assert_eq!(ends, [at(1), at(2)], "{name}");
        assert!(outcome.interrupts().iter().all(|sleep| sleep.kind == InterruptKind::Sleeps), "{name}");
        assert_eq!((outcome.sleeps_until(), clock.now()), (Some(at(1)), UNIX_EPOCH), "{name}");

        // Too early: nothing changes.
        clock.advance(HOUR - Duration::from_secs(1));
        let early = graph.proceed().thread("t").await.unwrap();
        assert_eq!(early.sleeps_until(), Some(at(1)), "{name}");

        clock.advance(Duration::from_secs(1));
        let later = graph.proceed().thread("t").await.unwrap();
        assert_eq!((later.interrupts().len(), later.sleeps_until()), (1, Some(at(2))), "{name}");

        clock.advance(HOUR);
        let end = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        let mut seen = end.seen.clone();
        seen.sort();
        assert_eq!(seen, ["1h", "2h", "awake"], "{name}");
    }
}

#[tokio::test]
async fn nodes_of_a_pass_sleep_too() {
    let clock = Clock::default();
    let sleeps = |hours: u32| {
        move |ctx: Ctx| async move {
            ctx.sleep("hours", HOUR * hours).await?;
            Ok::<_, BoxError>(format!("{hours}h"))
        }
    };
    let graph = DependencyGraph::<String>::new()
        .node("a", sleeps(2))
        .node("b", sleeps(1))
        .node("end", |deps: Deps<String>| format!("{} {}", deps["a"], deps["b"]))
        .edge("a", "end")
        .edge("b", "end")
        .compile()
        .unwrap()
        .checkpointer(NotingSaver::memory())
        .services(clock.clone());
    let begun = graph.invoke(()).thread("t").await.unwrap();
    assert_eq!((begun.interrupts().len(), begun.sleeps_until()), (2, Some(at(1))));
    let steps = graph.state("t").await.unwrap().unwrap().steps;
    let shown: Vec<_> = steps.iter().map(|step| (&*step.node, step.kind)).collect();
    assert_eq!(shown, [("a", StepKind::Sleep(at(2))), ("b", StepKind::Sleep(at(1)))]);
    clock.advance(HOUR);
    assert_eq!(graph.proceed().thread("t").await.unwrap().sleeps_until(), Some(at(2)));
    clock.advance(HOUR);
    assert_eq!(graph.proceed().thread("t").await.unwrap().into_finished().unwrap()["end"], "2h 1h");
}

#[tokio::test]
async fn waiting_lists_sleeping_threads_with_their_ends() {
    for (name, graph) in shapes() {
        let clock = Clock::default();
        let graph = compiled(graph, &NotingSaver::memory(), &clock);
        graph.invoke(Words::update()).thread("a").await.unwrap();
        clock.advance(HOUR);
        graph.invoke(Words::update()).thread("b").await.unwrap();
        let waiting = graph.waiting().await.unwrap();
        let ends: Vec<_> = waiting.iter().map(|one| (&*one.thread, one.sleeps_until().unwrap())).collect();
        assert_eq!(ends, [("a", at(1)), ("b", at(2))], "{name}");
        assert_eq!(waiting[0].interrupts[0].value, "hours", "{name}");
        // As a program wakes them.
        for one in waiting.iter().filter(|one| one.sleeps_until().unwrap() <= clock.now()) {
            graph.proceed().thread(&*one.thread).await.unwrap();
        }
        let waiting = graph.waiting().await.unwrap();
        let ends: Vec<_> = waiting.iter().map(|one| (&*one.thread, one.sleeps_until().unwrap())).collect();
        assert_eq!(ends, [("a", at(2)), ("b", at(2))], "{name}");
    }
}

/// A graph whose node does work, sleeps, and does more work.
fn works_and_sleeps(saver: &NotingSaver, clock: &Clock, eager: bool) -> CompiledGraph<Words> {
    let node = move |ctx: Ctx| async move {
        pending_for(2).await;
        ctx.sleep("first", HOUR).await?;
        pending_for(2).await;
        ctx.sleep("second", HOUR).await?;
        Ok::<_, BoxError>(Words::update().seen(["rested"]))
    };
    let graph = StateGraph::new().node("a", node).edge(START, "a");
    compiled(if eager { graph.eager() } else { graph }, saver, clock)
}

/// The end is stored before the task waits, and counts from there whenever the process dies.
#[tokio::test]
async fn a_kill_at_any_poll_neither_prolongs_nor_shortens_a_sleep_that_is_stored() {
    for eager in [false, true] {
        let mut kills = 0;
        for killed_at in 0.. {
            let saver = NotingSaver::memory();
            let clock = Clock::default();
            let graph = || works_and_sleeps(&saver, &clock, eager);
            let begun = at_most(graph().invoke(Words::update()).thread("t").into_future(), killed_at).await;
            // The process was down for half an hour.
            clock.advance(HOUR / 2);
            let stored = graph().state("t").await.unwrap();
            let is_stored = stored.as_ref().is_some_and(|state| !state.steps.is_empty());
            let outcome = match stored {
                None => graph().invoke(Words::update()).thread("t").await,
                Some(_) => graph().proceed().thread("t").await,
            };
            let end = outcome.unwrap().sleeps_until().unwrap();
            assert_eq!(end, if is_stored { at(1) } else { at(1) + HOUR / 2 }, "{killed_at}");

            clock.advance(HOUR);
            let outcome = graph().proceed().thread("t").await.unwrap();
            assert_eq!(outcome.sleeps_until(), Some(clock.now() + HOUR));
            clock.advance(HOUR);
            assert_eq!(
                text(&graph().proceed().thread("t").await.unwrap().into_finished().unwrap()),
                "rested"
            );
            kills += 1;
            if begun.is_some() {
                break;
            }
        }
        assert!(kills > 5, "{kills}");
    }
}

/// The same for kills of the call that wakes it.
#[tokio::test]
async fn a_kill_of_the_call_that_wakes_a_task_loses_nothing() {
    for eager in [false, true] {
        for killed_at in 0.. {
            let saver = NotingSaver::memory();
            let clock = Clock::default();
            let graph = || works_and_sleeps(&saver, &clock, eager);
            graph().invoke(Words::update()).thread("t").await.unwrap();
            clock.advance(HOUR);
            let woken = at_most(graph().proceed().thread("t").into_future(), killed_at).await;
            let outcome = graph().proceed().thread("t").await.unwrap();
            assert_eq!(outcome.sleeps_until(), Some(at(2)), "{killed_at}");
            clock.advance(HOUR);
            assert_eq!(
                text(&graph().proceed().thread("t").await.unwrap().into_finished().unwrap()),
                "rested"
            );
            if woken.is_some() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_run_that_is_stored_at_its_end_keeps_the_ends_of_its_sleeps() {
    for eager in [false, true] {
        let clock = Clock::default();
        let graph = works_and_sleeps(&NotingSaver::memory(), &clock, eager);
        let begun = graph.invoke(Words::update()).thread("t").durability(Durability::Exit).await.unwrap();
        assert_eq!(begun.sleeps_until(), Some(at(1)));
        let proceed = || graph.proceed().thread("t").durability(Durability::Exit);
        clock.advance(HOUR / 2);
        assert_eq!(proceed().await.unwrap().sleeps_until(), Some(at(1)), "eager: {eager}");
        clock.advance(HOUR / 2);
        assert_eq!(proceed().await.unwrap().sleeps_until(), Some(at(2)));
        clock.advance(HOUR);
        proceed().await.unwrap().into_finished().unwrap();
    }
}

/// A task that waits for an answer and sleeps beside that.
async fn asks_and_sleeps(ctx: Ctx) -> Result<WordsUpdate> {
    let slept = ctx.sleep("nap", HOUR);
    let answer = async { Ok::<String, BoxError>(ctx.interrupt("how?")?) };
    let (slept, answer) = join(slept, answer).await;
    slept?;
    Ok(Words::update().seen([answer?]))
}

#[tokio::test]
async fn answers_are_for_questions_and_sleeps_are_for_time() {
    for eager in [false, true] {
        let clock = Clock::default();
        let graph = StateGraph::new().node("a", asks_and_sleeps).edge(START, "a");
        let graph = compiled(if eager { graph.eager() } else { graph }, &NotingSaver::memory(), &clock);

        // One question is open beside a sleep: a bare answer is for the question.
        let begun = graph.invoke(Words::update()).thread("t").await.unwrap();
        assert_eq!(begun.interrupts().len(), 2);
        let answered = graph.resume("well").thread("t").await.unwrap();
        assert_eq!((answered.interrupts().len(), answered.sleeps_until()), (1, Some(at(1))));
        let error = graph.resume("again").thread("t").await.unwrap_err();
        assert_eq!(error.code(), Code::NothingToResume);
        assert!(error.to_string().contains("proceed"), "{error}");
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert!(error.to_string().contains("it sleeps until Thu, 01 Jan 1970 01:00:00 GMT"), "{error}");
        clock.advance(HOUR);
        assert_eq!(text(&graph.proceed().thread("t").await.unwrap().into_finished().unwrap()), "well");

        // An answer after the end also ends the sleep.
        graph.invoke(Words::update()).thread("u").await.unwrap();
        clock.advance(HOUR);
        assert_eq!(text(&graph.resume("late").thread("u").await.unwrap().into_finished().unwrap()), "late");
    }
}

#[tokio::test]
async fn an_answer_to_its_id_ends_a_sleep_early() {
    let clock = Clock::default();
    let (_, graph) = shapes().swap_remove(0);
    let graph = compiled(graph, &NotingSaver::memory(), &clock);
    let begun = graph.invoke(Words::update()).thread("t").await.unwrap();
    let woken = begun.interrupts().iter().map(|sleep| (sleep.id.unwrap(), serde_json::json!({"why": "now"})));
    let end = graph.resume_many(woken).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&end), "2h 1h awake");
    assert_eq!(clock.now(), UNIX_EPOCH);
}

#[tokio::test]
async fn a_loop_of_sleeps_of_one_name_counts_them() {
    let clock = Clock::default();
    let node = |ctx: Ctx| async move {
        for _ in 0..5 {
            ctx.sleep("poll", HOUR).await?;
        }
        Ok::<_, BoxError>(Words::update().seen(["five"]))
    };
    let graph = StateGraph::new().node("a", node).edge(START, "a");
    let graph = compiled(graph, &NotingSaver::memory(), &clock);
    let mut outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    let mut slept = 0;
    while let Some(end) = outcome.sleeps_until() {
        slept += 1;
        assert_eq!(end, at(slept));
        clock.advance(HOUR);
        outcome = graph.proceed().thread("t").await.unwrap();
    }
    assert_eq!((slept, text(outcome.output()).as_str()), (5, "five"));
}

#[tokio::test]
async fn where_nothing_could_continue_it_the_run_itself_waits() {
    let clock = Clock::default();
    let forgetful = || {
        let inner = StateGraph::new().node("a", sleeper(1)).edge(START, "a").compile().unwrap();
        StateGraph::new().node("inner", inner.memory(Memory::None)).edge(START, "inner")
    };
    let plain = StateGraph::new().node("a", sleeper(1)).edge(START, "a");
    let without = plain.compile().unwrap().services(clock.clone());
    assert_eq!(text(&without.invoke(Words::update()).await.unwrap().into_finished().unwrap()), "1h");
    let within = compiled(forgetful(), &NotingSaver::memory(), &clock);
    assert_eq!(
        text(&within.invoke(Words::update()).thread("t").await.unwrap().into_finished().unwrap()),
        "1h"
    );
    assert_eq!(clock.slept(), [HOUR, HOUR]);
}

#[tokio::test]
async fn no_length_of_a_sleep_is_an_error() {
    let clock = Clock::default();
    for (length, ends) in [(Duration::ZERO, true), (Duration::from_nanos(1), true), (Duration::MAX, false)] {
        let node = move |ctx: Ctx| async move { ctx.sleep("x", length).await };
        let graph = StateGraph::<Words>::new().node("a", node).edge(START, "a");
        let graph = compiled(graph, &NotingSaver::memory(), &clock);
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Finished { .. }), ends, "{length:?}");
        if !ends {
            let error = outcome.into_finished().unwrap_err();
            assert!(error.to_string().contains("after the year 9999"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_sleep_inside_a_durable_step_is_an_error() {
    let node = |ctx: Ctx| async move {
        let inner = ctx.clone();
        ctx.once("work", async move { inner.sleep("nap", HOUR).await }).await?;
        Ok::<_, BoxError>(())
    };
    let graph = StateGraph::<Words>::new().node("a", node).edge(START, "a");
    let graph = compiled(graph, &NotingSaver::memory(), &Clock::default());
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert!(error.to_string().contains(&OnceError::Nested("nap".to_owned()).to_string()), "{error}");
}

/// An edit of the state and a copy take the sleeps over; a fork and a new run begin without.
#[tokio::test]
async fn edits_and_copies_take_sleeps_over_and_forks_begin_anew() {
    let clock = Clock::default();
    let graph = works_and_sleeps(&NotingSaver::memory(), &clock, false);
    let begun = graph.invoke(Words::update()).thread("t").await.unwrap();
    clock.advance(HOUR / 2);
    graph.copy_thread("t", "copy").await.unwrap();
    graph.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
    for thread in ["t", "copy"] {
        assert_eq!(graph.proceed().thread(thread).await.unwrap().sleeps_until(), Some(at(1)), "{thread}");
    }
    let first = begun.checkpoint().unwrap();
    let forked = graph.proceed().thread("t").from(first).await.unwrap();
    assert_eq!(forked.sleeps_until(), Some(at(1) + HOUR / 2));
    let anew = graph.invoke(Words::update()).thread("copy").abandon().await.unwrap();
    assert_eq!(anew.sleeps_until(), Some(at(1) + HOUR / 2));
}

/// Programs wake the same thread at the same time: one does, and the other is told that the thread is busy or
/// finds nothing to do.
#[tokio::test]
async fn several_programs_may_wake_a_thread_at_once() {
    let saver = Arc::new(MemorySaver::new());
    let clock = Clock::default();
    let graph = || {
        let graph = StateGraph::new().node("a", sleeper(1)).edge(START, "a").compile().unwrap();
        graph.checkpointer(Arc::clone(&saver)).services(clock.clone())
    };
    graph().invoke(Words::update()).thread("t").await.unwrap();
    clock.advance(HOUR);
    let woken =
        futures_util::future::join_all((0..8).map(|_| graph().proceed().thread("t").into_future())).await;
    let finished = woken.iter().filter(|woken| matches!(woken, Ok(Outcome::Finished { .. }))).count();
    assert_eq!(finished, 1);
    for error in woken.into_iter().filter_map(Result::err) {
        assert!([Code::ThreadBusy, Code::NothingToResume].contains(&error.code()), "{error}");
    }
}
