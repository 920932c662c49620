//! The process that is killed: it goes on with a thread until the run is at its end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::leases::leases_of;
use agentgraph::checkpoint::{Claim, LeaseTerms, Place, SqliteSaver, StoreError, catalog};
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::{Checkpoint, Code, Durability, Error, RunBuilder};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use super::faults::{Fault, Faulty};
use super::log::{Event, Log};
use super::mark::Mark;
use super::points::{Fate, Points};
use super::stories::{Ledger, Story, World};
use super::watched::Watched;

/// A call fails or pauses a few times at most; more of them would never end.
const CALLS: usize = 20;

/// Whoever waits for a thread looks at least so often.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub number: u32,
    pub story: Story,
    pub mode: Mode,
    pub store: Store,
    pub thread: String,
    pub log: PathBuf,
    pub fate: Option<Fate>,
    /// It stands still until this file is there.
    pub wakes: PathBuf,
    pub fault: Option<Fault>,
    /// No file may become larger.
    pub most_bytes: Option<u64>,
    /// In milliseconds.
    pub lease: Option<u64>,
    /// Whether it waits for its turn.
    pub queues: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Store {
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres {
        url: String,
        schema: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    Sync,
    Async,
    Exit,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Sync, Mode::Async, Mode::Exit];

    pub fn durability(self) -> Durability {
        match self {
            Mode::Sync => Durability::Sync,
            Mode::Async => Durability::Async,
            Mode::Exit => Durability::Exit,
        }
    }
}

impl Store {
    /// Opens it for a process that may stand still for a while.
    async fn open(&self, stands: bool) -> Result<Arc<dyn Checkpointer>, StoreError> {
        match self {
            Store::Sqlite(path) => {
                let saver = SqliteSaver::builder(path).busy_timeout(Duration::from_secs(60));
                Ok(Arc::new(saver.open().await?))
            }
            #[cfg(feature = "postgres")]
            Store::Postgres { url, schema } => {
                let url = &if stands { ending_what_stands(url) } else { url.clone() };
                // Nothing but a kill ends a connection here.
                let saver = agentgraph::PostgresSaver::builder(url)
                    .schema(schema)
                    .connections(4)
                    .grace(Duration::ZERO);
                Ok(Arc::new(saver.connect().await?))
            }
        }
    }
}

/// The URL with which the server ends a transaction that stands open, as `docs/durability.md` advises. Who is
/// stopped in the middle of one would otherwise keep its locks, and others wait for these no longer than a
/// minute.
#[cfg(feature = "postgres")]
fn ending_what_stands(url: &str) -> String {
    let more = if url.contains('?') { '&' } else { '?' };
    format!("{url}{more}options=-c%20idle_in_transaction_session_timeout%3D10s")
}

/// Does what it is told.
pub fn run(orders: &Orders) {
    let log = Arc::new(Log::to_file(&orders.log, orders.number));
    let runtime = match orders.lease {
        // Who is to stand still must not do so while another thread of his is in the middle of renewing the
        // lease: SQLite would let nobody else write.
        Some(_) => Builder::new_current_thread().enable_all().build().unwrap(),
        None => Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
    };
    if let Err(error) = runtime.block_on(go_on(orders, &log)) {
        log.write(Event::Failed { code: error.code().to_string(), message: error.to_string() });
    }
}

