//! The engine of this repository.

use std::hint::black_box;
use std::path::Path;

use agentgraph::prelude::*;
use agentgraph::run::{EventKind, View};
use futures_util::StreamExt;
use harness::{ANSWER, Case, INNER, LINE, Prepared, SHORT, TEXT, at_once, repeat, thread_name};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Counter {
    count: u64,
    until: u64,
    text: String,
    #[reduce(append)]
    items: Vec<u64>,
    #[reduce(append)]
    lines: Vec<String>,
}

#[derive(Route)]
enum Next {
    Work,
    #[route(end)]
    Done,
}

fn next(state: &Counter) -> Next {
    if state.count < state.until { Next::Work } else { Next::Done }
}

async fn add_one(state: Snapshot<Counter>) -> CounterUpdate {
    Counter::update().count(black_box(state.count) + 1)
}

async fn add_line(state: Snapshot<Counter>) -> CounterUpdate {
    Counter::update().count(state.count + 1).lines(["x".repeat(LINE)])
}

async fn ask(ctx: Ctx, state: Snapshot<Counter>) -> Result<CounterUpdate> {
    let more: u64 = ctx.interrupt("how many more?")?;
    Ok(Counter::update().count(state.count + more))
}

async fn collect(state: Snapshot<Counter>) -> CounterUpdate {
    Counter::update().count(state.count + state.items.len() as u64)
}

async fn add_up(state: Snapshot<Counter>) -> CounterUpdate {
    Counter::update().count(state.count + state.items.iter().sum::<u64>())
}

type Graph = CompiledGraph<Counter>;

fn input() -> CounterUpdate {
    Counter::update().text(TEXT)
}

fn compile(graph: StateGraph<Counter>) -> Graph {
    graph.compile().expect("a graph")
}

fn chain(size: u64) -> Graph {
    let name = |at| format!("node_{at}");
    let mut graph = StateGraph::new().edge(START, name(0));
    for at in 0..size {
        graph = graph.node(name(at), add_one);
        if at > 0 {
            graph = graph.edge(name(at - 1), name(at));
        }
    }
    compile(graph)
}

fn looped<M>(node: impl IntoNode<Counter, M>) -> Graph {
    compile(StateGraph::new().node("work", node).edge(START, "work").route("work", next))
}

fn fan_out(size: u64) -> Graph {
    let name = |at| format!("branch_{at}");
    let mut graph = StateGraph::new().node("join", collect);
    for at in 0..size {
        let branch = move |_: Snapshot<Counter>| async move { Counter::update().items([black_box(at)]) };
        graph = graph.node(name(at), branch).edge(START, name(at));
    }
    compile(graph.edge((0..size).map(name).collect::<Vec<_>>(), "join"))
}

fn dispatching(size: u64) -> Graph {
    let split = move || async move {
        Command::<Counter>::to((0..size).map(|at| Dispatch::new("count", at)).collect::<Vec<_>>())
    };
    let count = |Input(at): Input<u64>| async move { Counter::update().items([black_box(at)]) };
    let graph =
        StateGraph::new().node("split", split.targets(["count"])).node("count", count).node("add_up", add_up);
    compile(graph.edge(START, "split").edge("count", "add_up"))
}

fn asking() -> Graph {
    let graph = StateGraph::new().node("before", add_one).node("ask", ask).node("after", add_one);
    compile(graph.edge(START, "before").edge("before", "ask").edge("ask", "after"))
}

async fn run(graph: Graph, input: CounterUpdate) -> u64 {
    graph.invoke(input).max_supersteps(10_000).finish().await.expect("the run ends").count
}

/// Runs on a thread of its own, and sees that each step has a checkpoint.
async fn stored(graph: Graph, steps: u64) -> u64 {
    let outcome = graph.invoke(input().until(steps)).thread(thread_name()).await.expect("the run ends");
    assert_eq!(outcome.checkpoint().map(|id| id.step), Some(steps));
    outcome.output().count
}

async fn streamed(graph: Graph) -> u64 {
    let events = graph.invoke(input()).views([View::Updates]).stream();
    events.filter(|event| std::future::ready(matches!(event.kind, EventKind::Update { .. }))).count().await
        as u64
}

async fn asked_and_answered(graph: Graph) -> u64 {
    let graph = graph.checkpointer(MemorySaver::new());
    assert_eq!(wait(&graph, "thread").await, 1);
    graph.resume(ANSWER).thread("thread").finish().await.expect("the run ends").count
}

/// Runs until it asks; the number of questions.
async fn wait(graph: &Graph, thread: &str) -> u64 {
    graph.invoke(input()).thread(thread).await.expect("it asks").interrupts().len() as u64
}

async fn all_wait(graph: Graph, runs: u64) -> u64 {
    let mut waiting = 0;
    for _ in 0..runs {
        waiting += wait(&graph, &thread_name()).await;
    }
    waiting
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    let sqlite = async || SqliteSaver::open(folder.join("ours.db")).await.expect("a saver");
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, input())),
        Case::Loop(steps) => repeat(looped(add_one), move |graph| run(graph, input().until(steps))),
        Case::FanOut(size) => repeat(fan_out(size), |graph| run(graph, input())),
        Case::Runs(size) => {
            repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), input())))
        }
        Case::Memory(steps) => {
            repeat(looped(add_one), move |graph| stored(graph.checkpointer(MemorySaver::new()), steps))
        }
        Case::Sqlite(steps) => {
            repeat(looped(add_one).checkpointer(sqlite().await), move |graph| stored(graph, steps))
        }
        Case::Growing(steps) => {
            repeat(looped(add_line).checkpointer(sqlite().await), move |graph| stored(graph, steps))
        }
        Case::Interrupt => repeat(asking(), asked_and_answered),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Subgraph(calls) => {
            repeat(looped(chain(INNER)), move |graph| run(graph, input().until(calls * INNER)))
        }
        Case::Dispatch(size) => repeat(dispatching(size), |graph| run(graph, input())),
        Case::Waiting(size) => {
            repeat(asking().checkpointer(MemorySaver::new()), move |graph| all_wait(graph, size))
        }
    }
}

fn main() {
    harness::main(prepare);
}
