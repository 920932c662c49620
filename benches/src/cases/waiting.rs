//! Threads that wait for answers: that there are very many of them costs the one that is answered nothing.
//! The floor is the engine itself among few.

use std::rc::Rc;
use std::sync::Arc;

use agentgraph::checkpoint::upkeep::copy_thread;
use agentgraph::checkpoint::{Checkpointer, Retention, SqliteSaver};
use agentgraph::prelude::*;
use tokio::runtime::Runtime;

use crate::case::{Case, Entrant};
use crate::cases::sqlite::Folder;
use crate::runtime::one_thread;
use crate::states::{Counter, CounterUpdate};

/// So many are answered, each as often as the others, whatever waits beside them.
const ANSWERED: usize = 100;
const MANY: usize = 100_000;

/// The trees of tables and indexes are a level or two deeper.
const FLAT: f64 = 1.25;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("waiting/memory", "answer", ANSWERED as u64, in_memory),
        Case::new("waiting/sqlite", "answer", ANSWERED as u64, in_a_file),
    ]
}

/// It asks for ever.
async fn ask(ctx: Ctx, state: Snapshot<Counter>) -> Result<CounterUpdate> {
    let more: u64 = ctx.interrupt("how many more?")?;
    Ok(Counter::update().count(state.count + more))
}

/// Threads are kept short, so that how often one was answered does not matter either.
fn asking(saver: Arc<dyn Checkpointer>) -> CompiledGraph<Counter> {
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").edge("ask", "ask");
    let graph = graph.compile().expect("a graph").checkpointer(saver);
    graph.retention(Retention::keep_latest_per_thread())
}

/// Those that are answered are spread among the others, which are copies of one that waits.
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
        let folder = Folder::new();
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
