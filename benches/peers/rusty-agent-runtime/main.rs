//! `rusty-agent-runtime`: supersteps over a map of JSON values, each recorded in a journal.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use harness::{ANSWER, Case, INNER, Prepared, SHORT, TEXT, at_once, repeat, thread_name};
use rusty_agent_runtime::prelude::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn number(state: &State, channel: &str) -> u64 {
    state.get(channel).and_then(Value::as_u64).expect("a number")
}

static SPEC: LazyLock<StateSpec> = LazyLock::new(|| {
    let channels = ["count", "until", "text", "input"].into_iter();
    let spec = channels.fold(StateSpec::new(), |spec, name| spec.channel(name, Reducer::Overwrite));
    spec.channel("items", Reducer::Append)
});

fn begun(until: u64) -> State {
    let state = json!({ "count": 0, "until": until, "text": TEXT, "items": [] });
    State::from_value(state).expect("an object")
}

async fn add_one(context: NodeContext) -> Result<NodeOutput> {
    Ok(NodeOutput::update("count", (black_box(number(context.state(), "count")) + 1).into()))
}

fn compile(build: impl FnOnce(&mut GraphBuilder)) -> Arc<Graph> {
    let mut graph = GraphBuilder::new();
    build(&mut graph);
    Arc::new(graph.compile().expect("a graph"))
}

fn chain(size: u64) -> Arc<Graph> {
    let name = |at| format!("node_{at}");
    compile(|graph| {
        for at in 0..size {
            graph.add_node(name(at), add_one);
            if at > 0 {
                graph.add_edge(name(at - 1), name(at));
            }
        }
        graph.set_entry_point(name(0));
    })
}

fn looped<F: Future<Output = Result<NodeOutput>> + std::marker::Send + 'static>(
    work: impl Fn(NodeContext) -> F + std::marker::Send + Sync + 'static,
) -> Arc<Graph> {
    compile(|graph| {
        graph.add_node("work", work).set_entry_point("work");
        graph.add_conditional_edges("work", |state| async move {
            let goes_on = number(&state, "count") < number(&state, "until");
            Ok(if goes_on { Route::Node("work".to_owned()) } else { Route::End })
        });
    })
}

/// A node that runs a graph of its own.
fn nested() -> Arc<Graph> {
    let inner = chain(INNER);
    looped(move |context: NodeContext| {
        let inner = inner.clone();
        async move {
            let config = RunConfig::new("inner");
            let ended = Executor::new().run(&inner, &SPEC, context.state().clone(), config).await?;
            Ok(NodeOutput::update("count", number(ended.state(), "count").into()))
        }
    })
}

async fn nothing(_: NodeContext) -> Result<NodeOutput> {
    Ok(NodeOutput::empty())
}

fn add_join(graph: &mut GraphBuilder, result: fn(&[Value]) -> u64) {
    graph.add_node("join", move |context: NodeContext| async move {
        let items = context.state().get("items").and_then(Value::as_array).expect("a list");
        Ok(NodeOutput::update("count", (number(context.state(), "count") + result(items)).into()))
    });
}

fn fan_out(size: u64) -> Arc<Graph> {
    compile(|graph| {
        graph.add_node("start", nothing).set_entry_point("start");
        add_join(graph, |items| items.len() as u64);
        for at in 0..size {
            let name = format!("branch_{at}");
            let branch =
                move |_: NodeContext| async move { Ok(NodeOutput::update("items", black_box(at).into())) };
            graph.add_node(name.clone(), branch).add_edge("start", name.clone()).add_edge(name, "join");
        }
    })
}

fn dispatching(size: u64) -> Arc<Graph> {
    compile(|graph| {
        graph.add_node("start", nothing).set_entry_point("start");
        add_join(graph, |items| items.iter().filter_map(Value::as_u64).sum());
        let count = |context: NodeContext| async move {
            Ok(NodeOutput::update("items", black_box(number(context.state(), "input")).into()))
        };
        graph.add_node("count", count).add_edge("count", "join");
        let send = move || (0..size).map(|at| Send::new("count", json!({ "input": at }))).collect();
        graph.add_conditional_edges("start", move |_| async move { Ok(Route::Send(send())) });
    })
}

