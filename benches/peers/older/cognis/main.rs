//! `cognis-graph`: a node returns an update and where to go next.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use cognis_core::{CognisError, Event, Runnable, RunnableConfig};
use cognis_graph::{
    Checkpointer, CompiledGraph, Goto, Graph, GraphState, InMemoryCheckpointer, NodeFn, NodeOut,
    SqliteCheckpointer, Subgraph, node_fn,
};
use futures_util::StreamExt;
use harness::{ANSWER, Case, INNER, LINE, Prepared, SHORT, TEXT, at_once, repeat, work};
use serde::{Deserialize, Serialize};

#[derive(GraphState, Serialize, Deserialize, Clone, Debug, Default)]
struct Counter {
    #[reducer(last)]
    count: u64,
    #[reducer(last)]
    until: u64,
    #[reducer(last)]
    text: String,
    #[reducer(append)]
    items: Vec<u64>,
    #[reducer(append)]
    lines: Vec<String>,
}

type Compiled = Arc<CompiledGraph<Counter>>;
type Saver = Arc<dyn Checkpointer<Counter>>;
type Out = cognis_core::Result<NodeOut<Counter>>;

fn begun(until: u64) -> Counter {
    Counter { until, text: TEXT.to_owned(), ..Counter::default() }
}

fn config() -> RunnableConfig {
    RunnableConfig::default().with_recursion_limit(20_000)
}

/// A node that makes its output at once.
fn node<F>(name: &str, run: F) -> impl cognis_graph::Node<Counter> + use<F>
where
    F: Fn(&Counter) -> NodeOut<Counter> + Send + Sync + 'static,
{
    let node: NodeFn<Counter, _> = node_fn(name, move |state: &Counter, _: &cognis_graph::NodeCtx<'_>| {
        let out = run(state);
        async move { Out::Ok(out) }
    });
    node
}

fn counted(count: u64, goto: Goto) -> NodeOut<Counter> {
    NodeOut { update: CounterUpdate { count: Some(black_box(count)), ..CounterUpdate::default() }, goto }
}

fn compile(graph: Graph<Counter>) -> Compiled {
    Arc::new(graph.compile().expect("a graph"))
}

fn chained(size: u64) -> Graph<Counter> {
    let name = |at| format!("node_{at}");
    let nodes = (0..size).fold(Graph::new(), |graph, at| {
        let goto = if at + 1 < size { Goto::node(name(at + 1)) } else { Goto::end() };
        graph.node(name(at), node(&name(at), move |state| counted(state.count + 1, goto.clone())))
    });
    nodes.start_at(name(0))
}

fn next(count: u64, until: u64) -> Goto {
    if count < until { Goto::node("work") } else { Goto::end() }
}

fn looped(saver: Option<Saver>) -> Compiled {
    let work = node("work", |state| counted(state.count + 1, next(state.count + 1, state.until)));
    let graph = Graph::new().node("work", work).start_at("work").compile().expect("a graph");
    Arc::new(saver.into_iter().fold(graph, |graph, saver| graph.with_checkpointer(saver)))
}

fn growing(saver: Saver) -> Compiled {
    let work = node("work", |state| {
        let mut out = counted(state.count + 1, next(state.count + 1, state.until));
        out.update.lines.push("x".repeat(LINE));
        out
    });
    let graph = Graph::new().node("work", work).start_at("work").compile().expect("a graph");
    Arc::new(graph.with_checkpointer(saver))
}

fn collect(result: fn(&[u64]) -> u64) -> impl cognis_graph::Node<Counter> {
    node("join", move |state| counted(state.count + result(&state.items), Goto::end()))
}

fn item(at: u64) -> NodeOut<Counter> {
    let goto = if at == 0 { Goto::node("join") } else { Goto::Halt };
    NodeOut { update: CounterUpdate { items: vec![black_box(at)], ..CounterUpdate::default() }, goto }
}

fn fan_out(size: u64) -> Compiled {
    let name = |at| format!("branch_{at}");
    let all: Vec<String> = (0..size).map(name).collect();
    let start = node("start", move |_| NodeOut::goto_only(Goto::Multiple(all.clone())));
    let graph =
        Graph::new().node("start", start).node("join", collect(|items| items.len() as u64)).start_at("start");
    compile((0..size).fold(graph, |graph, at| graph.node(name(at), node(&name(at), move |_| item(at)))))
}

fn dispatching(size: u64) -> Compiled {
    let send = move || (0..size).map(|at| ("count".to_owned(), at.into())).collect();
    let start = node("start", move |_| NodeOut::goto_only(Goto::Send(send())));
    let count = node_fn::<Counter, _, _>("count", |_: &Counter, context: &cognis_graph::NodeCtx<'_>| {
        let input = context.payload().and_then(|payload| payload.as_u64()).expect("its own number");
        async move { Out::Ok(item(input)) }
    });
    let graph = Graph::new()
        .node("start", start)
        .node("count", count)
        .node("join", collect(|items| items.iter().sum()));
    compile(graph.start_at("start"))
}

