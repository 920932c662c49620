//! `adk-graph`: supersteps over a map of JSON values.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use adk_graph::checkpoint::{Checkpointer, MemoryCheckpointer, SqliteCheckpointer};
use adk_graph::edge::{END, START};
use adk_graph::error::{GraphError, Result};
use adk_graph::graph::{CompiledGraph, StateGraph};
use adk_graph::node::{ExecutionConfig, NodeContext, NodeOutput};
use adk_graph::state::{State, StateSchema};
use adk_graph::stream::{StreamEvent, StreamMode};
use adk_graph::subgraph::SubgraphNode;
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use harness::{ANSWER, Case, INNER, LINE, Prepared, SHORT, TEXT, at_once, repeat, thread_name, work};
use serde_json::{Value, json};

type Graph = Arc<CompiledGraph>;

fn empty() -> StateGraph {
    let schema = ["count", "until", "text", "answer"]
        .into_iter()
        .fold(StateSchema::builder(), |schema, name| schema.channel(name));
    StateGraph::new(schema.list_channel("items").list_channel("lines").build())
}

fn begun(until: u64) -> State {
    let state = [("count", json!(0)), ("until", json!(until)), ("text", json!(TEXT)), ("items", json!([]))];
    state.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn config(thread: &str) -> ExecutionConfig {
    ExecutionConfig::new(thread).with_recursion_limit(20_000)
}

fn number(state: &State, channel: &str) -> u64 {
    state.get(channel).and_then(Value::as_u64).expect("a number")
}

async fn add_one(context: NodeContext) -> Result<NodeOutput> {
    Ok(NodeOutput::new().with_update("count", black_box(number(&context.state, "count")) + 1))
}

async fn add_line(context: NodeContext) -> Result<NodeOutput> {
    let output = NodeOutput::new().with_update("count", number(&context.state, "count") + 1);
    Ok(output.with_update("lines", json!(["x".repeat(LINE)])))
}

fn chained(size: u64) -> CompiledGraph {
    let name = |at| format!("node_{at}");
    let nodes = (0..size).fold(empty(), |graph, at| graph.add_node_fn(&name(at), add_one));
    let graph = (1..size).fold(nodes, |graph, at| graph.add_edge(&name(at - 1), &name(at)));
    let graph = graph.add_edge(START, &name(0)).add_edge(&name(size - 1), END);
    graph.compile().expect("a graph").with_recursion_limit(20_000)
}

fn chain(size: u64) -> Graph {
    Arc::new(chained(size))
}

fn close_loop(graph: StateGraph) -> CompiledGraph {
    let next = |state: &State| {
        (if number(state, "count") < number(state, "until") { "again" } else { "done" }).to_owned()
    };
    let graph =
        graph.add_edge(START, "work").add_conditional_edges("work", next, [("again", "work"), ("done", END)]);
    graph.compile().expect("a graph").with_recursion_limit(20_000)
}

fn looped() -> CompiledGraph {
    close_loop(empty().add_node_fn("work", add_one))
}

fn nested() -> Graph {
    let inner =
        SubgraphNode::new("work", chain(INNER)).with_input("count", "count").with_output("count", "count");
    Arc::new(close_loop(empty().add_node(inner)))
}

fn fan_out(size: u64) -> Graph {
    let join = |context: NodeContext| async move {
        let items = context.get("items").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        Ok(NodeOutput::new().with_update("count", number(&context.state, "count") + items))
    };
    let graph = (0..size).fold(empty().add_node_fn("join", join), |graph, at| {
        let name = format!("branch_{at}");
        let branch = move |_: NodeContext| async move {
            Ok(NodeOutput::new().with_update("items", json!([black_box(at)])))
        };
        graph.add_node_fn(&name, branch).add_edge(START, &name).add_edge(&name, "join")
    });
    Arc::new(graph.add_edge("join", END).compile().expect("a graph"))
}

/// A node that calls another one by its name; the graph has no edge to that one.
fn dispatching(size: u64) -> Graph {
    let split = move |context: NodeContext| async move {
        let context = &context;
        let calls = (0..size).map(|at| context.run_node("count", json!({ "input": at })));
        let mut items = Vec::new();
        for output in try_join_all(calls).await? {
            items.extend(output["items"].as_array().cloned().unwrap_or_default());
        }
        Ok(NodeOutput::new().with_update("items", Value::Array(items)))
    };
    let count = |context: NodeContext| async move {
        Ok(NodeOutput::new().with_update("items", json!([black_box(number(&context.state, "input"))])))
    };
    let add_up = |context: NodeContext| async move {
        let items = context.get("items").and_then(Value::as_array).expect("a list");
        let sum: u64 = items.iter().filter_map(Value::as_u64).sum();
        Ok(NodeOutput::new().with_update("count", number(&context.state, "count") + sum))
    };
    let graph = empty().add_node_fn("split", split).add_node_fn("count", count).add_node_fn("add_up", add_up);
    let graph = graph.add_edge(START, "split").add_edge("split", "add_up").add_edge("add_up", END);
    Arc::new(graph.compile().expect("a graph"))
}

fn asking() -> Graph {
    let ask = |context: NodeContext| async move {
        let Some(answer) = context.get("answer").and_then(Value::as_u64) else {
            return Ok(NodeOutput::interrupt("how many more?"));
        };
        Ok(NodeOutput::new().with_update("count", number(&context.state, "count") + answer))
    };
    let graph = empty().add_node_fn("before", add_one).add_node_fn("ask", ask).add_node_fn("after", add_one);
    let graph = graph
        .add_edge(START, "before")
        .add_edge("before", "ask")
        .add_edge("ask", "after")
        .add_edge("after", END);
    Arc::new(graph.compile().expect("a graph").with_checkpointer(MemoryCheckpointer::new()))
}

async fn run(graph: Graph, until: u64) -> u64 {
    number(&graph.invoke(begun(until), config(&thread_name())).await.expect("the run ends"), "count")
}

/// Runs once and sees that each step was stored.
async fn has_stored(saver: &dyn Checkpointer, graph: &CompiledGraph, steps: u64) {
    graph.invoke(begun(steps), config("first")).await.expect("the run ends");
    assert!(saver.list("first").await.expect("a list").len() as u64 >= steps);
}

async fn growing(graph: Graph, steps: u64) -> u64 {
    let state = graph.invoke(begun(steps), config(&thread_name())).await.expect("the run ends");
    state.get("lines").and_then(Value::as_array).map_or(0, Vec::len) as u64
}

async fn wait(graph: &Graph, thread: &str) {
    let asked = graph.invoke(begun(0), config(thread)).await;
    assert!(matches!(asked, Err(GraphError::Interrupted(_))));
}

async fn asked_and_answered(graph: Graph) -> u64 {
    let thread = thread_name();
    wait(&graph, &thread).await;
    graph.update_state(&thread, [("answer".to_owned(), ANSWER.into())]).await.expect("a store");
    number(&graph.invoke(State::new(), config(&thread)).await.expect("the run ends"), "count")
}

async fn all_wait(graph: Graph, runs: u64) -> u64 {
    for _ in 0..runs {
        wait(&graph, &thread_name()).await;
    }
    runs
}

async fn streamed(graph: Graph) -> u64 {
    let events = graph.stream(begun(0), config("thread"), StreamMode::Updates);
    let is_step = |event: &_| matches!(event, Ok(StreamEvent::StepComplete { .. }));
    events.filter(|event| std::future::ready(is_step(event))).count().await as u64
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    let url = format!("sqlite://{}?mode=rwc", folder.join("adk.db").display());
    let sqlite = async || Arc::new(SqliteCheckpointer::new(&url).await.expect("a saver"));
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, 0)),
        Case::Loop(steps) => repeat(Arc::new(looped()), move |graph| run(graph, steps)),
        Case::FanOut(size) => repeat(fan_out(size), |graph| run(graph, 0)),
        Case::Runs(size) => repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), 0))),
        Case::Memory(steps) => {
            let saver = Arc::new(MemoryCheckpointer::new());
            has_stored(&*saver, &looped().with_checkpointer_arc(saver.clone()), steps).await;
            work(move || {
                let graph = looped().with_checkpointer(MemoryCheckpointer::new());
                run(Arc::new(graph), steps)
            })
        }
        Case::Sqlite(steps) => {
            let saver = sqlite().await;
            let graph = Arc::new(looped().with_checkpointer_arc(saver.clone()));
            has_stored(&*saver, &graph, steps).await;
            repeat(graph, move |graph| run(graph, steps))
        }
        Case::Growing(steps) => {
            let graph =
                close_loop(empty().add_node_fn("work", add_line)).with_checkpointer_arc(sqlite().await);
            repeat(Arc::new(graph), move |graph| growing(graph, steps))
        }
        Case::Interrupt => {
            Ok(repeat(asking(), asked_and_answered)?.noted("the answer is an edit of the state"))
        }
        Case::Stream(size) => {
            Ok(repeat(chain(size), streamed)?
                .noted("an event names the nodes that ran, without their updates"))
        }
        Case::Subgraph(calls) => repeat(nested(), move |graph| run(graph, calls * INNER)),
        Case::Waiting(size) => repeat(asking(), move |graph| all_wait(graph, size)),
        Case::Dispatch(size) => {
            Ok(repeat(dispatching(size), |graph| run(graph, 0))?.noted("the node calls the other and waits"))
        }
    }
}

fn main() {
    harness::main(prepare);
}
