//! The crate `langgraph`, a port of LangGraph: channels of JSON values, supersteps.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use harness::{ANSWER, Case, INNER, LINE, Prepared, SHORT, TEXT, at_once, repeat, thread_name, work};
use langgraph::checkpoint::{BaseCheckpointSaver, InMemorySaver};
use langgraph::langgraph_state;
use langgraph::prelude::*;
use langgraph::sqlite::SqliteSaver;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

#[langgraph_state]
struct Counter {
    count: u64,
    until: u64,
    text: String,
    #[channel(reducer = "append")]
    items: Vec<u64>,
    #[channel(reducer = "append")]
    lines: Vec<String>,
}

fn append(list: &JsonValue, more: &JsonValue) -> JsonValue {
    let items = |list: &JsonValue| list.as_array().cloned().unwrap_or_default();
    JsonValue::Array([items(list), items(more)].concat())
}

type Output = Result<JsonValue, RunnableError>;
type Saver = Arc<dyn BaseCheckpointSaver>;

fn number(state: &JsonValue, channel: &str) -> u64 {
    state[channel].as_u64().expect("a number")
}

fn begun(until: u64) -> JsonValue {
    json!({ "count": 0, "until": until, "text": TEXT, "items": [], "lines": [] })
}

async fn add_one(state: JsonValue, _: RunnableConfig) -> Output {
    Ok(json!({ "count": black_box(number(&state, "count")) + 1 }))
}

/// A route sees what its node returns and not the state, so the node of a loop also returns where it ends.
async fn add_one_in_loop(state: JsonValue, _: RunnableConfig) -> Output {
    Ok(json!({ "count": black_box(number(&state, "count")) + 1, "until": state["until"] }))
}

async fn add_line(state: JsonValue, _: RunnableConfig) -> Output {
    let count = number(&state, "count") + 1;
    Ok(json!({ "count": count, "until": state["until"], "lines": ["x".repeat(LINE)] }))
}

fn compile(
    saver: Option<Saver>,
    build: impl FnOnce(&mut StateGraph) -> Result<(), GraphError>,
) -> CompiledStateGraph {
    let mut graph = StateGraph::new(Counter::create_channels());
    build(&mut graph).expect("a graph");
    let builder = graph.compile_builder().recursion_limit(20_000);
    saver.into_iter().fold(builder, |builder, saver| builder.checkpointer(saver)).build().expect("a graph")
}

fn chain(size: u64) -> CompiledStateGraph {
    let name = |at| format!("node_{at}");
    compile(None, |graph| {
        for at in 0..size {
            graph.add_node(name(at), add_one)?;
            graph.add_edge(if at == 0 { START.to_owned() } else { name(at - 1) }, name(at))?;
        }
        graph.add_edge(name(size - 1), END).map(drop)
    })
}

fn looped(node: impl IntoNodeFunction, saver: Option<Saver>) -> CompiledStateGraph {
    let next = |state: &JsonValue| {
        (if number(state, "count") < number(state, "until") { "work" } else { END }).to_owned()
    };
    compile(saver, |graph| {
        graph.add_node("work", node)?.add_edge(START, "work")?;
        graph.add_conditional_edges("work", RoutingFn(next), None).map(drop)
    })
}

fn fan_out(size: u64) -> CompiledStateGraph {
    compile(None, |graph| {
        let join = |state: JsonValue, _: RunnableConfig| async move {
            let items = state["items"].as_array().map_or(0, Vec::len) as u64;
            Output::Ok(json!({ "count": number(&state, "count") + items }))
        };
        graph.add_node("join", join)?;
        let names: Vec<String> = (0..size).map(|at| format!("branch_{at}")).collect();
        for (at, name) in names.iter().enumerate() {
            let branch = move |_: JsonValue, _: RunnableConfig| async move {
                Output::Ok(json!({ "items": [black_box(at)] }))
            };
            graph.add_node(name, branch)?.add_edge(START, name)?;
        }
        graph.add_join_edge(names, "join")?.add_edge("join", END).map(drop)
    })
}

fn asking(saver: Saver) -> CompiledStateGraph {
    let ask = |state: JsonValue, _: RunnableConfig| async move {
        let answer = interrupt(json!("how many more?")).map_err(|asked| RunnableError::Interrupt(asked.0))?;
        Output::Ok(json!({ "count": number(&state, "count") + answer.as_u64().expect("a number") }))
    };
    compile(Some(saver), |graph| {
        graph.add_node("before", add_one)?.add_node("ask", ask)?.add_node("after", add_one)?;
        graph.add_edge(START, "before")?.add_edge("before", "ask")?;
        graph.add_edge("ask", "after")?.add_edge("after", END).map(drop)
    })
}

