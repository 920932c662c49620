//! Durable steps in one node, each of whose results is stored before the next step begins.

use std::rc::Rc;

use agentgraph::prelude::*;

use crate::case::{Case, Entrant};
use crate::cases::sqlite::{Bare, Folder};
use crate::runtime::one_thread;
use crate::states::{Counter, CounterUpdate};

const RESULTS: u64 = 100;

/// The size of a short answer of a model.
const BYTES: usize = 1000;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new("once/100", "result", RESULTS, entrants)]
}

fn answer() -> String {
    "x".repeat(BYTES)
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
    let folder = Folder::new();
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
