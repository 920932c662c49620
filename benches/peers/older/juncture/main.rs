//! `juncture`: typed states by derive, supersteps over channel versions.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use harness::{Case, INNER, LINE, Prepared, SHORT, TEXT, at_once, repeat, thread_name, work};
use juncture_checkpoint::{MemorySaver, SqliteSaver};
use juncture_core::checkpoint::{CheckpointFilter, CheckpointSaver};
use juncture_core::command::{Command, SendTarget};
use juncture_core::config::RunnableConfig;
use juncture_core::edge::PathMap;
use juncture_core::error::JunctureError;
use juncture_core::graph::{CompiledGraph, StateGraph};
use juncture_core::node::{NodeFnCommand, NodeFnUpdate};
use juncture_core::stream::{EventEmitter, StreamEvent, StreamMode};
use juncture_derive::State;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Counter {
    count: u64,
    until: u64,
    text: String,
    #[reducer(append)]
    items: Vec<u64>,
    #[reducer(append)]
    lines: Vec<String>,
    input: u64,
}

type Graph = Arc<CompiledGraph<Counter>>;
type Saver = Arc<dyn CheckpointSaver>;
type Output = Result<CounterUpdate, JunctureError>;

fn begun(until: u64) -> Counter {
    Counter { until, text: TEXT.to_owned(), ..Counter::default() }
}

fn config() -> RunnableConfig {
    RunnableConfig { recursion_limit: 20_000, ..RunnableConfig::new() }
}

fn counted(count: u64) -> CounterUpdate {
    CounterUpdate { count: Some(black_box(count)), ..CounterUpdate::default() }
}

fn item(at: u64) -> CounterUpdate {
    CounterUpdate { items: Some(vec![black_box(at)]), ..CounterUpdate::default() }
}

/// Adds a node that makes its update at once.
fn add(
    graph: &mut StateGraph<Counter>,
    name: &str,
    run: impl Fn(&Counter) -> CounterUpdate + Send + Sync + 'static,
) {
    let node = NodeFnUpdate(move |state: &Counter| {
        let update = run(state);
        async move { Output::Ok(update) }
    });
    graph.add_node_simple(name, node).expect("a new name");
}

fn chain(size: u64) -> Graph {
    let name = |at| format!("node_{at}");
    let mut graph = StateGraph::new();
    for at in 0..size {
        add(&mut graph, &name(at), |state| counted(state.count + 1));
        if at > 0 {
            graph.add_edge(name(at - 1), name(at));
        }
    }
    graph.set_entry_point(name(0));
    graph.set_finish_point(name(size - 1));
    Arc::new(graph.compile().expect("a graph"))
}

fn next(state: &Counter) -> &str {
    if state.count < state.until { "again" } else { "done" }
}

fn add_loop(graph: &mut StateGraph<Counter>) {
    graph.add_conditional_edges("work", Arc::new(next), PathMap::from(&[("again", "work"), ("done", "end")]));
    add(graph, "end", |_| CounterUpdate::default());
    graph.set_entry_point("work");
    graph.set_finish_point("end");
}

fn looped() -> StateGraph<Counter> {
    let mut graph = StateGraph::new();
    add(&mut graph, "work", |state| counted(state.count + 1));
    add_loop(&mut graph);
    graph
}

fn growing() -> StateGraph<Counter> {
    let mut graph = StateGraph::new();
    add(&mut graph, "work", |state| CounterUpdate {
        lines: Some(vec!["x".repeat(LINE)]),
        ..counted(state.count + 1)
    });
    add_loop(&mut graph);
    graph
}

fn nested() -> Graph {
    let mut graph = StateGraph::new();
    let inner = |state: &Counter| Counter { count: state.count, ..begun(0) };
    graph
        .add_subgraph_explicit("work", chain(INNER), inner, |child| counted(child.count))
        .expect("a new name");
    add_loop(&mut graph);
    Arc::new(graph.compile().expect("a graph"))
}

fn fan_out(size: u64) -> Graph {
    let mut graph = StateGraph::new();
    add(&mut graph, "start", |_| CounterUpdate::default());
    add(&mut graph, "join", |state| counted(state.count + state.items.len() as u64));
    for at in 0..size {
        let name = format!("branch_{at}");
        add(&mut graph, &name, move |_| item(at));
        graph.add_edge("start", &name);
        graph.add_edge(&name, "join");
    }
    graph.set_entry_point("start");
    graph.set_finish_point("join");
    Arc::new(graph.compile().expect("a graph"))
}