fn asking() -> Arc<Graph> {
    compile(|graph| {
        let ask = |context: NodeContext| async move {
            let Some(answer) = context.resume_value().and_then(Value::as_u64) else {
                return Err(context.interrupt(json!("how many more?")));
            };
            Ok(NodeOutput::update("count", (number(context.state(), "count") + answer).into()))
        };
        graph.add_node("before", add_one).add_node("ask", ask).add_node("after", add_one);
        graph.add_edge("before", "ask").add_edge("ask", "after").set_entry_point("before");
    })
}

async fn count(executor: &Executor, graph: &Graph, until: u64, config: RunConfig) -> u64 {
    let ended =
        executor.run(graph, &SPEC, begun(until), config.with_max_steps(20_000)).await.expect("the run ends");
    assert!(!ended.is_interrupted());
    number(ended.state(), "count")
}

async fn run(graph: Arc<Graph>, until: u64) -> u64 {
    count(&Executor::new(), &graph, until, RunConfig::new("thread")).await
}

async fn stored(graph: Arc<Graph>, steps: u64, saver: Arc<InMemoryCheckpointer>) -> u64 {
    count(&Executor::with_checkpointer(saver), &graph, steps, RunConfig::new("thread")).await
}

/// Runs once and sees that each step was stored.
async fn has_stored(graph: &Arc<Graph>, steps: u64) {
    let saver = Arc::new(InMemoryCheckpointer::new());
    stored(graph.clone(), steps, saver.clone()).await;
    assert!(saver.list("thread").await.expect("a list").len() as u64 >= steps);
}

async fn wait(executor: &Executor, graph: &Graph, thread: &str) {
    let asked = executor.run(graph, &SPEC, begun(0), RunConfig::new(thread)).await.expect("it asks");
    assert!(asked.is_interrupted());
}

async fn asked_and_answered(graph: Arc<Graph>) -> u64 {
    let executor = Executor::with_checkpointer(Arc::new(InMemoryCheckpointer::new()));
    wait(&executor, &graph, "thread").await;
    count(&executor, &graph, 0, RunConfig::new("thread").with_resume(ANSWER.into())).await
}

async fn all_wait(executor: Arc<Executor>, graph: Arc<Graph>, runs: u64) -> u64 {
    for _ in 0..runs {
        wait(&executor, &graph, &thread_name()).await;
    }
    runs
}

async fn streamed(graph: Arc<Graph>) -> u64 {
    let (send, mut receive) = mpsc::channel(64);
    let executor = Executor::new();
    let run = count(&executor, &graph, 0, RunConfig::new("thread").with_event_tx(send));
    let read = async {
        let mut ends = 0;
        while let Some(event) = receive.recv().await {
            ends += u64::from(matches!(event, GraphEvent::NodeEnd { .. }));
        }
        ends
    };
    tokio::join!(run, read).1
}

async fn prepare(case: Case, _: &Path) -> Prepared {
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, 0)),
        Case::Loop(steps) => repeat(looped(add_one), move |graph| run(graph, steps)),
        Case::FanOut(size) => repeat(fan_out(size), |graph| run(graph, 0)),
        Case::Dispatch(size) => repeat(dispatching(size), |graph| run(graph, 0)),
        Case::Runs(size) => repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), 0))),
        Case::Memory(steps) => {
            has_stored(&looped(add_one), steps).await;
            repeat(looped(add_one), move |graph| stored(graph, steps, Arc::default()))
        }
        Case::Interrupt => repeat(asking(), asked_and_answered),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Waiting(size) => {
            let executor = Arc::new(Executor::with_checkpointer(Arc::new(InMemoryCheckpointer::new())));
            repeat((executor, asking()), move |(executor, graph)| all_wait(executor, graph, size))
        }
        Case::Sqlite(_) | Case::Growing(_) => Err("stores in memory, JSON files and Postgres only"),
        Case::Subgraph(calls) => Ok(repeat(nested(), move |graph| run(graph, calls * INNER))?
            .noted("a node of ours runs the inner graph")),
    }
}

fn main() {
    harness::main(prepare);
}
