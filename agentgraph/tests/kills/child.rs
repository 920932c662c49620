//! The process that a trial kills. It continues the run of a thread until the run finishes.

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

/// The greatest number of calls in a process. A run fails or pauses only a few times; one that needs more
/// calls never finishes.
const CALLS: usize = 20;

/// The longest pause between two attempts to take a thread.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The orders of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub number: u32,
    pub story: Story,
    pub mode: Mode,
    pub store: Store,
    pub thread: String,
    pub log: PathBuf,
    pub fate: Option<Fate>,
    /// A stopped process stays stopped until this file exists.
    pub wakes: PathBuf,
    pub fault: Option<Fault>,
    /// The greatest size of a file that the process writes.
    pub most_bytes: Option<u64>,
    /// The length of the lease in milliseconds.
    pub lease: Option<u64>,
    /// Whether the process waits until the thread is free.
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
    /// Opens the store. `may_stop` says whether the process may be stopped for a while.
    async fn open(&self, may_stop: bool) -> Result<Arc<dyn Checkpointer>, StoreError> {
        match self {
            Store::Sqlite(path) => {
                let saver = SqliteSaver::builder(path).busy_timeout(Duration::from_secs(60));
                Ok(Arc::new(saver.open().await?))
            }
            #[cfg(feature = "postgres")]
            Store::Postgres { url, schema } => {
                let url = &if may_stop { with_transaction_timeout(url) } else { url.clone() };
                // Here only a kill ends a connection, so other processes may take the thread at once.
                let saver = agentgraph::PostgresSaver::builder(url)
                    .schema(schema)
                    .connections(4)
                    .grace(Duration::ZERO);
                Ok(Arc::new(saver.connect().await?))
            }
        }
    }
}

/// Returns the URL with a timeout for idle transactions, as `docs/durability.md` advises. Otherwise a process
/// that is stopped in a transaction keeps its locks, and other processes wait at most a minute for these.
#[cfg(feature = "postgres")]
fn with_transaction_timeout(url: &str) -> String {
    let more = if url.contains('?') { '&' } else { '?' };
    format!("{url}{more}options=-c%20idle_in_transaction_session_timeout%3D10s")
}

/// Carries out the orders.
pub fn run(orders: &Orders) {
    let log = Arc::new(Log::to_file(&orders.log, orders.number));
    let runtime = match orders.lease {
        // A process that is to be stopped has one thread only. Stopped while another thread renews the lease,
        // it would keep all other processes from writing to SQLite.
        Some(_) => Builder::new_current_thread().enable_all().build().unwrap(),
        None => Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
    };
    if let Err(error) = runtime.block_on(run_to_end(orders, &log)) {
        log.write(Event::Failed { code: error.code().to_string(), message: error.to_string() });
    }
}

async fn run_to_end(orders: &Orders, log: &Arc<Log>) -> Result<(), Error> {
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
    log.write(Event::Failed { code: "none".into(), message: "the run does not finish".into() });
    Ok(())
}

async fn open(orders: &Orders, world: &World) -> Result<Arc<dyn Checkpointer>, StoreError> {
    let mut store = orders.store.open(orders.lease.is_some()).await?;
    if orders.queues {
        wait_until_free(&*store, &orders.thread).await?;
    }
    if let Some(fault) = orders.fault {
        let points = Arc::clone(&world.points);
        let cleared = orders.log.with_extension("cleared");
        store = Arc::new(Faulty { inner: store, fault, points, late: Mutex::default(), cleared });
    }
    Ok(Arc::new(Watched {
        inner: store,
        log: Arc::clone(&world.log),
        points: Arc::clone(&world.points),
        fault: orders.fault,
        unlogged: Mutex::default(),
    }))
}

/// Waits until the thread is free. The server may still execute the last statement of a dead process, so only
/// the owner of the lease reads a settled state.
async fn wait_until_free(store: &dyn Checkpointer, thread: &str) -> Result<(), StoreError> {
    let leases = leases_of(store);
    let mut seize = false;
    loop {
        let now = SystemTime::now();
        let terms = LeaseTerms { now, until: now + Duration::from_secs(30), seize };
        match leases.acquire(thread, terms).await? {
            Claim::Granted { fence } => return leases.release(thread, fence).await,
            Claim::Held { fence, until } => {
                // The owner is stopped and will not renew the lease.
                seize = until <= now;
                let _ = tokio::time::timeout(LOOK_AGAIN, leases.released(thread, fence)).await;
            }
        }
    }
}

/// Returns the marks in the stored bytes that the state of the thread does not show yet.
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

/// Returns the next call that the thread needs, or `None` if its run has finished.
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
    let has_finished = state.next.is_empty() && state.deferred.is_empty();
    let anew = world.fault == Some(Fault::StartsOver);
    (!has_finished).then(|| if anew { graph.invoke(Ledger::update()).abandon() } else { graph.proceed() })
}
