//! Runs and final states are the same with each durability: `Sync`, `Async` and `Exit`. They differ in the
//! checkpoints that a run leaves when it ends early.

use std::collections::VecDeque;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::checkpoint::{Catalog, Leases, Put, StoreCode, StoreError, Upkeep, delegate};
use agentgraph::prelude::*;
use agentgraph::{Code, Durability};

use crate::common::poll::pending_for;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("?")?;
    Ok(said(&answer))
}

/// START -> a -> ask -> b.
fn asking_graph() -> StateGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("ask", asks).node("b", says("b"));
    graph.edge(START, "a").edge("a", "ask").edge("ask", "b")
}

async fn history_lines(graph: &CompiledGraph<Words>) -> Vec<String> {
    let history = graph.history("t").await.unwrap();
    history.iter().map(|one| format!("{:?} {:?} {}", one.source, one.next, text(&one.values))).collect()
}

#[tokio::test]
async fn every_durability_gives_the_same_states_and_exit_stores_once_per_call() {
    for durability in ALL {
        let graph = asking_graph().compile().unwrap().checkpointer(MemorySaver::new());
        let first = graph.invoke(said("i")).thread("t").durability(durability).await.unwrap();
        assert_eq!((text(first.output()), first.interrupts().len()), ("i a".into(), 1));
        let paused = history_lines(&graph).await;
        let second = graph.resume("yes").thread("t").durability(durability).await.unwrap();
        assert_eq!(text(second.output()), "i a yes b");
        let done = history_lines(&graph).await;
        if durability == Durability::Exit {
            assert_eq!(paused, [r#"Loop ["ask"] i a"#]);
            assert_eq!(done, ["Loop [] i a yes b", r#"Loop ["ask"] i a"#]);
        } else {
            assert_eq!((paused.len(), done.len()), (2, 4), "{durability:?}");
        }
        assert_eq!(second.checkpoint(), graph.state("t").await.unwrap().map(|one| one.id));
    }
}

/// Returns a graph that dispatches as many tasks to `work` as the input says, which succeed, and runs `fails`
/// beside them, which fails the first time.
fn one_of_many_fails(calls: &Arc<AtomicU32>) -> CompiledGraph<Words> {
    async fn send(words: Snapshot<Words>) -> Command<Words> {
        let count = words.seen[0].parse::<u32>().unwrap();
        Command::to((0..count).map(|n| Dispatch::new("work", n)).collect::<Vec<_>>()).also_goto("fails")
    }
    let counted = Arc::clone(calls);
    let work = move |Input(n): Input<u32>| {
        let counted = Arc::clone(&counted);
        async move {
            pending_for(n % 3).await;
            counted.fetch_add(1, Ordering::SeqCst);
            said("w")
        }
    };
    let failed = AtomicU32::new(0);
    let fails = move || {
        let first = failed.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            pending_for(1).await;
            if first { Err("no".into()) } else { Result::<_>::Ok(said("mended")) }
        }
    };
    let graph =
        StateGraph::new().node("send", send).node("work", work).node("fails", fails).edge(START, "send");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn results_beside_a_failure_are_kept_with_every_durability() {
    for durability in ALL {
        let calls = Arc::new(AtomicU32::new(0));
        let graph = one_of_many_fails(&calls);
        graph.invoke(said("200")).thread("t").durability(durability).await.unwrap_err();
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((state.values.seen.len(), state.next), (201, vec!["fails".to_owned()]), "{durability:?}");
        let outcome = graph.proceed().thread("t").durability(durability).await.unwrap();
        assert_eq!((outcome.output().seen.len(), calls.load(Ordering::SeqCst)), (202, 200));
    }
}

#[tokio::test]
async fn a_dropped_run_leaves_the_checkpoints_of_its_durability() {
    for (durability, left) in [
        (Durability::Sync, Some(r#"i a b ["stuck"]"#)),
        (Durability::Async, Some(r#"i a b ["stuck"]"#)),
        (Durability::Exit, None),
    ] {
        let stuck = std::future::pending::<WordsUpdate>;
        let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("stuck", stuck);
        let graph = graph.edge(START, "a").edge("a", "b").edge("b", "stuck").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let mut run = Box::pin(graph.invoke(said("i")).thread("t").durability(durability).into_future());
        for _ in 0..20 {
            assert!(futures_util::poll!(&mut run).is_pending());
            tokio::task::yield_now().await;
        }
        drop(run);
        let state = graph.state("t").await.unwrap();
        let state = state.map(|state| format!("{} {:?}", text(&state.values), state.next));
        assert_eq!(state.as_deref(), left, "{durability:?}");
    }
}

#[tokio::test]
async fn exit_keeps_answers_and_results_of_a_superstep_that_still_waits() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let quick = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(said("quick"))
    };
    async fn asks_twice(ctx: Ctx) -> Result<WordsUpdate> {
        let one: String = ctx.interrupt("one?")?;
        let two: String = ctx.interrupt("two?")?;
        Ok(said(&format!("{one}{two}")))
    }
    let graph = StateGraph::new().node("quick", quick).node("twice", asks_twice).node("once", asks);
    let graph = graph.edge(START, "quick").edge(START, "twice").edge(START, "once").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let exit = Durability::Exit;
    let first = graph.invoke(said("i")).thread("t").durability(exit).await.unwrap();
    let [twice, once] = [0, 1].map(|at| first.interrupts()[at].id.unwrap());
    let second = graph.resume_many([(twice, "1")]).thread("t").durability(exit).await.unwrap();
    let ids: Vec<_> = second.interrupts().iter().map(|one| (one.value.clone(), one.id.unwrap())).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!((ids[0].0.as_str(), ids[1].1), (Some("two?"), once));
    let third = graph.resume_many([(ids[0].1, "2"), (once, "3")]).thread("t").durability(exit).await.unwrap();
    assert_eq!((text(third.output()), calls.load(Ordering::SeqCst)), ("i quick 12 3".into(), 1));
}

#[tokio::test]
async fn exit_stores_the_state_before_a_failure_and_history_shows_the_abandoned_run() {
    let fails = || std::future::ready(Err::<WordsUpdate, agentgraph::BoxError>("no".into()));
    let graph =
        StateGraph::new().node("a", says("a")).node("fails", fails).edge(START, "a").edge("a", "fails");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let exit = Durability::Exit;
    graph.invoke(said("i")).thread("t").durability(exit).await.unwrap_err();
    assert_eq!(history_lines(&graph).await, [r#"Loop ["fails"] i a"#]);
    let first = graph.state("t").await.unwrap().unwrap().run;
    graph.invoke(said("j")).abandon().thread("t").durability(exit).await.unwrap_err();
    assert_eq!(history_lines(&graph).await, [r#"Loop ["fails"] i a j a"#, r#"Loop ["fails"] i a"#]);
    assert_eq!(graph.state("t").await.unwrap().unwrap().abandoned, Some(first));
}

#[tokio::test]
async fn a_reported_static_interrupt_is_passed_with_every_durability() {
    for durability in ALL {
        let graph =
            StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
        let graph = graph.interrupt_after(["a"]).compile().unwrap().checkpointer(MemorySaver::new());
        let outcome = graph.invoke(said("i")).thread("t").durability(durability).await.unwrap();
        assert_eq!(outcome.interrupts().len(), 1);
        let outcome = graph.proceed().thread("t").durability(durability).await.unwrap();
        assert_eq!(text(outcome.output()), "i a b", "{durability:?}");
    }
}

/// A store that fails the commits for which its script says `true`.
struct FailingStore {
    inner: MemorySaver,
    script: Mutex<VecDeque<bool>>,
}

impl FailingStore {
    fn at(commit: usize) -> Self {
        let script = (0..=commit).map(|n| n == commit).collect();
        FailingStore { inner: MemorySaver::new(), script: Mutex::new(script) }
    }
}

#[async_trait::async_trait]
impl Checkpointer for FailingStore {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        match self.script.lock().unwrap().pop_front() {
            Some(true) => Err(StoreError::new(StoreCode::Store, "the disk is full")),
            _ => self.inner.try_put(&put).unwrap(),
        }
    }
    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        None
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }

    delegate!(self => &self.inner; get, row, put_writes, list, threads, delete_thread);
}

#[tokio::test]
async fn a_store_failure_is_an_error_with_every_durability_and_the_thread_can_proceed() {
    for durability in ALL {
        let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("c", says("c"));
        let graph = graph.edge(START, "a").edge("a", "b").edge("b", "c").compile().unwrap();
        let failing = if durability == Durability::Exit { 0 } else { 2 };
        let graph = graph.checkpointer(FailingStore::at(failing));
        let error = graph.invoke(said("i")).thread("t").durability(durability).await.unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::Store, Some("t")), "{durability:?}");
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let state = graph.state("t").await.unwrap();
        let Some(state) = state else {
            assert_eq!(durability, Durability::Exit);
            continue;
        };
        assert_eq!(
            (text(&state.values), state.next),
            ("i a".into(), vec!["b".to_owned()]),
            "no checkpoint follows a missing one"
        );
        let outcome = graph.proceed().thread("t").durability(durability).await.unwrap();
        assert_eq!(text(outcome.output()), "i a b c");
    }
}

#[tokio::test]
async fn a_failure_of_the_last_commit_fails_the_call() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(FailingStore::at(1));
    let error = graph.invoke(said("i")).thread("t").durability(Durability::Async).await.unwrap_err();
    assert_eq!(error.code(), Code::Store);
    assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["a"]);
}

#[tokio::test]
async fn threads_of_one_queue_do_not_fail_each_other() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(FailingStore::at(0));
    let run = |thread: &'static str| graph.invoke(said("i")).thread(thread).durability(Durability::Async);
    assert_eq!(run("bad").await.unwrap_err().code(), Code::Store);
    assert_eq!(text(run("good").await.unwrap().output()), "i a");
    assert_eq!(
        text(run("bad").await.unwrap().output()),
        "i a",
        "after the error the thread can be written again"
    );
}

#[tokio::test]
async fn async_runs_are_read_as_they_were_written() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").edge("a", "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    for call in 1..=4_usize {
        let run = if call == 1 { graph.invoke(Words::update()) } else { graph.proceed() };
        let outcome = run.thread("t").durability(Durability::Async).max_supersteps(700).await.unwrap();
        assert_eq!(outcome.output().seen.len(), call * 700);
        assert_eq!(graph.state("t").await.unwrap().unwrap().values.seen.len(), call * 700);
    }
}

#[test]
fn async_without_a_runtime_is_an_error_and_not_a_panic() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let run = graph.invoke(said("i")).thread("t").durability(Durability::Async).into_future();
    let error = futures_util::FutureExt::now_or_never(run).unwrap().unwrap_err();
    assert!(error.to_string().contains("within a tokio runtime"), "{error}");
}

#[test]
fn async_durability_works_in_every_runtime_that_uses_the_graph() {
    let graph = asking_graph().compile().unwrap().checkpointer(MemorySaver::new());
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    for thread in ["one", "two", "three"] {
        let outcome = runtime().block_on(async {
            let run = graph.invoke(said("i")).thread(thread).durability(Durability::Async);
            run.await
        });
        assert_eq!(outcome.unwrap().interrupts().len(), 1, "{thread}");
    }
    // The runtime of this thread's first call has ended.
    let again = graph.resume("yes").thread("one").durability(Durability::Async).into_future();
    assert_eq!(text(runtime().block_on(again).unwrap().output()), "i a yes b");
}

/// The commits that the first runtime did not store are missing, so the run must not store later ones.
#[test]
fn an_async_run_fails_if_its_runtime_ended_before_its_commits_were_stored() {
    let saver = NotingSaver::memory();
    saver.hang("t");
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").edge("a", "a");
    let graph = graph.compile().unwrap().checkpointer(saver);
    let first = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = graph.invoke(said("i")).thread("t").durability(Durability::Async).max_supersteps(9);
    let mut run = run.into_future();
    first.block_on(async { assert!(futures_util::poll!(&mut run).is_pending()) });
    drop(first);
    let second = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = second.block_on(run).unwrap_err();
    assert!(error.code() == Code::Store && error.to_string().contains("shut down"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn hanging_commits_of_one_thread_do_not_delay_other_threads() {
    let saver = NotingSaver::memory();
    saver.hang("slow");
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").edge("a", "a");
    let graph = graph.compile().unwrap().checkpointer(saver);
    let run = |thread: &'static str| {
        let run = graph.invoke(said("i")).thread(thread).durability(Durability::Async);
        run.max_supersteps(300).into_future()
    };
    let slow = tokio::spawn(run("slow"));
    for thread in ["one", "two"] {
        let done = tokio::time::timeout(Duration::from_secs(3600), run(thread)).await;
        assert_eq!(done.expect("the run does not wait").unwrap().output().seen.len(), 301, "{thread}");
    }
    assert!(!slow.is_finished());
    slow.abort();
}

/// One remaining task per thread would be a leak.
#[tokio::test(start_paused = true)]
async fn async_runs_leave_no_task_behind_when_they_end_or_are_dropped() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").edge("a", "a");
    let graph = graph.compile().unwrap().checkpointer(NotingSaver::memory());
    let run = |thread: &'static str, steps| {
        let run = graph.invoke(said("i")).thread(thread).durability(Durability::Async);
        run.max_supersteps(steps).into_future()
    };
    // Paused time advances when all tasks are idle. The task that renews leases ends when there are none.
    let tasks_end = async |of: &str| {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "{of}");
    };
    for thread in ["one", "two"] {
        run(thread, 3).await.unwrap();
    }
    tasks_end("runs that ended").await;
    let mut ahead = run("ahead", 300);
    while graph.state("ahead").await.unwrap().is_none() {
        assert!(futures_util::poll!(&mut ahead).is_pending());
    }
    drop(ahead);
    tasks_end("a run that was dropped").await;
    assert_eq!(run("ahead", 1).await.unwrap_err().code(), Code::RunUnfinished);
}

/// The runtime ends after each number of turns of the task that stores commits and gives the lease back.
#[test]
fn a_runtime_that_ends_after_a_dropped_run_leaves_its_thread_free() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").edge("a", "a");
    let graph = graph.compile().unwrap().checkpointer(NotingSaver::memory());
    // Each yield lets one task be polled once.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().event_interval(1);
    for turns in 0..40 {
        let thread = turns.to_string();
        let run = |steps| graph.invoke(said("i")).thread(&thread).max_supersteps(steps).abandon();
        let first = runtime.build().unwrap();
        first.block_on(async {
            let run = run(5).durability(Durability::Async).into_future();
            assert!(futures_util::poll!(std::pin::pin!(run)).is_pending());
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        });
        drop(first);
        assert!(runtime.build().unwrap().block_on(run(1).into_future()).is_ok(), "after {turns} turns");
    }
}
