//! A lost lease, a failing store and unusable stored bytes end the run with their own code, at any depth of
//! subgraphs. No retry and no error handler of a node sees them.
#![cfg(feature = "sqlite")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{
    Catalog, LeaseTerms, Leases, Place, Put, PutWrites, SqliteSaver, StoreCode, StoreError, Upkeep, delegate,
};
use agentgraph::host::Host;
use agentgraph::host::{TaskCall, TaskReply};
use agentgraph::policy::OnEnd;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Checkpointer, Code, Durability, Memory, RetryPolicy};

use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, says, text};
use crate::sqlite_folder::Folder;

/// A number of calls.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns two connections to one store, for each kind of store.
async fn stores(folder: &Folder) -> Vec<[Arc<dyn Checkpointer>; 2]> {
    let memory: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    let path = folder.fresh();
    let open = async || Arc::new(SqliteSaver::open(&path).await.unwrap()) as Arc<dyn Checkpointer>;
    vec![[Arc::clone(&memory), memory], [open().await, open().await]]
}

/// Returns a node that takes the lease of the run's thread, as another process would, and then succeeds.
fn losing_node(other: Arc<dyn Checkpointer>, calls: Count) -> impl IntoNode<Words, agentgraph::node::IsNode> {
    let node = move || {
        let other = Arc::clone(&other);
        calls.up();
        async move {
            let now = SystemTime::now();
            let terms = LeaseTerms { now, until: now + Duration::from_secs(3600), seize: true };
            other.leases().unwrap().acquire("t", terms).await?;
            Ok::<_, BoxError>(Words::update().seen(["lost"]))
        }
    };
    node.into_node()
}

fn chain(first: impl IntoNode<Words, agentgraph::node::IsNode>) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("first", first.into_node()).node("second", says("second"));
    graph.edge(START, "first").edge("first", "second").compile().unwrap()
}

