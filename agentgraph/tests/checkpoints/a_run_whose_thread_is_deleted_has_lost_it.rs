//! A run whose thread is deleted ends with `E_LEASE_LOST` and leaves nothing behind, whichever program
//! deletes the thread, at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentgraph::checkpoint::{Catalog, Leases, Upkeep, delegate};
use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Code, Durability, Error, MemorySaver};
use serde::{Deserialize, Serialize};

use crate::common::saver::NotingSaver;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Work {
    n: u64,
    page: String,
}

/// The savers, and their names.
async fn savers() -> Vec<(&'static str, Arc<dyn Checkpointer>)> {
    vec![
        ("memory", Arc::new(MemorySaver::new())),
        ("without leases", Arc::new(WithoutLeases(MemorySaver::new()))),
        #[cfg(feature = "sqlite")]
        ("sqlite", Arc::new(agentgraph::checkpoint::SqliteSaver::in_memory().unwrap())),
        #[cfg(feature = "postgres")]
        ("postgres", {
            let server = crate::postgres_server::PostgresServer::get();
            let saver = agentgraph::checkpoint::PostgresSaver::builder(server.url());
            Arc::new(saver.schema(server.fresh_schema()).connect().await.unwrap())
        }),
    ]
}

/// The program that deletes the thread.
#[derive(Clone, Copy, Debug)]
enum By {
    /// The graph that runs.
    ItsGraph,
    /// Another graph, as in another process.
    AnotherGraph,
    Store,
}

fn graph(saver: &Arc<dyn Checkpointer>, deletes_at: u64, by: By) -> CompiledGraph<Work> {
    let own = Arc::new(std::sync::OnceLock::<CompiledGraph<Work>>::new());
    let (this, store) = (Arc::clone(&own), Arc::clone(saver));
    let node = move |state: Snapshot<Work>| {
        let (this, store) = (Arc::clone(&this), Arc::clone(&store));
        async move {
            if state.n == deletes_at {
                match by {
                    By::Store => store.delete_thread("t").await?,
                    By::ItsGraph => this.get().ok_or("no graph")?.delete_thread("t").await?,
                    By::AnotherGraph => graph(&store, u64::MAX, By::Store).delete_thread("t").await?,
                }
            }
            Ok::<_, agentgraph::BoxError>(Work::update().n(state.n + 1))
        }
    };
    let more = |state: &Work| if state.n.is_multiple_of(5) { END } else { "work" };
    let graph = StateGraph::new().node("work", node).edge(START, "work").branch("work", more, ["work", END]);
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(saver));
    let _ = own.set(graph.clone());
    graph
}

fn code(ran: Result<Outcome<Work>, Error>) -> Result<u64, Code> {
    ran.map(|outcome| outcome.output().n).map_err(|error| error.code())
}

#[tokio::test]
async fn a_run_that_deletes_its_thread_has_lost_it() {
    for (name, saver) in savers().await {
        for by in [By::ItsGraph, By::AnotherGraph, By::Store] {
            for durability in [Durability::Sync, Durability::Async] {
                if name == "without leases" && durability == Durability::Async {
                    // Without a fence, a queued write that arrives after the deletion is not detected.
                    continue;
                }
                for (runs, deletes_at) in [(0, 0), (0, 3), (1, 5), (1, 7)] {
                    let context = format!("{name}, {by:?}, {durability:?}, {runs} runs, at {deletes_at}");
                    let graph = graph(&saver, deletes_at, by);
                    for _ in 0..runs {
                        assert!(graph.invoke(Work::update()).thread("t").await.is_ok(), "{context}");
                    }
                    let ran = graph.invoke(Work::update()).thread("t").durability(durability).await;
                    assert_eq!(code(ran), Err(Code::LeaseLost), "{context}");
                    assert!(graph.state("t").await.unwrap().is_none(), "{context}");
                    assert!(saver.threads().await.unwrap().is_empty(), "{context}");
                }
            }
        }
    }
}

/// The thread is deleted between two reads of the call that begins on it: its page is in another record
/// than its head.
#[tokio::test]
async fn a_call_whose_thread_is_deleted_while_it_reads_has_lost_it() {
    let memory = Arc::new(MemorySaver::new());
    let saver = NotingSaver::new(Arc::clone(&memory)).at_once();
    let step = |state: Snapshot<Work>| {
        std::future::ready(match state.n {
            0 => Work::update().n(1).page("p".repeat(30_000)),
            n => Work::update().n(n + 1),
        })
    };
    let build = |name: &'static str| {
        let graph = StateGraph::new().node("step", step).node(name, async || {}).edge(START, "step");
        graph.edge("step", name).compile().unwrap().checkpointer(saver.clone())
    };
    let mut codes = Vec::new();
    for _ in 0..4 {
        // The other graph begins with a full, which refers to the page.
        build("one").invoke(Work::update()).thread("t").await.unwrap();
        build("two").invoke(Work::update()).thread("t").await.unwrap();
        let deletes = Arc::clone(&memory);
        saver.meanwhile(async move { deletes.delete_thread("t").await.unwrap() });
        codes.push(code(build("two").invoke(Work::update()).thread("t").await));
    }
    assert_eq!(codes, [Err(Code::LeaseLost); 4]);
    assert!(memory.threads().await.unwrap().is_empty());
}

/// Many calls and deletions at once: each call ends as if the thread was deleted before it, after it, or
/// during it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beside_deletions_finish_or_have_lost_their_thread() {
    for (name, saver) in savers().await {
        let graph = graph(&saver, u64::MAX, By::Store);
        let done = Arc::new(AtomicU64::new(0));
        let (deleted, ends) = (graph.clone(), Arc::clone(&done));
        let deletions = tokio::spawn(async move {
            while ends.load(Ordering::Relaxed) == 0 {
                deleted.delete_thread("t").await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut lost = 0;
        for _ in 0..300 {
            match code(graph.invoke(Work::update()).thread("t").await) {
                Ok(_) => {}
                Err(Code::LeaseLost) => lost += 1,
                Err(other) => panic!("{name}: {other}"),
            }
        }
        done.store(1, Ordering::Relaxed);
        deletions.await.unwrap();
        assert!(lost > 0, "{name}: no call was disturbed");
    }
}

/// A store that has no leases.
struct WithoutLeases(MemorySaver);

#[async_trait::async_trait]
impl Checkpointer for WithoutLeases {
    fn outlives_its_process(&self) -> bool {
        false
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(&self.0)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(&self.0)
    }

    delegate!(self => &self.0; get, row, put, put_writes, list, threads, delete_thread);
}