fn dispatching(size: u64) -> Graph {
    let mut graph = StateGraph::new();
    let target = |input| {
        let state = serde_json::to_value(Counter { input, ..Counter::default() }).expect("JSON");
        SendTarget { node: "count".to_owned(), state, timeout: None }
    };
    let send = NodeFnCommand(move |_: &Counter| {
        let targets = (0..size).map(target).collect();
        async move { Ok::<_, JunctureError>(Command::update_and_send(CounterUpdate::default(), targets)) }
    });
    graph.add_node_simple("start", send).expect("a new name");
    add(&mut graph, "count", |state| item(state.input));
    add(&mut graph, "add_up", |state| counted(state.count + state.items.iter().sum::<u64>()));
    graph.add_edge("start", "count");
    graph.add_edge("count", "add_up");
    graph.set_entry_point("start");
    graph.set_finish_point("add_up");
    Arc::new(graph.compile().expect("a graph"))
}

async fn run(graph: Graph, until: u64) -> u64 {
    graph.invoke_async(begun(until), &config()).await.expect("the run ends").value.count
}

async fn streamed(graph: Graph) -> u64 {
    let events = graph.stream(begun(0), &config(), StreamMode::Updates).await.expect("a stream").stream;
    let is_update = |event: &_| matches!(event, Ok(StreamEvent::Updates { .. }));
    events.filter(|event| std::future::ready(is_update(event))).count().await as u64
}

/// A run stores something only when the caller gives it an emitter of events, and the id of a checkpoint,
/// which need not exist.
async fn stored(graph: Graph, steps: u64, thread: String) -> Counter {
    // No node emits an event of this mode, so that nothing has to be read.
    let (send, _receive) = mpsc::channel(1);
    let emitter = EventEmitter::new(send, StreamMode::Custom);
    let config = config().with_thread_id(thread).with_checkpoint_id("none");
    graph.execute_with_emitter(begun(steps), &config, emitter).await.expect("the run ends")
}

/// Runs once and sees that each step was stored.
async fn has_stored(saver: &Saver, graph: &Graph, steps: u64) {
    stored(graph.clone(), steps, "first".to_owned()).await;
    let filter = CheckpointFilter { limit: Some(2 * steps as usize), ..CheckpointFilter::default() };
    let kept = saver.list(&config().with_thread_id("first"), Some(filter)).await.expect("a list");
    assert!(kept.len() as u64 >= steps);
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    let path = folder.join("juncture.db");
    let sqlite = async || {
        std::fs::File::create(&path).expect("a file");
        let saver = SqliteSaver::new(&path).await.expect("a saver");
        Arc::new(saver) as Saver
    };
    let compile = |graph: StateGraph<Counter>, saver: Saver| -> Graph {
        Arc::new(graph.compile_with_checkpointer(Some(saver)).expect("a graph"))
    };
    let emitter = "stores with `execute_with_emitter` and an id made up; `invoke` and `stream` store no step";
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, 0)),
        Case::Loop(steps) => {
            repeat(Arc::new(looped().compile().expect("a graph")), move |graph| run(graph, steps))
        }
        Case::FanOut(size) => repeat(fan_out(size), |graph| run(graph, 0)),
        Case::Dispatch(size) => repeat(dispatching(size), |graph| run(graph, 0)),
        Case::Runs(size) => repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), 0))),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Subgraph(calls) => repeat(nested(), move |graph| run(graph, calls * INNER)),
        Case::Memory(steps) => {
            let saver: Saver = Arc::new(MemorySaver::new());
            has_stored(&saver, &compile(looped(), saver.clone()), steps).await;
            let memory = work(move || {
                let graph = compile(looped(), Arc::new(MemorySaver::new()));
                async move { stored(graph, steps, "thread".to_owned()).await.count }
            })?;
            Ok(memory.noted(emitter))
        }
        Case::Sqlite(steps) => {
            let saver = sqlite().await;
            let graph = compile(looped(), saver.clone());
            has_stored(&saver, &graph, steps).await;
            let stored =
                repeat(graph, move |graph| async move { stored(graph, steps, thread_name()).await.count })?;
            Ok(stored.noted(emitter))
        }
        Case::Growing(steps) => {
            let growing = repeat(compile(growing(), sqlite().await), move |graph| async move {
                stored(graph, steps, thread_name()).await.lines.len() as u64
            })?;
            Ok(growing.noted(emitter))
        }
        Case::Interrupt | Case::Waiting(_) => Err("a resumed run starts again at its first node"),
    }
}

fn main() {
    harness::main(prepare);
}
