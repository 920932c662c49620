//! A checkpoint in an SQLite file after every step: one run alone, and many at once.

use std::cell::Cell;
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use agentgraph::checkpoint::{Checkpointer, ListQuery, Place};
use agentgraph::prelude::*;
use futures_util::future::join_all;
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::case::{Case, Entrant};
use crate::cases::chain::add_one;
use crate::cases::looped::{Next, looped};
use crate::folder::Folder;
use crate::runtime::{one_thread, two_threads};
use crate::states::Counter;

pub(crate) const STEPS: u64 = 100;
/// One row a step, and one for the input.
pub(crate) const ROWS: u64 = STEPS + 1;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("sqlite/1_run", "step", 10 * ROWS, one_run),
        Case::new("sqlite/10_runs", "step", 10 * ROWS, || runs(&one_thread(), 10, 2.0)),
        Case::new("sqlite/100_runs", "step", 100 * ROWS, || runs(&one_thread(), 100, 2.0)),
        Case::new("sqlite/10_runs_two_threads", "step", 10 * ROWS, || runs(&two_threads(), 10, 3.3))
            .on_two_threads(),
        Case::new("sqlite/100_runs_two_threads", "step", 100 * ROWS, || runs(&two_threads(), 100, 2.0))
            .on_two_threads(),
    ]
}

/// A hand-written store of records by thread and step.
pub(crate) struct Bare {
    connection: Connection,
    threads: Cell<u64>,
    _folder: Folder,
}

const INSERT: &str = "INSERT INTO record (thread, step, bytes) VALUES (?1, ?2, ?3)";

impl Bare {
    /// Opens a new file. Each case takes the faster kind of table: `WITHOUT ROWID` for a sequence of small
    /// records, a plain table for records of a kilobyte and for many threads in turns.
    pub(crate) fn open(without_rowid: bool) -> Self {
        let folder = Folder::create();
        let connection = open(&folder.file("bare.db"), if without_rowid { "WITHOUT ROWID" } else { "" });
        Bare { connection, threads: Cell::new(0), _folder: folder }
    }

    /// Stores the records of one thread, each in its own transaction.
    pub(crate) fn insert_singly(&self, records: &[Vec<u8>]) {
        let thread = self.next_thread();
        let mut statement = self.connection.prepare_cached(INSERT).expect("a statement");
        for (step, record) in (0_i64..).zip(records) {
            statement.execute((&thread, step, record)).expect("a row");
        }
    }

    /// Stores the records of several threads, a hundred rows in each transaction.
    fn insert_batched(&self, threads: usize, records: &[Vec<u8>]) {
        let threads: Vec<String> = (0..threads).map(|_| self.next_thread()).collect();
        let mut rows = (0_i64..)
            .zip(records)
            .flat_map(|(step, record)| threads.iter().map(move |thread| (thread, step, record)));
        let mut statement = self.connection.prepare_cached(INSERT).expect("a statement");
        let mut begin = self.connection.prepare_cached("BEGIN IMMEDIATE").expect("a statement");
        let mut commit = self.connection.prepare_cached("COMMIT").expect("a statement");
        while let Some(first) = rows.next() {
            begin.execute([]).expect("a transaction");
            for row in std::iter::once(first).chain(rows.by_ref().take(99)) {
                statement.execute(row).expect("a row");
            }
            commit.execute([]).expect("a commit");
        }
    }

    fn next_thread(&self) -> String {
        self.threads.set(self.threads.get() + 1);
        format!("thread-{}", self.threads.get())
    }
}

pub(crate) fn open(path: &Path, kind: &str) -> Connection {
    let connection = Connection::open(path).expect("a database");
    let settings = format!(
        "PRAGMA journal_mode = WAL;
        PRAGMA synchronous = NORMAL;
        CREATE TABLE record (
            thread TEXT NOT NULL,
            step INTEGER NOT NULL,
            bytes BLOB NOT NULL,
            PRIMARY KEY (thread, step)
        ) {kind};"
    );
    connection.execute_batch(&settings).expect("a table");
    connection
}

pub(crate) fn next(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

pub(crate) async fn run(graph: CompiledGraph<Counter>, thread: String) {
    let outcome = graph.invoke(Counter::input()).thread(thread).await.expect("the run ends");
    assert_eq!((outcome.output().count, outcome.checkpoint().map(|id| id.step)), (STEPS, Some(STEPS)));
}

/// Returns the records that the engine stores, in order.
pub(crate) async fn records<S: State + agentgraph::state::StoredState>(
    graph: CompiledGraph<S>,
    input: S::Update,
    steps: u64,
) -> Vec<Vec<u8>> {
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(input).thread("thread-1").max_supersteps(steps).await.expect("the run ends");
    let rows = saver.list(Place::root("thread-1"), ListQuery::default()).await.expect("a list");
    rows.into_iter().rev().map(|row| row.record).collect()
}

/// A graph with its own file, and a counter for the names of its threads.
struct FileGraph {
    graph: CompiledGraph<Counter>,
    threads: Cell<u64>,
    _folder: Folder,
}

impl FileGraph {
    async fn open() -> Self {
        let folder = Folder::create();
        let saver = SqliteSaver::open(folder.file("engine.db")).await.expect("a saver");
        FileGraph { graph: looped(add_one, next).checkpointer(saver), threads: Cell::new(0), _folder: folder }
    }

    fn run(&self) -> impl Future<Output = ()> + Send + 'static {
        self.threads.set(self.threads.get() + 1);
        run(self.graph.clone(), format!("thread-{}", self.threads.get()))
    }
}

fn one_run() -> Vec<Entrant> {
    let runtime = one_thread();
    let records = runtime.block_on(records(looped(add_one, next), Counter::input(), STEPS));
    assert_eq!(records.len() as u64, ROWS);
    let bare = Bare::open(true);
    let floor = move |times| {
        for _ in 0..times * 10 {
            bare.insert_singly(&records);
        }
    };
    let kept = runtime.block_on(FileGraph::open());
    let engine = move |times| {
        runtime.block_on(async {
            for _ in 0..times * 10 {
                kept.run().await;
            }
        });
    };
    vec![
        Entrant::new("floor: one insert a step, WAL, NORMAL", floor),
        Entrant::new("engine, `SqliteSaver`", engine).within(1.3),
    ]
}

fn runs(runtime: &Rc<Runtime>, runs: usize, budget: f64) -> Vec<Entrant> {
    let records = runtime.block_on(records(looped(add_one, next), Counter::input(), STEPS));
    let bare = Bare::open(false);
    let floor = move |times| {
        for _ in 0..times {
            bare.insert_batched(runs, &records);
        }
    };
    let kept = runtime.block_on(FileGraph::open());
    let runtime = Rc::clone(runtime);
    let engine = move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let tasks = (0..runs).map(|_| tokio::spawn(kept.run()));
                for task in join_all(tasks).await {
                    task.expect("no run panics");
                }
            }
        });
    };
    vec![
        Entrant::new("floor: transactions of 100 inserts", floor),
        Entrant::new("engine, `SqliteSaver`", engine).within(budget),
    ]
}
