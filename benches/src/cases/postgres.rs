//! A checkpoint in a Postgres database after every step, and reads and resumes of a stored thread. The
//! server does most of the work, so these cases are timed by the wall clock.

use std::cell::Cell;
use std::future::{Future, IntoFuture};
use std::rc::Rc;
use std::sync::Arc;

use agentgraph::prelude::*;
use cpu_time::ProcessTime;
use futures_util::future::join_all;
use tokio_postgres::{Client, Statement};

use crate::case::{Case, Entrant, Figure};
use crate::cases::chain::add_one;
use crate::cases::growth::{self, Change, Times};
use crate::cases::looped::looped;
use crate::cases::reading::{self, SOME};
use crate::cases::sqlite::{self, ROWS, STEPS, records};
use crate::postgres::Schema;
use crate::runtime::one_thread;
use crate::states::{Counter, Log, LogUpdate};

pub(crate) fn cases() -> Vec<Case> {
    let cases = [
        Case::new("postgres/1_run", "step", ROWS, || runs(1)),
        Case::new("postgres/10_runs", "step", 10 * ROWS, || runs(10)),
        Case::new("postgres/append_100", "step", growth::STEPS, || grown(growth::append_little, Log::update))
            .with_figures(|| on_disk(growth::append_little, Log::update)),
        Case::new("postgres/append", "step", growth::STEPS, || grown(growth::append, Log::update))
            .with_figures(|| on_disk(growth::append, Log::update)),
        Case::new("postgres/unchanged", "step", growth::STEPS, || grown(growth::count, growth::large))
            .with_figures(|| on_disk(growth::count, growth::large)),
        Case::new("postgres/state_1000", "read", 1, states),
        Case::new("postgres/history_1000", "checkpoint", SOME + 1, histories),
        Case::new("postgres/answer_1000", "answer", 1, answers),
    ];
    cases.into_iter().map(Case::on_postgres).collect()
}

const ENGINE: &str = "engine, `PostgresSaver`";

const TABLE: &str = "CREATE TABLE record (
    thread TEXT NOT NULL,
    step BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (thread, step)
)";

/// A hand-written store of records by thread and step.
struct Bare {
    client: Client,
    insert: Statement,
}

impl Bare {
    async fn prepare(client: Client) -> Self {
        let insert = "INSERT INTO record (thread, step, bytes) VALUES ($1, $2, $3)";
        let insert = client.prepare(insert).await.expect("a statement");
        Bare { client, insert }
    }

    /// Stores the records of one thread, each in its own transaction.
    async fn insert_singly(&self, thread: &str, records: &[Vec<u8>]) {
        for (step, record) in (0_i64..).zip(records) {
            self.insert(thread, step, record).await;
        }
    }

    async fn insert(&self, thread: &str, step: i64, record: &[u8]) {
        self.client.execute(&self.insert, &[&thread, &step, &record]).await.expect("a row");
    }
}

/// Several connections to a schema, each of which stores one thread at a time.
struct BareConnections {
    bares: Vec<Arc<Bare>>,
    threads: Cell<u64>,
    schema: Schema,
}

impl BareConnections {
    fn new(connections: usize) -> Self {
        let schema = Schema::new(&one_thread());
        schema.runtime.block_on(schema.client.batch_execute(TABLE)).expect("a table");
        let bares = (0..connections)
            .map(|_| Arc::new(schema.runtime.block_on(Bare::prepare(schema.connect()))))
            .collect();
        BareConnections { bares, threads: Cell::new(0), schema }
    }

    /// Stores a new thread over each connection, all at the same time.
    async fn insert(&self, records: &Arc<Vec<Vec<u8>>>) {
        let tasks = self.bares.iter().map(|bare| {
            let bare = Arc::clone(bare);
            let thread = next_thread(&self.threads);
            let records = Arc::clone(records);
            tokio::spawn(async move { bare.insert_singly(&thread, &records).await })
        });
        for task in join_all(tasks).await {
            task.expect("every row is stored");
        }
    }
}

fn next_thread(threads: &Cell<u64>) -> String {
    threads.set(threads.get() + 1);
    format!("thread-{}", threads.get())
}

/// Returns the body of a floor that stores the same records under new threads.
fn storing(connections: usize, records: Vec<Vec<u8>>) -> impl FnMut(u64) {
    let bares = BareConnections::new(connections);
    let records = Arc::new(records);
    move |times| {
        bares.schema.runtime.block_on(async {
            for _ in 0..times {
                bares.insert(&records).await;
            }
        });
    }
}

/// Returns the body of an entrant that runs `at_once` new threads at the same time.
fn running<S, F>(
    graph: CompiledGraph<S>,
    at_once: usize,
    run: fn(CompiledGraph<S>, String) -> F,
) -> impl FnMut(u64)
where
    S: State + agentgraph::state::StoredState,
    F: Future<Output = ()> + Send + 'static,
{
    let schema = Schema::new(&one_thread());
    let graph = graph.checkpointer(schema.saver());
    let threads = Cell::new(0);
    move |times| {
        schema.runtime.block_on(async {
            for _ in 0..times {
                let tasks = (0..at_once).map(|_| tokio::spawn(run(graph.clone(), next_thread(&threads))));
                for task in join_all(tasks).await {
                    task.expect("no run panics");
                }
            }
        });
    }
}