/// A graph of the same state in a node, which gives back its count.
fn nested() -> CompiledStateGraph {
    let child = chain(INNER);
    let call = move |state: JsonValue, _: RunnableConfig| {
        let child = child.clone();
        async move {
            let input = json!({ "count": state["count"], "until": state["until"], "text": state["text"] });
            let output = child.ainvoke(&input, &RunnableConfig::new()).await?;
            Output::Ok(json!({ "count": output["count"], "until": state["until"] }))
        }
    };
    looped(call, None)
}

fn thread(name: &str) -> RunnableConfig {
    RunnableConfig::from([("configurable".to_owned(), json!({ "thread_id": name, "checkpoint_ns": "" }))])
}

async fn run(graph: CompiledStateGraph, until: u64) -> u64 {
    number(&graph.ainvoke(&begun(until), &RunnableConfig::new()).await.expect("the run ends"), "count")
}

async fn stored(graph: CompiledStateGraph, steps: u64, name: String) -> u64 {
    let state = graph.ainvoke(&begun(steps), &thread(&name)).await.expect("the run ends");
    number(&state, "count")
}

async fn growing(graph: CompiledStateGraph, steps: u64) -> u64 {
    let state = graph.ainvoke(&begun(steps), &thread(&thread_name())).await.expect("the run ends");
    state["lines"].as_array().map_or(0, Vec::len) as u64
}

async fn wait(graph: &CompiledStateGraph, thread: &RunnableConfig) {
    let state = graph.ainvoke(&begun(0), thread).await.expect("it asks");
    // The node before the question has run, the one behind it has not.
    assert_eq!(number(&state, "count"), 1);
}

async fn asked_and_answered() -> u64 {
    let graph = asking(Arc::new(InMemorySaver::new()));
    let thread = thread("thread");
    wait(&graph, &thread).await;
    let answer = serde_json::to_value(Command::resume(ANSWER.into())).expect("JSON");
    number(&graph.ainvoke(&answer, &thread).await.expect("the run ends"), "count")
}

async fn all_wait(graph: CompiledStateGraph, runs: u64) -> u64 {
    for _ in 0..runs {
        wait(&graph, &thread(&thread_name())).await;
    }
    runs
}

async fn streamed(graph: CompiledStateGraph) -> u64 {
    let parts = graph.astream(&begun(0), &RunnableConfig::new(), vec![StreamMode::Updates]);
    parts.filter(|part| std::future::ready(part.mode == StreamMode::Updates)).count().await as u64
}

/// The saver for SQLite blocks its thread, which the runtime of one thread does not allow.
fn worker() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

async fn ended(run: JoinHandle<u64>) -> u64 {
    run.await.expect("no run panics")
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    let sqlite = async || {
        let url = format!("sqlite:{}", folder.join("langgraph.db").display());
        let saver = SqliteSaver::from_conn_string(&url).await.expect("a saver");
        saver.setup().await.expect("tables");
        Arc::new(saver)
    };
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, 0)),
        Case::Loop(steps) => repeat(looped(add_one_in_loop, None), move |graph| run(graph, steps)),
        Case::FanOut(size) => repeat(fan_out(size), |graph| run(graph, 0)),
        Case::Runs(size) => repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), 0))),
        // Runs once and sees that each step was stored.
        Case::Memory(steps) => {
            let (saver, config) = (Arc::new(InMemorySaver::new()), thread("first"));
            looped(add_one_in_loop, Some(saver.clone()))
                .ainvoke(&begun(steps), &config)
                .await
                .expect("the run ends");
            assert!(saver.list(Some(&config), None, None, None).expect("a list").len() as u64 >= steps);
            work(move || {
                let graph = looped(add_one_in_loop, Some(Arc::new(InMemorySaver::new())));
                stored(graph, steps, "thread".to_owned())
            })
        }
        Case::Sqlite(steps) => {
            let (saver, runtime) = (sqlite().await, worker());
            let graph = looped(add_one_in_loop, Some(saver.clone()));
            runtime.spawn(stored(graph.clone(), steps, "first".to_owned())).await.expect("no run panics");
            let kept = saver.alist(Some(&thread("first")), None, None, None).await.expect("a list");
            assert!(kept.len() as u64 >= steps);
            repeat(graph, move |graph| ended(runtime.spawn(stored(graph, steps, thread_name()))))
        }
        Case::Growing(steps) => {
            let runtime = worker();
            let graph = looped(add_line, Some(sqlite().await));
            repeat(graph, move |graph| ended(runtime.spawn(growing(graph, steps))))
        }
        Case::Interrupt => work(asked_and_answered),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Subgraph(calls) => repeat(nested(), move |graph| run(graph, calls * INNER)),
        Case::Waiting(size) => {
            repeat(asking(Arc::new(InMemorySaver::new())), move |graph| all_wait(graph, size))
        }
        Case::Dispatch(_) => Err("`Send` is a type that nothing runs"),
    }
}

fn main() {
    harness::main(prepare);
}
