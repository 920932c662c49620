//! Calls are cancelled, drained, answered while they wait, limited and edited, as local ones are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentgraph::prelude::*;
use agentgraph::run::Cancellation;
use agentgraph::workflow::Workflow;
use agentgraph::{BoxError, Budget, Code, Error, MemorySaver, StopReason};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, Serving, ThreadStatus};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::common::server::{self, Server};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Trip {
    #[reduce(append)]
    seen: Vec<String>,
}

async fn note(ctx: Ctx) -> TripUpdate {
    Trip::update().seen([ctx.node()])
}

async fn serve<S: agentgraph::state::StoredState<Schema = ()>>(
    name: &str,
    graph: CompiledGraph<S>,
) -> (Serving, RemoteGraph<S>) {
    serve_on(server::shared().await, name, graph).await
}

async fn serve_on<S: agentgraph::state::StoredState<Schema = ()>>(
    server: &Server,
    name: &str,
    graph: CompiledGraph<S>,
) -> (Serving, RemoteGraph<S>) {
    let worker = RestateWorker::new().graph(name, graph).register(&server.admin);
    let serving = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (serving, RestateClient::connect(&server.ingress).unwrap().graph(name))
}

/// A node that takes as long as the permits say, and counts its runs.
#[derive(Clone)]
struct Gate {
    permits: Arc<Semaphore>,
    runs: Arc<AtomicUsize>,
}