fn runs(at_once: usize) -> Vec<Entrant> {
    let graph = || looped(add_one, sqlite::next);
    let records = one_thread().block_on(records(graph(), Counter::input(), STEPS));
    assert_eq!(records.len() as u64, ROWS);
    vec![
        Entrant::new("floor: one insert a step, a connection for each run", storing(at_once, records)),
        Entrant::new(ENGINE, running(graph(), at_once, sqlite::run)),
    ]
}

fn growing(change: Change) -> CompiledGraph<Log> {
    growth::graph(change, ProcessTime::now(), &Times::default())
}

fn grown(change: Change, input: fn() -> LogUpdate) -> Vec<Entrant> {
    let records = one_thread().block_on(records(growing(change), input(), growth::STEPS));
    let schema = Schema::new(&one_thread());
    let graph = growing(change).checkpointer(schema.saver());
    let threads = Cell::new(0);
    let engine = move |times| {
        for _ in 0..times {
            schema.runtime.block_on(growth::run(&graph, input(), &next_thread(&threads)));
        }
    };
    vec![
        Entrant::new("floor: an insert of the same bytes", storing(1, records)),
        Entrant::new(ENGINE, engine),
    ]
}

/// Measures the size of one run in empty tables.
fn on_disk(change: Change, input: fn() -> LogUpdate) -> Vec<Figure> {
    let schema = Schema::new(&one_thread());
    let graph = growing(change).checkpointer(schema.saver());
    let before = schema.bytes();
    schema.runtime.block_on(growth::run(&graph, input(), "thread-1"));
    vec![Figure::new("on disk, with indexes", (schema.bytes() - before) as f64 / 1e6, "MB")]
}

/// A hand-written store for fast reads: one row for each step, with the whole state.
struct WholeStates {
    bares: BareConnections,
    last: Statement,
    next_step: Cell<i64>,
}

impl WholeStates {
    fn new() -> Self {
        let bares = BareConnections::new(1);
        let last = "SELECT bytes FROM record WHERE thread = 'thread-1' ORDER BY step DESC LIMIT $1";
        let last = bares.schema.runtime.block_on(bares.bares[0].client.prepare(last)).expect("a statement");
        let whole = WholeStates { bares, last, next_step: Cell::new(0) };
        whole.block_on(async {
            for count in 0..=SOME {
                whole.insert(&Counter { count, ..Counter::begun() }).await;
            }
        });
        whole
    }

    fn block_on(&self, work: impl Future<Output = ()>) {
        self.bares.schema.runtime.block_on(work);
    }

    async fn insert(&self, state: &Counter) {
        let step = self.next_step.replace(self.next_step.get() + 1);
        let bytes = serde_json::to_vec(state).expect("it is JSON");
        self.bares.bares[0].insert("thread-1", step, &bytes).await;
    }

    async fn newest(&self, limit: i64) -> Vec<Counter> {
        let rows = self.bares.bares[0].client.query(&self.last, &[&limit]).await.expect("rows");
        rows.iter().map(|row| serde_json::from_slice(row.get(0)).expect("a state")).collect()
    }
}

/// Returns a schema with one thread, which ran to its end or its first interrupt.
fn stored_thread(graph: CompiledGraph<Counter>) -> (Schema, CompiledGraph<Counter>) {
    let schema = Schema::new(&one_thread());
    let graph = schema.runtime.block_on(reading::run(graph.checkpointer(schema.saver())));
    (schema, graph)
}

fn states() -> Vec<Entrant> {
    let whole = WholeStates::new();
    let floor = move |times| {
        whole.block_on(async {
            for _ in 0..times {
                assert_eq!(whole.newest(1).await[0].count, SOME);
            }
        });
    };
    let (schema, graph) = stored_thread(looped(add_one, reading::next::<SOME>));
    let engine = move |times| {
        schema.runtime.block_on(async {
            for _ in 0..times {
                let state = graph.state("thread-1").await.expect("it can be read");
                assert_eq!(state.map(|state| state.values.count), Some(SOME));
            }
        });
    };
    vec![Entrant::new("floor: the last row, which holds all of it", floor), Entrant::new(ENGINE, engine)]
}

fn histories() -> Vec<Entrant> {
    let whole = WholeStates::new();
    let floor = move |times| {
        whole.block_on(async {
            for _ in 0..times {
                assert_eq!(whole.newest(i64::MAX).await.len() as u64, SOME + 1);
            }
        });
    };
    let (schema, graph) = stored_thread(looped(add_one, reading::next::<SOME>));
    let engine = move |times| {
        for _ in 0..times {
            let history = schema.runtime.block_on(graph.history("thread-1").into_future());
            assert_eq!(history.expect("it can be read").len() as u64, SOME + 1);
        }
    };
    vec![Entrant::new("floor: all rows, each of which holds all of it", floor), Entrant::new(ENGINE, engine)]
}

fn answers() -> Vec<Entrant> {
    let whole = Rc::new(WholeStates::new());
    let floor = move |times| {
        whole.block_on(async {
            for _ in 0..times {
                let mut state = whole.newest(1).await.remove(0);
                // One row for the answer, one for the next step.
                whole.insert(&state).await;
                state.count += 1;
                whole.insert(&state).await;
            }
        });
    };
    let (schema, graph) = stored_thread(reading::asking());
    let engine = move |times| {
        schema.runtime.block_on(async {
            for _ in 0..times {
                let outcome = graph.resume(1).thread("thread-1").await.expect("it asks again");
                assert_eq!(outcome.interrupts().len(), 1);
            }
        });
    };
    vec![Entrant::new("floor: the last row is read and two are written", floor), Entrant::new(ENGINE, engine)]
}
