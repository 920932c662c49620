//! `entelix-graph`: the state moves through the nodes by value; branches get states of their own, which are
//! folded.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use entelix_core::{Error, ExecutionContext, ThreadKey, interrupt};
use entelix_graph::{
    Annotated, Append, Checkpointer, Command, CompiledGraph, InMemoryCheckpointer, StateGraph, StateMerge,
};
use entelix_runnable::stream::{StreamChunk, StreamMode};
use entelix_runnable::{Runnable, RunnableLambda};
use futures_util::StreamExt;
use harness::{ANSWER, Case, INNER, Prepared, SHORT, TEXT, at_once, repeat, thread_name, work};

#[derive(Clone, Debug, Default, StateMerge)]
struct Counter {
    count: u64,
    until: u64,
    text: String,
    items: Annotated<Vec<u64>, Append<u64>>,
    input: u64,
    answer: Option<u64>,
}

type Graph = Arc<CompiledGraph<Counter>>;
type Node = RunnableLambda<Counter, Counter>;
type Saver = Arc<InMemoryCheckpointer<Counter>>;

fn begun(until: u64) -> Counter {
    Counter { until, text: TEXT.to_owned(), ..Counter::default() }
}

fn add_one() -> Node {
    RunnableLambda::new(|mut state: Counter, _| async move {
        state.count = black_box(state.count) + 1;
        Ok(state)
    })
}

fn collect(result: fn(&[u64]) -> u64) -> Node {
    RunnableLambda::new(move |mut state: Counter, _| async move {
        state.count += result(&state.items.value);
        Ok(state)
    })
}

fn chain(size: u64) -> Graph {
    let name = |at| format!("node_{at}");
    let nodes = (0..size).fold(StateGraph::new(), |graph, at| graph.add_node(name(at), add_one()));
    let graph = (1..size).fold(nodes, |graph, at| graph.add_edge(name(at - 1), name(at)));
    let graph = graph.set_entry_point(name(0)).add_finish_point(name(size - 1));
    Arc::new(graph.with_recursion_limit(size as usize).compile().expect("a graph"))
}

fn looped(node: impl Runnable<Counter, Counter> + 'static, saver: Option<Saver>) -> Graph {
    let next = |state: &Counter| if state.count < state.until { "work" } else { "end" };
    let mapping = [("work", "work"), ("end", entelix_graph::END)];
    // A graph needs a finish point; the mapping ends the run before it.
    let graph = StateGraph::new().add_node("work", node).add_node("end", add_one()).add_finish_point("end");
    let graph = graph.set_entry_point("work");
    let graph = graph.add_conditional_edges("work", move |state| next(state).to_owned(), mapping);
    let graph = graph.with_recursion_limit(10_000);
    let graph = saver.into_iter().fold(graph, |graph, saver| graph.with_checkpointer(saver));
    Arc::new(graph.compile().expect("a graph"))
}

/// One branch a node, each with a state that has nothing but its number.
fn fanned(targets: Vec<String>, size: u64, result: fn(&[u64]) -> u64) -> Graph {
    let branch = || {
        RunnableLambda::new(|mut state: Counter, _| async move {
            state.items.value.push(black_box(state.input));
            Ok(state)
        })
    };
    let start = RunnableLambda::new(|state: Counter, _| async move { Ok(state) });
    let graph = StateGraph::new().add_node("start", start).add_node("join", collect(result));
    let graph = targets.iter().fold(graph, |graph, name| graph.add_node(name.clone(), branch()));
    let all = targets.clone();
    let send = move |_: &Counter| -> Vec<(String, Counter)> {
        let to = |at: u64| targets[at as usize % targets.len()].clone();
        (0..size).map(|at| (to(at), Counter { input: at, ..begun(0) })).collect()
    };
    let graph =
        graph.set_entry_point("start").add_finish_point("join").add_send_edges("start", all, send, "join");
    Arc::new(graph.compile().expect("a graph"))
}

fn asking(saver: Saver) -> Graph {
    let ask = RunnableLambda::new(|mut state: Counter, _| async move {
        let Some(answer) = state.answer else { return interrupt(serde_json::json!("how many more?")) };
        state.count += answer;
        Ok(state)
    });
    let graph =
        StateGraph::new().add_node("before", add_one()).add_node("ask", ask).add_node("after", add_one());
    let graph = graph.add_edge("before", "ask").add_edge("ask", "after");
    let graph = graph.set_entry_point("before").add_finish_point("after").with_checkpointer(saver);
    Arc::new(graph.compile().expect("a graph"))
}

async fn run(graph: Graph, until: u64) -> u64 {
    graph.invoke(begun(until), &ExecutionContext::new()).await.expect("the run ends").count
}

/// A saver of its own for each run, and so a graph, which has one node.
async fn stored(steps: u64) -> u64 {
    let saver = Saver::default();
    let graph = looped(add_one(), Some(Arc::clone(&saver)));
    let context = ExecutionContext::new().with_thread_id("thread");
    let state = graph.invoke(begun(steps), &context).await.expect("the run ends");
    assert_eq!(saver.total_checkpoints() as u64, steps);
    state.count
}

async fn streamed(graph: Graph) -> u64 {
    let context = ExecutionContext::new();
    let events = graph.stream(begun(0), StreamMode::Updates, &context).await.expect("a stream");
    let is_update = |event: &_| matches!(event, Ok(StreamChunk::Update { .. }));
    events.filter(|event| std::future::ready(is_update(event))).count().await as u64
}

async fn ask(graph: &Graph, context: &ExecutionContext) {
    let asked = graph.invoke(begun(0), context).await;
    assert!(matches!(asked, Err(Error::Interrupted { .. })));
}

async fn asked_and_answered() -> u64 {
    let saver = Saver::default();
    let graph = asking(Arc::clone(&saver));
    let context = ExecutionContext::new().with_thread_id("thread");
    ask(&graph, &context).await;
    let key = ThreadKey::from_ctx(&context).expect("a key");
    let mut state = saver.get_latest(&key).await.expect("a store").expect("it waits").state;
    state.answer = Some(ANSWER);
    graph.resume_with(Command::Update(state), &context).await.expect("the run ends").count
}

async fn all_wait(graph: Graph, saver: Saver, runs: u64) -> u64 {
    for _ in 0..runs {
        ask(&graph, &ExecutionContext::new().with_thread_id(thread_name())).await;
    }
    saver.thread_count() as u64
}

async fn prepare(case: Case, _: &Path) -> Prepared {
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, 0)),
        Case::Loop(steps) => repeat(looped(add_one(), None), move |graph| run(graph, steps)),
        Case::FanOut(size) => {
            let targets = (0..size).map(|at| format!("branch_{at}")).collect();
            repeat(fanned(targets, size, |items| items.len() as u64), |graph| run(graph, 0))
        }
        Case::Dispatch(size) => {
            repeat(fanned(vec!["count".to_owned()], size, |items| items.iter().sum()), |graph| run(graph, 0))
        }
        Case::Runs(size) => repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), 0))),
        Case::Memory(steps) => work(move || stored(steps)),
        Case::Interrupt => work(asked_and_answered),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Subgraph(calls) => {
            let inner = Arc::into_inner(chain(INNER)).expect("nobody else has it");
            repeat(looped(inner, None), move |graph| run(graph, calls * INNER))
        }
        Case::Waiting(size) => {
            let saver = Saver::default();
            repeat(asking(saver.clone()), move |graph| all_wait(graph, saver.clone(), size))
        }
        Case::Sqlite(_) | Case::Growing(_) => Err("stores in memory, Postgres and Redis only"),
    }
}

fn main() {
    harness::main(prepare);
}
