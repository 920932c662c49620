//! Measures one graph: all entrants in turns.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentgraph::{Checkpointer, CompiledGraph, MemorySaver, SqliteSaver};
use serde::Serialize;

use super::bare::{ByHand, Petgraph};
use super::engine::{self, PassGraph};
use super::graph::Graph;
use super::{Discipline, Options, Store};
use crate::measure::median;
use crate::runtime::one_thread;
use crate::{Folder, Problem};

/// Each entrant runs as often at least.
const FEWEST_TURNS: usize = 3;
const MOST_TURNS: usize = 10_000;
/// The thread of the runs that are stored.
const THREAD: &str = "walk";
/// The memory of smaller graphs is lost in that of the process.
const MEASURABLE: usize = 10_000;

/// What one entrant cost on one graph. Times are in nanoseconds.
#[derive(Serialize, Clone, Debug)]
pub(super) struct Row {
    pub(super) nodes: usize,
    pub(super) edges: u64,
    pub(super) entrant: &'static str,
    /// In which order nodes run that do not wait for each other.
    pub(super) order: &'static str,
    /// The nodes that each run visited, as many as petgraph's walk.
    pub(super) visited: u64,
    pub(super) nodes_per_second: f64,
    pub(super) edges_per_second: f64,
    /// Supersteps; `None` where nodes are not run in steps.
    pub(super) steps_per_second: Option<f64>,
    pub(super) nanos_per_node: f64,
    /// The time against the walk by hand: the median over the turns.
    pub(super) ratio: f64,
    pub(super) run_p50: f64,
    pub(super) run_p99: f64,
    pub(super) runs: usize,
    pub(super) build: f64,
    /// What the graph keeps, by the memory of the process; `None` for less than 10,000 nodes.
    pub(super) bytes_per_node: Option<f64>,
}

type Walk = Pin<Box<dyn Future<Output = u64>>>;

struct Entrant {
    label: &'static str,
    order: &'static str,
    walk: Box<dyn Fn() -> Walk>,
    saver: Saver,
    build: Duration,
    bytes: u64,
}

impl Entrant {
    /// Builds a graph to be walked, and takes the time and the memory of that.
    fn build<G: 'static>(
        label: &'static str,
        order: &'static str,
        build: impl FnOnce() -> G,
        walk: impl Fn(Rc<G>) -> Walk + 'static,
    ) -> Self {
        let before = resident();
        let begun = Instant::now();
        let graph = Rc::new(build());
        let build = begun.elapsed();
        let bytes = resident().saturating_sub(before);
        let walk = Box::new(move || walk(Rc::clone(&graph)));
        Entrant { label, order, walk, saver: None, build, bytes }
    }
}

pub(super) fn graph(graph: &Graph, options: &Options) -> Result<Vec<Row>, Problem> {
    let runtime = one_thread();
    let text: Rc<str> = options.text().into();
    let mut entrants = vec![by_hand(graph, &text), petgraph(graph, &text)];
    let folder = Folder::create();
    for discipline in disciplines(graph, options)? {
        let saver = runtime.block_on(saver(options.store, &folder, discipline))?;
        entrants.push(of_engine(graph, discipline, &text, saver));
    }
    let turns = runtime.block_on(take_turns(&entrants, graph.visits(), options.time()));
    let levels = graph.levels();
    let rows = entrants.iter().zip(&turns).map(|(entrant, own)| row(graph, levels, entrant, own, &turns[0]));
    Ok(rows.collect())
}

/// The disciplines that were named, or all that fit.
fn disciplines(graph: &Graph, options: &Options) -> Result<Vec<Discipline>, Problem> {
    let is_cycle = graph.rounds.is_some();
    if is_cycle && options.discipline.contains(&Discipline::Pass) {
        return Err("a pass walks a graph without cycles: use another shape or discipline".into());
    }
    let all = [Discipline::Superstep, Discipline::Eager, Discipline::Pass];
    let fit = |discipline: &Discipline| match options.discipline.as_slice() {
        [] => !(is_cycle && *discipline == Discipline::Pass),
        named => named.contains(discipline),
    };
    Ok(all.into_iter().filter(fit).collect())
}

fn by_hand(graph: &Graph, text: &Rc<str>) -> Entrant {
    let text = Rc::clone(text);
    let order = "queued when their last source ends";
    Entrant::build(
        "floor: by hand",
        order,
        || ByHand::new(graph),
        move |graph| {
            let text = Rc::clone(&text);
            Box::pin(async move { graph.walk(&text).await })
        },
    )
}