/// Two graphs over one store: a run interrupted before a node resumes in the one that does not interrupt
/// there.
fn asking(saver: &Saver) -> (Compiled, Compiled) {
    let graph = || {
        let before = node("before", |state| counted(state.count + 1, Goto::node("ask")));
        let ask = node("ask", |state| counted(state.count, Goto::node("after")));
        let after = node("after", |state| counted(state.count + 1, Goto::end()));
        let graph =
            Graph::new().node("before", before).node("ask", ask).node("after", after).start_at("before");
        graph.compile().expect("a graph").with_checkpointer(Arc::clone(saver))
    };
    (Arc::new(graph().with_interrupt_before(["ask"])), Arc::new(graph()))
}

async fn run(graph: Compiled, until: u64) -> u64 {
    graph.invoke(begun(until), config()).await.expect("the run ends").count
}

async fn lines(graph: Compiled, steps: u64) -> u64 {
    graph.invoke(begun(steps), config()).await.expect("the run ends").lines.len() as u64
}

/// Runs until it asks, and says at which step.
async fn ask(graph: &Compiled, config: RunnableConfig) -> u64 {
    match graph.invoke(begun(0), config).await {
        Err(CognisError::GraphInterrupted { step, .. }) => step,
        other => panic!("it asks, and does not end with {other:?}"),
    }
}

async fn asked_and_answered(saver: Saver, asks: Compiled, goes_on: Compiled) -> u64 {
    let config = config();
    let run = config.run_id;
    let step = ask(&asks, config).await;
    let mut state = saver.load(run, Some(step)).await.expect("a store").expect("it waits");
    state.count += ANSWER;
    goes_on.resume(run, step, state, self::config()).await.expect("the run ends").count
}

async fn all_wait(graph: Compiled, runs: u64) -> u64 {
    for _ in 0..runs {
        ask(&graph, config()).await;
    }
    runs
}

async fn streamed(graph: Compiled) -> u64 {
    let events = graph.stream_events(begun(0), config()).await.expect("a stream");
    let is_end = |event: &Event| matches!(event, Event::OnNodeEnd { .. });
    events.filter(|event| std::future::ready(is_end(event))).count().await as u64
}

/// Where a subgraph goes next is fixed, so a node behind it decides.
fn nested() -> Compiled {
    let child = chained(INNER).compile().expect("a graph");
    let update = |child: &Counter| CounterUpdate { count: Some(child.count), ..CounterUpdate::default() };
    let inner = Subgraph::new("inner", child, |state: &Counter| state.clone(), update, Goto::node("decide"));
    let decide = node("decide", |state| {
        NodeOut::goto_only(if state.count < state.until { Goto::node("inner") } else { Goto::end() })
    });
    compile(Graph::new().node("inner", inner).node("decide", decide).start_at("inner"))
}

/// Runs once and sees that each step was stored.
async fn has_stored(saver: &Saver, graph: &Compiled, steps: u64) {
    let config = config();
    let run = config.run_id;
    graph.invoke(begun(steps), config).await.expect("the run ends");
    assert!(saver.list(run).await.expect("a list").len() as u64 >= steps);
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    let url = format!("sqlite://{}?mode=rwc", folder.join("cognis.db").display());
    let sqlite = async || {
        let saver: Saver = Arc::new(SqliteCheckpointer::connect(&url).await.expect("a saver"));
        saver
    };
    let memory = || -> Saver { Arc::new(InMemoryCheckpointer::new()) };
    let by_hand = "the join is reached from one branch, since it runs once for each that leads to it";
    match case {
        Case::Chain(size) => repeat(compile(chained(size)), |graph| run(graph, 0)),
        Case::Loop(steps) => repeat(looped(None), move |graph| run(graph, steps)),
        Case::FanOut(size) => Ok(repeat(fan_out(size), |graph| run(graph, 0))?.noted(by_hand)),
        Case::Dispatch(size) => Ok(repeat(dispatching(size), |graph| run(graph, 0))?.noted(by_hand)),
        Case::Runs(size) => {
            repeat(compile(chained(SHORT)), move |graph| at_once(size, move || run(graph.clone(), 0)))
        }
        Case::Memory(steps) => {
            let saver = memory();
            has_stored(&saver, &looped(Some(saver.clone())), steps).await;
            work(move || run(looped(Some(memory())), steps))
        }
        Case::Sqlite(steps) => {
            let saver = sqlite().await;
            let graph = looped(Some(saver.clone()));
            has_stored(&saver, &graph, steps).await;
            repeat(graph, move |graph| run(graph, steps))
        }
        Case::Growing(steps) => repeat(growing(sqlite().await), move |graph| lines(graph, steps)),
        Case::Interrupt => {
            let saver = memory();
            let (asks, goes_on) = asking(&saver);
            let interrupt = repeat((saver, asks, goes_on), |(saver, asks, goes_on)| {
                asked_and_answered(saver, asks, goes_on)
            })?;
            Ok(interrupt.noted("waits before a node only; the answer is an edit of the state"))
        }
        Case::Stream(size) => repeat(compile(chained(size)), streamed),
        Case::Subgraph(calls) => repeat(nested(), move |graph| run(graph, calls * INNER)),
        Case::Waiting(size) => repeat(asking(&memory()).0, move |graph| all_wait(graph, size)),
    }
}

fn main() {
    harness::main(prepare);
}