impl Gate {
    fn new() -> Self {
        Gate { permits: Arc::new(Semaphore::new(0)), runs: Arc::default() }
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Waits until the nodes have begun this often.
    async fn begun(&self, runs: usize) {
        while self.runs() < runs {
            tokio::task::yield_now().await;
        }
    }
}

async fn slow(ctx: Ctx, gate: Dep<Gate>) -> Result<TripUpdate> {
    gate.runs.fetch_add(1, Ordering::SeqCst);
    gate.permits.acquire().await?.forget();
    // Signals are looked for between tasks that take a while.
    tokio::time::sleep(Duration::from_millis(150)).await;
    Ok(Trip::update().seen([ctx.node()]))
}

fn call(graph: &RemoteGraph<Trip>) -> tokio::task::JoinHandle<Result<Outcome<Trip>, Error>> {
    tokio::spawn(graph.invoke(Trip::update()).thread("t").into_future())
}

/// Waits until a cancel or a drain has reached the call of a graph: nothing new starts from then on.
async fn until_signalled(graph: &str) {
    let sql = format!(
        "select journal.id from sys_journal journal join sys_invocation invocation on invocation.id = journal.id \
         where target_service_name = '{graph}' and entry_type = 'Notification: Signal'"
    );
    let begun = Instant::now();
    while server::shared().await.query(&sql).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no signal has come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn stopped(outcome: &Outcome<Trip>) -> Option<StopReason> {
    match outcome {
        Outcome::Stopped { reason, .. } => Some(*reason),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_starts_nothing_more_and_goes_on_by_proceed() {
    for (name, remote) in [("cancelled-here", false), ("cancelled-far", true)] {
        let gate = Gate::new();
        let node = || if remote { slow.remote() } else { slow.into_node() };
        let graph = StateGraph::new()
            .dep(gate.clone())
            .node("first", note)
            .node("second", node())
            .node("third", node())
            .edge(START, "first")
            .edge("first", "second")
            .edge("second", "third")
            .compile()
            .unwrap();
        let (_worker, graph) = serve(name, graph).await;
        assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::NotRunning);
        let running = call(&graph);
        gate.begun(1).await;
        assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::Requested);
        until_signalled(name).await;
        gate.permits.add_permits(1);
        let outcome = running.await.unwrap().unwrap();
        assert_eq!(stopped(&outcome), Some(StopReason::Cancelled));
        assert_eq!(gate.runs(), 1, "{name}: the third node has not begun");
        gate.permits.add_permits(10);
        let trip = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(trip.seen, ["first", "second", "third"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_call_commits_what_has_started() {
    let gate = Gate::new();
    let graph = StateGraph::new()
        .dep(gate.clone())
        .node("left", slow)
        .node("right", slow)
        .node("last", slow)
        .edge(START, "left")
        .edge(START, "right")
        .edge(["left", "right"], "last")
        .compile()
        .unwrap();
    let (_worker, graph) = serve("drained", graph).await;
    assert!(!graph.drain("t").await.unwrap());
    let running = call(&graph);
    gate.begun(2).await;
    assert!(graph.drain("t").await.unwrap());
    until_signalled("drained").await;
    gate.permits.add_permits(10);
    let outcome = running.await.unwrap().unwrap();
    assert_eq!(stopped(&outcome), Some(StopReason::Drained));
    assert_eq!(outcome.output().seen, ["left", "right"]);
    let trip = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((trip.seen.len(), gate.runs()), (3, 3));
}

/// Single tasks in the worker's own process are steps that nothing else can interrupt, so the drain is looked
/// for between them.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_noticed_between_single_tasks() {
    async fn step(runs: Dep<Arc<AtomicUsize>>) -> TripUpdate {
        runs.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        Trip::update()
    }
    for server in [server::shared().await, server::that_suspends_at_once().await] {
        let runs = Arc::new(AtomicUsize::new(0));
        let graph = StateGraph::new().dep(Arc::clone(&runs)).node("step", step).edge(START, "step");
        let graph = graph.edge("step", "step").compile().unwrap().checkpointer(MemorySaver::new());
        let (_worker, graph) = serve_on(server, "drained-loop", graph).await;
        let running = call(&graph);
        // Not the first look finds it, and a replay has to find it in the same one.
        while runs.load(Ordering::SeqCst) < 5 {
            tokio::task::yield_now().await;
        }
        assert!(graph.drain("t").await.unwrap());
        let outcome = running.await.unwrap().unwrap();
        assert_eq!(stopped(&outcome), Some(StopReason::Drained));
        assert!(runs.load(Ordering::SeqCst) < 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_its_answers_and_a_bad_one_leaves_the_question_open() {
    async fn ask(ctx: Ctx) -> Result<TripUpdate> {
        let nights: u8 = ctx.interrupt("how many nights?")?;
        let name: String = ctx.interrupt("whose name?")?;
        Ok(Trip::update().seen([format!("{nights} nights for {name}")]))
    }
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let (_worker, graph) = serve("waits", graph).await;
    assert_eq!(graph.answer(1).thread("t").await.unwrap_err().code(), Code::NothingToResume);
    let waiting = tokio::spawn(graph.invoke(Trip::update()).thread("t").wait_answer().into_future());
    for (answer, asks) in
        [("many", "how many nights?"), ("3", "how many nights?"), ("\"Ada\"", "whose name?")]
    {
        until_asked(&graph, asks).await;
        let answer: serde_json::Value =
            serde_json::from_str(answer).unwrap_or_else(|_| serde_json::Value::from(answer));
        // The call waits again a moment after the question can be seen.
        while graph.answer(answer.clone()).thread("t").await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    let trip = waiting.await.unwrap().unwrap().into_finished().unwrap();
    assert_eq!(trip.seen, ["3 nights for Ada"]);
}

async fn until_asked(graph: &RemoteGraph<Trip>, question: &str) {
    loop {
        let state = graph.state("t").await.unwrap();
        if state.is_some_and(|state| state.interrupts.iter().any(|one| one.value == question)) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_wait_returns_the_open_questions() {
    async fn ask(ctx: Ctx) -> Result<TripUpdate> {
        Ok(Trip::update().seen([ctx.interrupt::<String>("go?")?]))
    }
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let (_worker, graph) = serve("gives-up", graph).await;
    let waiting = tokio::spawn(graph.invoke(Trip::update()).thread("t").wait_answer().into_future());
    until_asked(&graph, "go?").await;
    assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::Requested);
    let outcome = waiting.await.unwrap().unwrap();
    assert_eq!(outcome.interrupts().len(), 1);
    let trip = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(trip.seen, ["yes"]);
}

/// A sleep needs no answer: a call that waits goes on at its end, and a thread wakes by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_ends_by_itself() {
    async fn nap(ctx: Ctx, name: String) -> Result<String> {
        let time = if name == "Eve" { Duration::from_secs(3600) } else { Duration::from_millis(300) };
        ctx.sleep("nap", time).await?;
        Ok(format!("good morning, {name}"))
    }
    let workflow = Workflow::new("nap", nap).compile().unwrap().checkpointer(MemorySaver::new());
    let (_worker, graph) = serve("sleeps", workflow).await;
    let outcome = graph.invoke("Ada".to_owned()).thread("t").wait_answer().await.unwrap();
    assert_eq!(outcome.into_returned().unwrap(), "good morning, Ada");

    let server = server::shared().await;
    let client = RestateClient::builder().admin(&server.admin).connect(&server.ingress).unwrap();
    let found = async |thread| client.search().graph("sleeps").named(thread).await.unwrap().threads.remove(0);
    let asleep = graph.invoke("Eve".to_owned()).thread("long").await.unwrap();
    let sleeping = found("long").await;
    assert_eq!((sleeping.status, sleeping.until), (ThreadStatus::Sleeping, asleep.sleeps_until()));
    assert!(graph.invoke("Bob".to_owned()).thread("u").await.unwrap().sleeps_until().is_some());
    while found("u").await.status != ThreadStatus::Finished {}
    let state = graph.state("u").await.unwrap().unwrap();
    assert_eq!(state.values.returned().map(String::as_str), Some("good morning, Bob"));
}

/// Two calls found the thread asleep, and each has it woken; the second time there is nothing to wake.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_woken_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let nap = move |ctx: Ctx, millis: u64| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            ctx.sleep("nap", Duration::from_millis(millis)).await?;
            Ok::<_, BoxError>(millis)
        }
    };
    let workflow = Workflow::new("naps", nap).compile().unwrap().checkpointer(MemorySaver::new());
    let server = Server::start().await;
    let (_worker, graph) = serve_on(&server, "naps", workflow).await;
    let asleep = graph.invoke(6000).thread("t").await.unwrap();
    let again = graph.proceed().thread("t").await.unwrap();
    assert_eq!(asleep.sleeps_until(), again.sleeps_until());
    let before = runs.load(Ordering::SeqCst);
    server.until_nothing_is_open().await;
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.values.returned(), runs.load(Ordering::SeqCst)), (Some(&6000), before + 1));
    let client = RestateClient::builder().admin(&server.admin).connect(&server.ingress).unwrap();
    assert_eq!(client.search().await.unwrap().threads[0].status, ThreadStatus::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_end_a_call_as_they_do_locally() {
    async fn step(ctx: Ctx) -> TripUpdate {
        ctx.spend("cents", 4);
        Trip::update().seen(["step"])
    }
    let graph =
        StateGraph::new().node("step", step).edge(START, "step").edge("step", "step").compile().unwrap();
    let (_worker, graph) = serve("limits", graph).await;
    let outcome =
        graph.invoke(Trip::update()).thread("t").budget(Budget::new().units("cents", 10)).await.unwrap();
    assert_eq!(stopped(&outcome), Some(StopReason::Budget));
    assert_eq!((outcome.output().seen.len(), outcome.spent("cents")), (3, 12));

    let unfinished = graph.invoke(Trip::update()).thread("t").await.unwrap_err();
    assert_eq!(unfinished.code(), Code::RunUnfinished);
    let outcome = graph.invoke(Trip::update()).thread("t").abandon().max_supersteps(2).await.unwrap();
    assert_eq!((stopped(&outcome), outcome.output().seen.len()), (Some(StopReason::Limit), 5));

    let outcome = graph.proceed().thread("t").deadline(Duration::from_millis(200)).await.unwrap();
    assert_eq!(stopped(&outcome), Some(StopReason::Deadline));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_edited_between_its_calls() {
    let graph = StateGraph::new()
        .node("plan", note)
        .node("book", note)
        .edge(START, "plan")
        .edge("plan", "book")
        .compile()
        .unwrap();
    let (_worker, graph) = serve("edited", graph).await;
    graph.invoke(Trip::update()).thread("t").max_supersteps(1).await.unwrap();
    graph.update_state("t").update(Trip::update().seen(["by hand"])).await.unwrap();
    graph.update_state("t").as_node("plan", Trip::update().seen(["as plan"])).await.unwrap();
    let trip = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(trip.seen, ["plan", "by hand", "as plan", "book"]);
    let refused = graph.update_state("t").as_node("fly", Trip::update()).await.unwrap_err();
    assert_eq!(refused.code(), Code::UnknownTarget);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_those_of_the_engine() {
    async fn torn() -> Result<TripUpdate> {
        Err("the page is torn".into())
    }
    let graph = StateGraph::new().node("torn", torn).edge(START, "torn").compile().unwrap();
    let (_worker, graph) = serve("errors", graph).await;
    let error = graph.invoke(Trip::update().seen(["input"])).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.node(), error.thread()), (Code::NodeFailed, Some("torn"), Some("t")));
    assert!(error.message().contains("the page is torn"), "{error}");
    assert_eq!(error.state::<Trip>().unwrap().seen, ["input"]);
    assert_eq!(graph.state("t").await.unwrap().unwrap().failures.len(), 1);
    assert_eq!(graph.history("t").await.unwrap_err().code(), Code::NoCheckpointer);
    assert_eq!(graph.resume(1).thread("nobody").await.unwrap_err().code(), Code::NothingToResume);
    assert_eq!(graph.invoke(Trip::update()).await.unwrap_err().code(), Code::NoThread);
    assert!(graph.state("nobody").await.unwrap().is_none());
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Scale {
    left: u64,
    right: u64,
    /// Short or long, so that rows of all sizes replace each other.
    text: String,
}

/// A reader sees whole checkpoints, the newest ones, while the slots of their rows are overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_read_while_it_runs() {
    const STEPS: u64 = 600;
    let permits = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&permits);
    let step = move |scale: Snapshot<Scale>| {
        let gate = Arc::clone(&gate);
        async move {
            let next = scale.left + 1;
            // The readers are not left behind.
            if next.is_multiple_of(20) {
                gate.acquire().await.unwrap().forget();
            }
            let text = "x".repeat(if next.is_multiple_of(3) { 20_000 } else { 10 });
            Scale::update().left(next).right(next).text(text)
        }
    };
    let more = |scale: &Scale| if scale.left < STEPS { "step" } else { END };
    let graph = StateGraph::new()
        .node("step", step)
        .edge(START, "step")
        .branch("step", more, ["step", END])
        .compile()
        .unwrap();
    let (_worker, graph) = serve("read", graph).await;
    let running = tokio::spawn(graph.invoke(Scale::update()).thread("t").into_future());
    let mut last = 0;
    let mut seen_on_the_way = 0;
    while last < STEPS {
        permits.add_permits(1);
        let over = running.is_finished();
        let state = graph.state("t").await.unwrap();
        let Scale { left, right, .. } = state.map(|state| state.values).unwrap_or_default();
        assert!(left == right && left >= last, "{left} and {right} after {last}");
        assert!(!over || left == STEPS, "{left} at the end");
        seen_on_the_way += usize::from(left > last && left < STEPS);
        last = left;
    }
    assert!(seen_on_the_way > 10, "{seen_on_the_way}");
    running.await.unwrap().unwrap().into_finished().unwrap();
}