fn petgraph(graph: &Graph, text: &Rc<str>) -> Entrant {
    let text = Rc::clone(text);
    Entrant::build(
        "petgraph",
        "as petgraph's `Topo` yields them",
        || Petgraph::new(graph),
        move |graph| {
            let text = Rc::clone(&text);
            Box::pin(async move { graph.walk(&text).await })
        },
    )
}

type Saver = Option<Arc<dyn Checkpointer>>;

async fn saver(store: Store, folder: &Folder, discipline: Discipline) -> Result<Saver, Problem> {
    Ok(match store {
        Store::None => None,
        Store::Memory => Some(Arc::new(MemorySaver::new())),
        Store::Sqlite => Some(Arc::new(SqliteSaver::open(folder.file(&format!("{discipline:?}.db"))).await?)),
    })
}

fn of_engine(graph: &Graph, discipline: Discipline, text: &Rc<str>, saver: Saver) -> Entrant {
    let text = Rc::clone(text);
    let thread = saver.as_ref().map(|_| THREAD);
    let kept = saver.clone();
    let entrant = match discipline {
        Discipline::Superstep | Discipline::Eager => {
            let is_eager = discipline == Discipline::Eager;
            let (label, order) = match is_eager {
                true => ("engine, eager", "started when their last source is merged"),
                false => ("engine, supersteps", "together, merged in order of declaration"),
            };
            let build = || {
                let built = engine::state_graph(graph, is_eager);
                saver.into_iter().fold(built, CompiledGraph::checkpointer)
            };
            Entrant::build(label, order, build, move |graph| {
                let text = Rc::clone(&text);
                Box::pin(async move { engine::walk(&graph, &text, thread).await })
            })
        }
        Discipline::Pass => {
            let order = "queued when their first source ends, run when the last one has";
            let build = || {
                let built = engine::pass_graph(graph);
                saver.into_iter().fold(built, PassGraph::checkpointer)
            };
            Entrant::build("engine, pass", order, build, move |graph| {
                let text = Rc::clone(&text);
                Box::pin(async move { engine::pass(&graph, &text, thread).await })
            })
        }
    };
    Entrant { saver: kept, ..entrant }
}

/// Runs all entrants in turns until the time is over; returns the nanoseconds of each run.
async fn take_turns(entrants: &[Entrant], visits: u64, time: Duration) -> Vec<Vec<f64>> {
    let mut turns = vec![Vec::new(); entrants.len()];
    let begun = Instant::now();
    // The first turn warms up and is not counted.
    for turn in 0..=MOST_TURNS {
        for (entrant, own) in entrants.iter().zip(&mut turns) {
            let walk = (entrant.walk)();
            let begun = Instant::now();
            let visited = walk.await;
            let took = begun.elapsed();
            assert_eq!(visited, visits, "{} visits other nodes", entrant.label);
            // Each run begins with an empty thread.
            if let Some(saver) = &entrant.saver {
                saver.delete_thread(THREAD).await.expect("it is there");
            }
            if turn > 0 {
                own.push(took.as_nanos() as f64);
            }
        }
        if turn >= FEWEST_TURNS && begun.elapsed() >= time {
            break;
        }
    }
    turns
}

fn row(graph: &Graph, levels: u64, entrant: &Entrant, own: &[f64], floor: &[f64]) -> Row {
    let mut sorted = own.to_vec();
    sorted.sort_by(f64::total_cmp);
    let p50 = median(sorted.clone());
    let per_second = |count: u64| count as f64 * 1e9 / p50;
    let rounds = u64::from(graph.rounds.unwrap_or(1));
    Row {
        nodes: graph.nodes(),
        edges: graph.edges,
        entrant: entrant.label,
        order: entrant.order,
        visited: graph.visits(),
        nodes_per_second: per_second(graph.visits()),
        edges_per_second: per_second(graph.edges * rounds),
        steps_per_second: (entrant.label == "engine, supersteps").then(|| per_second(levels)),
        nanos_per_node: p50 / graph.visits() as f64,
        ratio: median(own.iter().zip(floor).map(|(own, floor)| own / floor).collect()),
        run_p50: p50,
        run_p99: sorted[(sorted.len() * 99).div_ceil(100) - 1],
        runs: own.len(),
        build: entrant.build.as_nanos() as f64,
        bytes_per_node: (graph.nodes() >= MEASURABLE).then(|| entrant.bytes as f64 / graph.nodes() as f64),
    }
}

/// The bytes of this process in memory; 0 where the system does not say.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
