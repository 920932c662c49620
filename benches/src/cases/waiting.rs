//! Threads that wait for answers: to answer one costs the same among few and among very many. The floor
//! is the engine itself among few.

use std::rc::Rc;
use std::sync::Arc;

use agentgraph::checkpoint::upkeep::copy_thread;
use agentgraph::checkpoint::{Checkpointer, Retention, SqliteSaver};
use agentgraph::prelude::*;
use tokio::runtime::Runtime;

use crate::case::{Case, Entrant};
use crate::folder::Folder;
use crate::runtime::one_thread;
use crate::states::{Counter, CounterUpdate};

/// The number of answered threads, whatever the number of waiting ones. All are answered equally often.
const ANSWERED: usize = 100;
const MANY: usize = 100_000;

/// The ratio that counts as flat: among many, the trees of tables and indexes are a level or two deeper.
const FLAT: f64 = 1.25;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("waiting/memory", "answer", ANSWERED as u64, in_memory),
        Case::new("waiting/sqlite", "answer", ANSWERED as u64, in_a_file),
    ]
}

/// Interrupts, and after each answer again.
async fn ask(ctx: Ctx, state: Snapshot<Counter>) -> Result<CounterUpdate> {
    let more: u64 = ctx.interrupt("how many more?")?;
    Ok(Counter::update().count(state.count + more))
}

/// Only the latest checkpoint of a thread is kept, so that its earlier answers cost nothing.
fn asking(saver: Arc<dyn Checkpointer>) -> CompiledGraph<Counter> {
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").edge("ask", "ask");
    let graph = graph.compile().expect("a graph").checkpointer(saver);
    graph.retention(Retention::keep_latest_per_thread())
}

/// Makes the threads. The answered ones are spread among the others, which are copies of one waiting
/// thread.
async fn waits(saver: Arc<dyn Checkpointer>, threads: usize) -> CompiledGraph<Counter> {
    let graph = asking(Arc::clone(&saver));
    let invoke = |thread| graph.invoke(Counter::input()).thread(thread);
    invoke("original".to_owned()).await.expect("it asks");
    for number in 0..threads {
        match number % (threads / ANSWERED) {
            0 => drop(invoke(name(number)).await.expect("it asks")),
            _ => copy_thread(&*saver, "original", &name(number)).await.expect("a copy"),
        }
    }
    graph
}

fn name(number: usize) -> String {
    format!("thread-{number:06}")
}

fn answers(runtime: &Rc<Runtime>, saver: Arc<dyn Checkpointer>, threads: usize) -> impl FnMut(u64) + use<> {
    let runtime = Rc::clone(runtime);
    let graph = runtime.block_on(waits(saver, threads));
    move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                for number in (0..threads).step_by(threads / ANSWERED) {
                    let outcome = graph.resume(1).thread(name(number)).await.expect("it waited");
                    assert_eq!(outcome.interrupts().len(), 1);
                }
            }
        });
    }
}

fn in_memory() -> Vec<Entrant> {
    let runtime = one_thread();
    let answers = |threads| answers(&runtime, Arc::new(MemorySaver::new()), threads);
    vec![
        Entrant::new("floor: one of 100 in memory", answers(ANSWERED)),
        Entrant::new("one of 100,000 in memory", answers(MANY)).within(FLAT),
    ]
}

fn in_a_file() -> Vec<Entrant> {
    let runtime = one_thread();
    let answers = |threads| {
        let folder = Folder::create();
        let saver = runtime.block_on(SqliteSaver::open(folder.file("engine.db"))).expect("a saver");
        let mut answer = answers(&runtime, Arc::new(saver), threads);
        move |times| {
            let _kept = &folder;
            answer(times);
        }
    };
    vec![
        Entrant::new("floor: one of 100 in a file", answers(ANSWERED)),
        Entrant::new("one of 100,000 in a file", answers(MANY)).within(FLAT),
    ]
}
