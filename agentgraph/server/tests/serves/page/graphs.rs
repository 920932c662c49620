//! Graphs whose runs have what the page shows of few: edits, joins, an order, tokens, subgraphs.

use agentgraph::testing::Probe;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ScriptedModel, Usage};

use super::*;
use crate::common::steps;

/// Puts a node between `search` and `write`. One of its edits is refused, and one of its rival is dropped.
async fn plan(ctx: Ctx, steps: Snapshot<Steps>) -> Result<()> {
    let edits = ctx.edits();
    if steps.text == "skip" {
        edits.skip(["search"])?;
        return Ok(());
    }
    edits.add_node("read#1", "read", "tea")?;
    edits.add_edge("search", "read#1")?;
    edits.add_edge("read#1", "write")?;
    let _refused = edits.add_edge("plan", "wrte");
    Ok(())
}

async fn rival(ctx: Ctx, steps: Snapshot<Steps>) -> Result<()> {
    if steps.text != "skip" {
        ctx.edits().add_node("read#1", "read", "milk")?;
    }
    Ok(())
}

async fn search() -> StepsUpdate {
    Steps::update().seen(["found"])
}

/// Edits its own run.
fn planning() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("plan", plan).node("rival", rival);
    let graph = graph.node("search", search.keep_output()).node("write", search);
    let graph = graph.edge(START, "plan").edge(START, "rival").edge("plan", "search").edge("search", "write");
    let read = |topic: String| {
        move || {
            let topic = topic.clone();
            async move { Steps::update().seen([topic]) }
        }
    };
    graph.template("read", read).compile().unwrap()
}

async fn pass() {}

async fn approve(ctx: Ctx) -> Result<Command<Steps>> {
    let approved: bool = ctx.interrupt("all of it?")?;
    Ok(if approved { Command::new() } else { Command::new().goto(END) })
}

/// A join that waits for a question, and is stuck if the answer is no.
fn joining() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("fast", pass).node("before", pass);
    let graph = graph.node("approve", approve.targets([END])).node("both", pass);
    let graph = graph.edge(START, "fast").edge(START, "before").edge("before", "approve");
    graph.edge(["fast", "approve"], "both").compile().unwrap()
}

async fn slow() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// An eager graph whose slow branch ends last.
fn hurrying() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("slow", slow).node("quick", pass).node("after", pass);
    let graph = graph.edge(START, "slow").edge(START, "quick").edge("quick", "after");
    graph.eager().compile().unwrap()
}

async fn fork(runs: Dep<AtomicU32>) -> Command<Steps> {
    let is_first = runs.fetch_add(1, Ordering::Relaxed) == 0;
    if is_first { Command::new().goto("left") } else { Command::new().goto("right") }
}

/// An eager graph that goes another way when it is replayed.
fn fickle() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("fork", fork.targets(["left", "right"]));
    let graph = graph.node("left", pass).node("right", pass).edge(START, "fork");
    graph.eager().dep(AtomicU32::new(0)).compile().unwrap()
}

/// Asks how many, takes no more than nine, and asks for a time that moves on.
async fn order(ctx: Ctx, hours: Dep<AtomicU32>) -> Result<StepsUpdate> {
    let copies: u64 = ctx.interrupt("How many copies?")?;
    if copies > 9 {
        return Err(ctx.refuse("nine at most"))?;
    }
    let hour = hours.fetch_add(1, Ordering::Relaxed);
    let agreed: bool = ctx.interrupt(format!("At {hour} o'clock?"))?;
    Ok(Steps::update().seen([format!("{copies} at {hour}: {agreed}")]))
}

/// Has answers voided: one that it refuses, one to a question that it does not ask again.
fn ordering() -> CompiledGraph<Steps> {
    StateGraph::new().node("order", order).edge(START, "order").dep(AtomicU32::new(0)).compile().unwrap()
}

async fn fetch(ctx: Ctx) -> Result<StepsUpdate> {
    let text: String = ctx.once("download", async { Ok("tea".to_owned()) }).await?;
    Ok(Steps::update().seen([text]))
}

/// A durable step, a question, and a node that waits for both.
fn summing() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("fetch", fetch).node("approve", approve.targets([END]));
    let graph = graph.node("sum", pass.defer()).edge(START, "fetch").edge("fetch", "approve");
    graph.edge(START, "sum").compile().unwrap()
}

async fn turn(steps: Snapshot<Steps>) -> Command<Steps> {
    let next = if steps.seen.len() < 100 { "turn" } else { END };
    Command::update(Steps::update().seen(["turned"])).goto(next)
}

/// An eager graph that turns a hundred times.
fn turning() -> CompiledGraph<Steps> {
    StateGraph::new().node("turn", turn.targets(["turn", END])).edge(START, "turn").eager().compile().unwrap()
}

async fn mail() {
    Probe::new().effect("mail");
}

/// A graph that sends a mail, inside another one.
pub(super) fn mailing() -> CompiledGraph<Steps> {
    let letters = StateGraph::new().node("mail", mail).edge(START, "mail").compile().unwrap();
    let graph = StateGraph::new().node("letters", letters).node("done", pass);
    graph.edge(START, "letters").edge("letters", "done").compile().unwrap()
}

/// An agent whose model counts tokens.
pub(super) fn billed() -> CompiledGraph<AgentState> {
    let model = ScriptedModel::from_fn(|request| {
        Reply::text(format!("**you** said {}", request.messages[0].text())).with_usage(Usage::new(1200, 80))
    });
    Agent::new(model.named("tea-1")).compile().unwrap().into_graph()
}

/// A subgraph in a subgraph.
fn deep() -> CompiledGraph<Steps> {
    let middle = StateGraph::new().node("inner", steps()).edge(START, "inner").compile().unwrap();
    let graph = StateGraph::new().node("outer", middle).node("last", pass);
    graph.edge(START, "outer").edge("outer", "last").compile().unwrap()
}

/// Two subgraphs with many nodes.
fn huge() -> CompiledGraph<Steps> {
    let mut child = StateGraph::<Steps>::new().node("n0", pass).edge(START, "n0");
    for at in 1..160 {
        child = child.node(format!("n{at}"), pass).edge(format!("n{}", at - 1), format!("n{at}"));
    }
    let child = child.compile().unwrap();
    let graph = StateGraph::new().node("left", child.clone()).node("right", child);
    graph.edge(START, "left").edge(START, "right").compile().unwrap()
}

pub(super) fn server() -> Server {
    with_all(more_graphs())
}

pub(super) fn with_all(server: Server) -> Server {
    server
        .graph("plan", planning())
        .graph("join", joining())
        .graph("eager", hurrying())
        .graph("fickle", fickle())
        .graph("turning", turning())
        .graph("order", ordering())
        .graph("sum", summing())
        .graph_without_schema("billed", billed())
        .graph("deeper", deep())
        .graph("huge", huge())
        .price("tea-1", 2.5, 10.0)
}
