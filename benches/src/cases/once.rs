//! Durable steps in one node, each of whose results is stored before the next step begins.

use std::rc::Rc;

use agentgraph::prelude::*;

use crate::case::{Case, Entrant};
use crate::cases::sqlite::Bare;
use crate::folder::Folder;
use crate::runtime::one_thread;
use crate::states::{Counter, CounterUpdate};

const RESULTS: u64 = 100;

/// The results of a long task, and the number of shorter ones that have as many together.
const MANY: u64 = 40_000;
const PARTS: u64 = 10;

/// The size of a short answer of a model.
const BYTES: usize = 1000;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("once/100", "result", RESULTS, entrants),
        Case::new("once/40000", "result", MANY, long_entrants),
    ]
}

fn answer() -> String {
    "x".repeat(BYTES)
}

/// A result costs the same, however many came before it.
fn long_entrants() -> Vec<Entrant> {
    let runtime = one_thread();
    let entrant = |label, results: u64| {
        let node = move |ctx: Ctx| async move {
            let mut sum = 0;
            for n in 0..results {
                sum += ctx.once("count", async { Ok(n) }).await?;
            }
            Ok::<_, agentgraph::BoxError>(Counter::update().count(sum))
        };
        let graph = StateGraph::new().node("work", node).edge(START, "work").compile().expect("a graph");
        let graph = graph.checkpointer(MemorySaver::new());
        let runtime = Rc::clone(&runtime);
        Entrant::new(label, move |times| {
            for _ in 0..times * (MANY / results) {
                let run = async { graph.invoke(Counter::input()).thread("t").await.expect("the run ends") };
                assert_eq!(runtime.block_on(run).output().count, results * (results - 1) / 2);
            }
        })
    };
    vec![
        entrant("floor: engine, 4,000 results in a task", MANY / PARTS),
        entrant("engine, 40,000 results in a task", MANY).within(1.1),
    ]
}

async fn work(ctx: Ctx) -> Result<CounterUpdate> {
    let mut bytes = 0;
    for _ in 0..RESULTS {
        bytes += ctx.once("answer", async { Ok(answer()) }).await?.len();
    }
    Ok(Counter::update().count(bytes as u64))
}

fn graph() -> CompiledGraph<Counter> {
    StateGraph::new().node("work", work).edge(START, "work").compile().expect("a graph")
}

fn entrants() -> Vec<Entrant> {
    let runtime = one_thread();
    let bare = Rc::new(Bare::open(false));
    let records = vec![answer().into_bytes(); RESULTS as usize];
    let floor = move |times| (0..times).for_each(|_| bare.insert_singly(&records));
    let folder = Folder::create();
    let saver = runtime.block_on(SqliteSaver::open(folder.file("engine.db"))).expect("a saver");
    let sqlite = {
        let graph = graph().checkpointer(saver);
        let runtime = Rc::clone(&runtime);
        let mut runs = 0;
        move |times| {
            let _keep = &folder;
            for _ in 0..times {
                runs += 1;
                runtime.block_on(run(&graph, &format!("thread-{runs}")));
            }
        }
    };
    let memory = {
        let graph = graph().checkpointer(MemorySaver::new());
        move |times| (0..times).for_each(|_| runtime.block_on(run(&graph, "thread-1")))
    };
    vec![
        Entrant::new("floor: an insert of the same bytes", floor),
        Entrant::new("engine, `SqliteSaver`", sqlite).within(2.0),
        Entrant::new("engine, `MemorySaver`", memory),
    ]
}

async fn run(graph: &CompiledGraph<Counter>, thread: &str) {
    let outcome = graph.invoke(Counter::input()).thread(thread).await.expect("the run ends");
    assert_eq!(outcome.output().count, RESULTS * BYTES as u64);
}