async fn go_on(orders: &Orders, log: &Arc<Log>) -> Result<(), Error> {
    let points = Arc::new(Points::new(log, orders.fate, orders.wakes.clone()));
    let world = World { log: Arc::clone(log), points: Arc::clone(&points), fault: orders.fault };
    let saver = open(orders, &world).await?;
    let graph = orders.story.graph(&world).compile().unwrap().checkpointer(Arc::clone(&saver));
    let graph = match orders.lease {
        None => graph,
        Some(millis) => graph.lease(Duration::from_millis(millis)),
    };
    let state = graph.state(&orders.thread).await?;
    log.write(Event::Found { marks: marks(state.as_ref()), inside: inside(&*saver, &orders.thread).await? });
    for _ in 0..CALLS {
        let state = graph.state(&orders.thread).await?;
        let Some(call) = next_call(&graph, state.as_ref(), &world) else {
            log.write(Event::Ended { marks: marks(state.as_ref()), passed: points.passed() });
            return Ok(());
        };
        let call = if orders.queues { call.when_busy(WhenBusy::Queue) } else { call };
        let durability = orders.mode.durability();
        let durability = orders.fault.map_or(durability, |fault| fault.durability(durability));
        match call.thread(&orders.thread).max_supersteps(u64::MAX).durability(durability).await {
            Ok(_) => {}
            Err(error) if orders.story.stumbles() && error.code() == Code::NodeFailed => {}
            Err(error) => return Err(error),
        }
        let state = graph.state(&orders.thread).await?;
        log.write(Event::Left { marks: marks(state.as_ref()) });
    }
    log.write(Event::Failed { code: "none".into(), message: "the run goes on and on".into() });
    Ok(())
}

async fn open(orders: &Orders, world: &World) -> Result<Arc<dyn Checkpointer>, StoreError> {
    let mut store = orders.store.open(orders.lease.is_some()).await?;
    if orders.queues {
        until_nobody_has(&*store, &orders.thread).await?;
    }
    if let Some(fault) = orders.fault {
        let (points, cleared) = (Arc::clone(&world.points), orders.log.with_extension("cleared"));
        store = Arc::new(Faulty { inner: store, fault, points, late: Mutex::default(), cleared });
    }
    Ok(Arc::new(Watched {
        inner: store,
        log: Arc::clone(&world.log),
        points: Arc::clone(&world.points),
        fault: orders.fault,
        unsaid: Mutex::default(),
    }))
}

/// The server may still be at the last statement of a process that is dead: only who has the thread reads
/// what stays so.
async fn until_nobody_has(store: &dyn Checkpointer, thread: &str) -> Result<(), StoreError> {
    let leases = leases_of(store);
    loop {
        let now = SystemTime::now();
        let terms = LeaseTerms { now, until: now + Duration::from_secs(30), seize: false };
        match leases.acquire(thread, terms).await? {
            Claim::Granted { fence } => return leases.release(thread, fence).await,
            Claim::Held { fence, .. } => {
                let _ = tokio::time::timeout(LOOK_AGAIN, leases.released(thread, fence)).await;
            }
        }
    }
}

/// The marks in the bytes of the store that the thread's own state does not show yet.
async fn inside(saver: &dyn Checkpointer, thread: &str) -> Result<Vec<Mark>, Error> {
    let mut found = Vec::new();
    for namespace in catalog::namespaces(saver, thread).await? {
        let place = Place { thread, namespace: &namespace };
        let Some(tail) = saver.get(place, None).await? else { continue };
        let rows = tail.rows.iter().flat_map(|row| Mark::all_in(&row.record));
        let writes = tail.writes.iter().flat_map(|write| Mark::all_in(&write.bytes));
        found.extend(rows.chain(writes).filter(Mark::is_inside));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn marks(state: Option<&Checkpoint<Ledger>>) -> Vec<Mark> {
    state.map(|state| state.values.marks.clone()).unwrap_or_default()
}

/// What a thread needs next; nothing if its run is at its end.
fn next_call(
    graph: &CompiledGraph<Ledger>,
    state: Option<&Checkpoint<Ledger>>,
    world: &World,
) -> Option<RunBuilder<Ledger>> {
    let Some(state) = state else { return Some(graph.invoke(Ledger::update())) };
    if let Some(open) = state.interrupts.first() {
        let question = open.value.as_str().unwrap();
        let (place, name) = question.split_once(':').unwrap();
        let mark = Mark::new(place, name);
        world.points.pass("before an answer");
        world.log.write(Event::Effect { run: state.run.to_string(), mark: mark.clone(), attempt: 1 });
        world.points.pass("after an answer");
        return Some(graph.resume_many([(open.id.unwrap(), mark)]));
    }
    let is_at_its_end = state.next.is_empty() && state.deferred.is_empty();
    let anew = world.fault == Some(Fault::BeginsAnew);
    (!is_at_its_end).then(|| match anew {
        true => graph.invoke(Ledger::update()).abandon(),
        false => graph.proceed(),
    })
}
