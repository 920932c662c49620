//! The floors: loops by hand for exactly the work of each case, without a graph.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use harness::{ANSWER, Case, INNER, LINE, Prepared, SHORT, TEXT, at_once, repeat, thread_name, work};
use rusqlite::Connection;
use serde::Serialize;

#[derive(Serialize, Clone, Default)]
struct Counter {
    count: u64,
    text: String,
    items: Vec<u64>,
    lines: Vec<String>,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Node = Box<dyn Fn(&Counter) -> Boxed<u64> + Send + Sync>;
type Branch = Box<dyn Fn(&Counter) -> Boxed<u64>>;

fn begun() -> Counter {
    Counter { text: TEXT.to_owned(), ..Counter::default() }
}

fn add_one() -> Node {
    Box::new(|state| {
        let count = state.count;
        Box::pin(async move { black_box(count) + 1 })
    })
}

/// Nodes that are looked up by name, each with the name of the next.
struct Chain {
    nodes: HashMap<String, (Node, Option<String>)>,
}

impl Chain {
    fn new(size: u64) -> Self {
        let name = |at: u64| format!("node_{at}");
        let next = |at| (at + 1 < size).then(|| name(at + 1));
        Chain { nodes: (0..size).map(|at| (name(at), (add_one(), next(at)))).collect() }
    }

    /// Shows the state to `seen` after each node.
    async fn run(&self, mut state: Counter, mut seen: impl FnMut(&Counter)) -> Counter {
        let mut at = Some("node_0");
        while let Some((node, next)) = at.and_then(|name| self.nodes.get(name)) {
            state.count = node(&state).await;
            seen(&state);
            at = next.as_deref();
        }
        state
    }
}

/// Calls the node until the count is `until`, and shows each state to `seen`.
async fn looped(until: u64, mut state: Counter, mut seen: impl FnMut(&mut Counter)) -> Counter {
    let nodes = HashMap::from([("work", add_one())]);
    let mut at = Some("work");
    while let Some(node) = at.and_then(|name| nodes.get(name)) {
        state.count = node(&state).await;
        seen(&mut state);
        at = (state.count < until).then_some("work");
    }
    state
}

/// Polls each branch once, in place. All are ready then.
async fn fan_out(branches: &[Branch]) -> Vec<u64> {
    let state = begun();
    poll_fn(|cx| {
        let polled = branches.iter().filter_map(|branch| match branch(&state).as_mut().poll(cx) {
            Poll::Ready(item) => Some(item),
            Poll::Pending => None,
        });
        Poll::Ready(polled.collect())
    })
    .await
}

fn branches(size: u64) -> Rc<Vec<Branch>> {
    let branch = |at| -> Branch { Box::new(move |_| Box::pin(async move { black_box(at) })) };
    Rc::new((0..size).map(branch).collect())
}

fn database(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("bare.db")).expect("a database");
    let table = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
        CREATE TABLE record (thread TEXT, step INTEGER, bytes BLOB, PRIMARY KEY (thread, step)) WITHOUT ROWID;";
    connection.execute_batch(table).expect("a table");
    connection
}

fn insert(database: &Connection, thread: &str, step: u64, bytes: &[u8]) {
    let insert = "INSERT INTO record (thread, step, bytes) VALUES (?1, ?2, ?3)";
    let mut statement = database.prepare_cached(insert).expect("a statement");
    statement.execute((thread, step as i64, bytes)).expect("a row");
}

async fn run(chain: Arc<Chain>) -> u64 {
    chain.run(begun(), |_| ()).await.count
}

async fn kept(steps: u64) -> u64 {
    let mut kept = Vec::new();
    let state = looped(steps, begun(), |state| kept.push(state.clone())).await;
    assert_eq!(kept.len() as u64, steps);
    state.count
}

async fn stored(database: Rc<Connection>, steps: u64) -> u64 {
    let thread = thread_name();
    let store = |state: &mut Counter| {
        insert(&database, &thread, state.count, &serde_json::to_vec(state).expect("JSON"));
    };
    looped(steps, begun(), store).await.count
}

/// Stores only the new line of each step.
async fn growing(database: Rc<Connection>, steps: u64) -> u64 {
    let thread = thread_name();
    let store = |state: &mut Counter| {
        state.lines.push("x".repeat(LINE));
        insert(&database, &thread, state.count, state.lines[state.lines.len() - 1].as_bytes());
    };
    looped(steps, begun(), store).await.lines.len() as u64
}

type Waiting = Rc<RefCell<HashMap<String, Counter>>>;

async fn wait(waiting: &Waiting, thread: String) {
    let state = looped(1, begun(), |_| ()).await;
    waiting.borrow_mut().insert(thread, state);
}

async fn asked_and_answered() -> u64 {
    let waiting = Waiting::default();
    wait(&waiting, "thread".to_owned()).await;
    let mut state = waiting.borrow_mut().remove("thread").expect("it waits");
    state.count += ANSWER;
    looped(0, state, |_| ()).await.count
}

async fn all_wait(waiting: Waiting, runs: u64) -> u64 {
    for _ in 0..runs {
        wait(&waiting, thread_name()).await;
    }
    waiting.borrow().len() as u64
}

async fn streamed(chain: Arc<Chain>) -> u64 {
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    chain.run(begun(), |state| drop(send.send(state.count))).await;
    drop(send);
    let mut events = 0;
    while receive.recv().await.is_some() {
        events += 1;
    }
    events
}

async fn nested(chain: Arc<Chain>, until: u64) -> u64 {
    let mut state = begun();
    while state.count < until {
        state = chain.run(state, |_| ()).await;
    }
    state.count
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    let chain = |size| Arc::new(Chain::new(size));
    let database = || Rc::new(database(folder));
    match case {
        Case::Chain(size) => repeat(chain(size), run),
        Case::Loop(steps) => work(move || async move { looped(steps, begun(), |_| ()).await.count }),
        Case::FanOut(size) => {
            repeat(branches(size), |branches| async move { fan_out(&branches).await.len() as u64 })
        }
        Case::Runs(size) => repeat(chain(SHORT), move |chain| at_once(size, move || run(chain.clone()))),
        Case::Memory(steps) => work(move || kept(steps)),
        Case::Sqlite(steps) => repeat(database(), move |database| stored(database, steps)),
        Case::Growing(steps) => repeat(database(), move |database| growing(database, steps)),
        Case::Interrupt => work(asked_and_answered),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Subgraph(calls) => repeat(chain(INNER), move |chain| nested(chain, calls * INNER)),
        Case::Dispatch(size) => work(move || async move { fan_out(&branches(size)).await.iter().sum() }),
        Case::Waiting(size) => repeat(Waiting::default(), move |waiting| all_wait(waiting, size)),
    }
}

fn main() {
    harness::main(prepare);
}
