//! Reads of a stored thread (its state after few and many steps, its history), and resumes with an answer.

use std::cell::Cell;
use std::future::IntoFuture;
use std::path::Path;
use std::rc::Rc;

use agentgraph::prelude::*;
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::case::{Case, Entrant};
use crate::cases::chain::add_one;
use crate::cases::looped::{Next, looped};
use crate::cases::sqlite::open;
use crate::folder::Folder;
use crate::runtime::one_thread;
use crate::states::{Counter, CounterUpdate};

const FEW: u64 = 10;
pub(crate) const SOME: u64 = 1_000;
/// Builds without optimisation only check that the case runs, with fewer steps.
const MANY: u64 = if cfg!(debug_assertions) { 2_000 } else { 100_000 };

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("reading/state_10", "read", 1, states::<FEW>),
        Case::new("reading/state_1000", "read", 1, states::<SOME>),
        Case::new("reading/state_100000", "read", 1, states::<MANY>),
        Case::new("reading/history_1000", "checkpoint", SOME + 1, histories),
        Case::new("reading/answer_1000", "answer", 1, answers),
    ]
}

pub(crate) fn next<const STEPS: u64>(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

/// A hand-written store for fast reads: one row for each step, with the whole state.
struct WholeStates {
    connection: Connection,
    next_step: Cell<i64>,
    _folder: Folder,
}

impl WholeStates {
    fn with(steps: u64) -> Self {
        let folder = Folder::create();
        let connection = open(&folder.file("bare.db"), "WITHOUT ROWID");
        let whole = WholeStates { connection, next_step: Cell::new(0), _folder: folder };
        whole.connection.execute_batch("BEGIN").expect("a transaction");
        for count in 0..=steps {
            whole.insert(&Counter { count, ..Counter::begun() });
        }
        whole.connection.execute_batch("COMMIT").expect("a commit");
        whole
    }

    fn insert(&self, state: &Counter) {
        let step = self.next_step.replace(self.next_step.get() + 1);
        let sql = "INSERT INTO record (thread, step, bytes) VALUES ('thread-1', ?1, ?2)";
        let mut statement = self.connection.prepare_cached(sql).expect("a statement");
        statement.execute((step, serde_json::to_vec(state).expect("it is JSON"))).expect("a row");
    }

    fn last(&self, limit: i64) -> Vec<Counter> {
        let sql = "SELECT bytes FROM record WHERE thread = 'thread-1' ORDER BY step DESC LIMIT ?1";
        let mut statement = self.connection.prepare_cached(sql).expect("a statement");
        let rows = statement.query_map([limit], |row| row.get::<_, Vec<u8>>(0)).expect("rows");
        rows.map(|row| serde_json::from_slice(&row.expect("a row")).expect("a state")).collect()
    }
}

/// Stores one thread in a file, and returns its graph.
async fn stored_thread(path: &Path, graph: CompiledGraph<Counter>) -> CompiledGraph<Counter> {
    run(graph.checkpointer(SqliteSaver::open(path).await.expect("a saver"))).await
}

/// Runs one thread to its end or its first interrupt.
pub(crate) async fn run(graph: CompiledGraph<Counter>) -> CompiledGraph<Counter> {
    graph.invoke(Counter::input()).thread("thread-1").max_supersteps(u64::MAX).await.expect("the run ends");
    graph
}

fn looped_in<const STEPS: u64>(runtime: &Runtime, folder: &Folder) -> CompiledGraph<Counter> {
    runtime.block_on(stored_thread(&folder.file("engine.db"), looped(add_one, next::<STEPS>)))
}

fn states<const STEPS: u64>() -> Vec<Entrant> {
    let runtime = one_thread();
    let folder = Folder::create();
    let whole = WholeStates::with(STEPS);
    let floor = move |times| {
        for _ in 0..times {
            assert_eq!(whole.last(1)[0].count, STEPS);
        }
    };
    let graph = looped_in::<STEPS>(&runtime, &folder);
    let engine = move |times| {
        let _keep = &folder;
        runtime.block_on(async {
            for _ in 0..times {
                let state = graph.state("thread-1").await.expect("it can be read");
                assert_eq!(state.map(|state| state.values.count), Some(STEPS));
            }
        });
    };
    vec![
        Entrant::new("floor: the last row, which holds all of it", floor),
        Entrant::new("engine, `SqliteSaver`", engine),
    ]
}

fn histories() -> Vec<Entrant> {
    let runtime = one_thread();
    let folder = Folder::create();
    let whole = WholeStates::with(SOME);
    let floor = move |times| {
        for _ in 0..times {
            assert_eq!(whole.last(i64::MAX).len() as u64, SOME + 1);
        }
    };
    let graph = looped_in::<SOME>(&runtime, &folder);
    let engine = move |times| {
        let _keep = &folder;
        for _ in 0..times {
            let history = runtime.block_on(graph.history("thread-1").into_future()).expect("it can be read");
            assert_eq!(history.len() as u64, SOME + 1);
        }
    };
    vec![
        Entrant::new("floor: all rows, each of which holds all of it", floor),
        Entrant::new("engine, `SqliteSaver`", engine),
    ]
}

/// Interrupts, and adds the answer to the count.
async fn ask(ctx: Ctx, state: Snapshot<Counter>) -> Result<CounterUpdate> {
    let more: u64 = ctx.interrupt("go on?")?;
    Ok(Counter::update().count(state.count + more))
}

#[derive(Route)]
enum Way {
    Work,
    Ask,
}

/// Returns a graph that takes [`SOME`] steps and then interrupts, again after each answer.
pub(crate) fn asking() -> CompiledGraph<Counter> {
    let way = |state: &Counter| if state.count < SOME { Way::Work } else { Way::Ask };
    let graph = StateGraph::new().node("work", add_one).node("ask", ask).edge(START, "work");
    graph.route("work", way).edge("ask", "ask").compile().expect("a graph")
}

fn answers() -> Vec<Entrant> {
    let runtime = one_thread();
    let folder = Folder::create();
    let whole = Rc::new(WholeStates::with(SOME));
    let floor = move |times| {
        for _ in 0..times {
            let mut state = whole.last(1).remove(0);
            // One row for the answer, one for the next step.
            whole.insert(&state);
            state.count += 1;
            whole.insert(&state);
        }
    };
    let graph = runtime.block_on(stored_thread(&folder.file("engine.db"), asking()));
    let engine = move |times| {
        let _keep = &folder;
        runtime.block_on(async {
            for _ in 0..times {
                let outcome = graph.resume(1).thread("thread-1").await.expect("it asks again");
                assert_eq!(outcome.interrupts().len(), 1);
            }
        });
    };
    vec![
        Entrant::new("floor: the last row is read and two are written", floor),
        Entrant::new("engine, `SqliteSaver`", engine),
    ]
}
