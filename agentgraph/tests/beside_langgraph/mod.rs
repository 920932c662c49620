//! Replays random LangGraph graphs on the engine.
//!
//! `graphs.py` generates the graphs, runs them in LangGraph and writes one line per graph ([`record`]). This
//! module builds the same graph over the same channels ([`behaviour`]) and makes the same calls on a thread.
//! The engine must reproduce everything in the line: the end of each call, the open interrupts, the half-full
//! joins, and the values and the frontier at every superstep.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod behaviour;
pub mod record;

use std::sync::Arc;

use agentgraph::checkpoint::Source;
use agentgraph::json_state::{JsonState, JsonUpdate};
use agentgraph::prelude::*;
use agentgraph::run::StuckJoin;
use agentgraph::{Code, CompileError, StopReason};

use behaviour::{answer, canonical, choose, fnv, routed, schema, seen, update, word};
use record::{Act, End, NodeShape, Options, Record};

/// The superstep limit of a call, equal to `LIMIT` in `graphs.py`.
const LIMIT: u64 = 12;

/// The input of a dispatch, if the task has one.
struct Arg(Option<u64>);

impl FromTask<JsonState> for Arg {
    type Error = std::convert::Infallible;
    fn from_task(task: &Task<'_, JsonState>) -> Result<Self, Self::Error> {
        Ok(Arg(Input::<u64>::from_task(task).ok().map(|Input(arg)| arg)))
    }
}

async fn act(
    shape: Arc<NodeShape>,
    ctx: Ctx,
    state: Snapshot<JsonState>,
    Arg(arg): Arg,
) -> Result<Command<JsonState>> {
    let word = word(ctx.node(), arg);
    let answer = if shape.asks { Some(ctx.interrupt::<u64>(&word)?) } else { None };
    let seen = seen(ctx.node(), arg, answer, &state);
    let options = shape.command.as_deref().unwrap_or_default();
    Ok(Command::update(update(&shape, seen, word)).also_goto(choose(options, seen)))
}

fn node(shape: NodeShape) -> agentgraph::node::Node<JsonState> {
    let defers = shape.defers;
    let shape = Arc::new(shape);
    let run = move |ctx: Ctx, state: Snapshot<JsonState>, arg: Arg| act(Arc::clone(&shape), ctx, state, arg);
    if defers { run.defer() } else { run.into_node() }
}

fn build(record: &Record) -> Result<CompiledGraph<JsonState>, CompileError> {
    let names = (0..).zip(&record.nodes).map(|(at, _): (usize, _)| format!("n{at}"));
    let names: Vec<String> = names.chain([END.to_owned()]).collect();
    let nodes = names.iter().zip(&record.nodes);
    let graph = nodes.fold(StateGraph::with_schema(schema()), |graph, (name, shape)| {
        graph.node(name.clone(), node(shape.clone()))
    });
    let graph = record.edges.iter().cloned().fold(graph, |graph, (from, to)| graph.edge(from, to));
    let graph = record.joins.iter().cloned().fold(graph, |graph, (from, to)| graph.edge(from, to));
    let routers = record.routers.iter().cloned().enumerate();
    let graph = routers.fold(graph, |graph, (slot, (from, options)): (usize, (String, Options))| {
        graph.branch(from, move |state: &JsonState| routed(slot, &options, state), names.clone())
    });
    Ok(graph.compile()?.checkpointer(MemorySaver::new()))
}

/// Replays a record. Returns the first difference between the engine and the record, if there is one.
pub async fn find_difference(record: &Record) -> Option<String> {
    let graph = match build(record) {
        Ok(graph) => graph,
        Err(error) => return Some(format!("it does not compile: {error}")),
    };
    for (at, act) in record.acts.iter().enumerate() {
        let end = run_act(&graph, record, act).await;
        if end != Ok(act.end.clone()) {
            return Some(format!("call {at} ends with {end:?}, in LangGraph with {:?}", act.end));
        }
    }
    let steps = steps(&graph).await;
    let both = steps.iter().zip(&record.steps).enumerate();
    if let Some((at, (here, there))) = both.into_iter().find(|(_, (here, there))| here != there) {
        return Some(format!("checkpoint {at} is {here:?}, in LangGraph {there:?}"));
    }
    if steps.len() != record.steps.len() {
        return Some(format!("there are {} checkpoints, in LangGraph {}", steps.len(), record.steps.len()));
    }
    None
}

/// Makes the call of an act and returns its end.
async fn run_act(graph: &CompiledGraph<JsonState>, record: &Record, act: &Act) -> Result<End, String> {
    let run = match (act.input, &act.answers) {
        (Some(input), None) => graph.invoke(JsonUpdate::new().set("bag", input)),
        (None, Some(words)) => {
            let state = graph.state("t").await.map_err(|error| error.to_string())?;
            let open = state.map(|state| state.interrupts).unwrap_or_default();
            let asked = open.iter().filter_map(|one| Some((one.id?, one.value.as_str()?)));
            let asked = asked.filter(|(_, word)| words.iter().any(|answered| answered == word));
            graph.resume_many(asked.map(|(id, word)| (id, answer(word))).collect::<Vec<_>>())
        }
        _ => return Err("an act has either an input or answers".to_owned()),
    };
    match run.thread("t").max_supersteps(LIMIT).await {
        Ok(Outcome::Finished { stuck, .. }) => Ok(End::Finished { stuck: half_full(record, &stuck) }),
        Ok(Outcome::Interrupted { interrupts, .. }) => {
            let words = interrupts.iter().filter_map(|one| one.value.as_str().map(str::to_owned));
            let mut asks: Vec<String> = words.collect();
            asks.sort();
            Ok(End::Asks { asks })
        }
        Ok(Outcome::Stopped { reason: StopReason::Limit, .. }) => Ok(End::Limit),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) if error.code() == Code::ConcurrentUpdate => Ok(End::Conflict),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the index of each stuck join in the record, with its sorted arrived sources.
fn half_full(record: &Record, stuck: &[StuckJoin]) -> Vec<(usize, Vec<String>)> {
    let is = |join: &(Vec<String>, String), stuck: &StuckJoin| {
        let sources = stuck.arrived.iter().chain(&stuck.missing);
        let mut sources: Vec<&String> = sources.collect();
        sources.sort();
        join.1 == stuck.to && join.0.iter().collect::<Vec<_>>() == sources
    };
    let joins = record.joins.iter().enumerate();
    let found = joins.filter_map(|(at, join)| {
        let mut arrived = stuck.iter().find(|stuck| is(join, stuck))?.arrived.clone();
        arrived.sort();
        Some((at, arrived))
    });
    found.collect()
}

/// Returns the sorted frontier and the hash of the values of each input and superstep checkpoint, oldest
/// first.
async fn steps(graph: &CompiledGraph<JsonState>) -> Vec<(String, String)> {
    let history = graph.history("t").await.unwrap_or_default();
    let of_steps = history.into_iter().filter(|one| matches!(one.source, Source::Input | Source::Loop));
    let steps = of_steps.map(|one| {
        let mut next = one.next;
        next.sort();
        (next.join(" "), format!("{:016x}", fnv(&canonical(&one.values))))
    });
    let mut steps: Vec<_> = steps.collect();
    steps.reverse();
    steps
}