/// Adds `sub` to a graph, with retries and an error handler that could hide its failure.
fn with_policies(
    graph: StateGraph<Words>,
    sub: CompiledGraph<Words>,
    memory: Memory,
    handled: &Count,
) -> StateGraph<Words> {
    let handled = handled.clone();
    let handle = move || {
        handled.up();
        std::future::ready(Words::update().seen(["handled"]))
    };
    let sub = sub.memory(memory).retry(RetryPolicy::attempts(4).initial(Duration::ZERO)).on_error("handle");
    graph.node("sub", sub).node("handle", handle).edge(START, "sub")
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[tokio::test]
async fn a_lease_lost_in_a_subgraph_ends_the_run_in_every_mode_and_depth() {
    let folder = Folder::new();
    for [own, other] in stores(&folder).await {
        for mode in MODES {
            for (eager, memory, deep) in [
                (false, Memory::PerCall, false),
                (false, Memory::PerThread, false),
                (false, Memory::PerCall, true),
                (true, Memory::PerCall, true),
            ] {
                let calls = Count::default();
                let handled = Count::default();
                let discipline = |graph: StateGraph<Words>| if eager { graph.eager() } else { graph };
                let mut sub = chain(losing_node(Arc::clone(&other), calls.clone()));
                if deep {
                    sub = with_policies(discipline(StateGraph::new()), sub, memory, &handled)
                        .compile()
                        .unwrap();
                }
                let graph = with_policies(discipline(StateGraph::new()), sub, memory, &handled);
                let graph = graph.compile().unwrap().checkpointer(Arc::clone(&own));
                let run = graph.invoke(Words::update().seen(["i"])).thread("t").durability(mode);
                let case = format!("{mode:?} {memory:?} deep {deep} eager {eager}");
                let error = run.await.expect_err(&case);
                assert_eq!((error.code(), error.thread()), (Code::LeaseLost, Some("t")), "{case}: {error}");
                assert_eq!((calls.get(), handled.get()), (1, 0), "{case}");
                other.delete_thread("t").await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_lost_lease_takes_precedence_over_the_failure_of_a_sibling() {
    async fn fails() -> Result<WordsUpdate> {
        Err("the well is dry".into())
    }
    for eager in [false, true] {
        let saver: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
        let calls = Count::default();
        let handled = Count::default();
        let sub = chain(losing_node(Arc::clone(&saver), calls.clone()));
        let graph = if eager { StateGraph::new().eager() } else { StateGraph::new() };
        // `fails` fails before the subgraph and precedes it in task order.
        let graph =
            with_policies(graph.node("fails", fails).edge(START, "fails"), sub, Memory::PerCall, &handled);
        let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert_eq!(
            (error.code(), calls.get(), handled.get()),
            (Code::LeaseLost, 1, 0),
            "eager {eager}: {error}"
        );
    }
}

#[tokio::test]
async fn a_lease_lost_in_a_detached_subgraph_ends_the_run() {
    async fn slow() -> WordsUpdate {
        pending_for(50).await;
        Words::update().seen(["slow"])
    }
    // Only writes of the subgraph fail, so no later write can end the run.
    let saver = FailsInside { inner: Arc::new(MemorySaver::new()), code: StoreCode::LeaseLost };
    let sub = chain(says("inside").into_node());
    let sub = sub.memory(Memory::PerCall).detached().on_end(OnEnd::Await(Duration::MAX));
    let graph = StateGraph::new().eager().node("sub", sub).node("slow", slow);
    let graph = graph.edge(START, "sub").edge(START, "slow").compile().unwrap().checkpointer(saver);
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::LeaseLost, "{error}");
}

#[tokio::test]
async fn a_lease_lost_in_a_subgraph_at_a_host_ends_the_run() {
    struct OtherHost(CompiledGraph<Words>);
    #[async_trait::async_trait]
    impl Host for OtherHost {
        async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
            Ok(self.0.run_task(call).await?)
        }
    }
    let saver: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    let calls = Count::default();
    let handled = Count::default();
    let sub = chain(losing_node(Arc::clone(&saver), calls.clone()));
    let sub = sub.clone().host(OtherHost(sub));
    let graph = with_policies(StateGraph::new(), sub, Memory::PerCall, &handled).compile().unwrap();
    let error = graph.checkpointer(saver).invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!((error.code(), calls.get(), handled.get()), (Code::LeaseLost, 1, 0), "{error}");
}

/// A store that fails all writes of subgraphs with `code`.
struct FailsInside {
    inner: Arc<dyn Checkpointer>,
    code: StoreCode,
}

impl FailsInside {
    fn check(&self, place: Place<'_>) -> Result<(), StoreError> {
        match place.namespace {
            "" => Ok(()),
            _ => Err(StoreError::new(self.code, "this store fails inside")),
        }
    }
}

#[async_trait::async_trait]
impl Checkpointer for FailsInside {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.check(put.place)?;
        self.inner.put(put).await
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.check(put.place)?;
        self.inner.put_writes(put).await
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        None
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }

    delegate!(self => &self.inner; get, row, list, threads, delete_thread);
}

/// The codes with which any call of a store may fail.
const STORE_CODES: [StoreCode; 10] = [
    StoreCode::Store,
    StoreCode::Stale,
    StoreCode::LeaseLost,
    StoreCode::ThreadBusy,
    StoreCode::CorruptCheckpoint,
    StoreCode::UnknownFormat,
    StoreCode::UnknownKey,
    StoreCode::WrongKey,
    StoreCode::SealBroken,
    StoreCode::NotEncrypted,
];

#[tokio::test]
async fn every_failure_of_a_store_ends_the_run_with_its_own_code() {
    for code in STORE_CODES {
        let calls = Count::default();
        let handled = Count::default();
        let counting = calls.clone();
        let first = move || {
            counting.up();
            std::future::ready(Words::update().seen(["first"]))
        };
        let graph = with_policies(StateGraph::new(), chain(first.into_node()), Memory::PerCall, &handled);
        let saver = FailsInside { inner: Arc::new(MemorySaver::new()), code };
        let graph = graph.compile().unwrap().checkpointer(saver);
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        // The first checkpoint of the subgraph could not be stored, so none of its nodes was called.
        assert_eq!((error.code(), calls.get(), handled.get()), (code.into(), 0, 0), "{error}");
    }
}

#[tokio::test]
async fn failures_of_nodes_in_a_subgraph_reach_the_policies_of_its_node() {
    async fn fails() -> Result<WordsUpdate> {
        Err("the well is dry".into())
    }
    let handled = Count::default();
    let graph = with_policies(StateGraph::new(), chain(fails.into_node()), Memory::PerCall, &handled);
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!((text(outcome.output()), handled.get()), ("handled".into(), 1));
}
