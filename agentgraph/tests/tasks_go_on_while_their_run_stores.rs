//! What a run awaits of its store may be what one of its own tasks holds: a connection, a row, the place
//! before it in a queue. So tasks go on while their run stores.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[cfg(feature = "postgres")]
mod postgres_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentgraph::checkpoint::{
    Catalog, Leases, ListQuery, Place, Put, PutWrites, Row, StoreCode, StoreError, Tail, Upkeep,
};
use agentgraph::prelude::*;
use agentgraph::{BoxError, CheckpointId, Checkpointer, Durability, MemorySaver};
use common::poll::{at_most, pending_for};
use common::words::{Words, WordsUpdate, text};

/// A store as a test wants it: what happens before and after each of its calls.
#[async_trait::async_trait]
trait Manner: Send + Sync + 'static {
    async fn before(&self, call: Call<'_>) -> Result<(), StoreError>;
    fn after(&self) {}
}

#[derive(Clone, Copy)]
enum Call<'a> {
    Read,
    Put(&'a Put<'a>),
    Writes(&'a PutWrites<'a>),
}

struct Mannered<M> {
    inner: Arc<MemorySaver>,
    manner: M,
}

impl<M: Manner> Mannered<M> {
    fn new(manner: M) -> Self {
        Mannered { inner: Arc::default(), manner }
    }

    async fn call<T>(
        &self,
        call: Call<'_>,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.manner.before(call).await?;
        let done = Calling(&self.manner);
        pending_for(2).await;
        let answer = work.await;
        pending_for(2).await;
        drop(done);
        answer
    }
}

/// Ends a call, also one that is dropped.
struct Calling<'a, M: Manner>(&'a M);

impl<M: Manner> Drop for Calling<'_, M> {
    fn drop(&mut self) {
        self.0.after();
    }
}

#[async_trait::async_trait]
impl<M: Manner> Checkpointer for Mannered<M> {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.call(Call::Read, self.inner.get(place, at)).await
    }
    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.call(Call::Read, self.inner.row(place, id)).await
    }
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.call(Call::Put(&put), self.inner.put(put)).await
    }
    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.call(Call::Writes(&put), self.inner.put_writes(put)).await
    }
    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.call(Call::Read, self.inner.list(place, query)).await
    }
    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        self.inner.threads().await
    }
    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        self.inner.delete_thread(thread).await
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
}

/// One call at a time: who calls waits for the others.
#[derive(Default)]
struct OneConnection {
    busy: AtomicBool,
}

#[async_trait::async_trait]
impl Manner for OneConnection {
    async fn before(&self, _: Call<'_>) -> Result<(), StoreError> {
        for _ in 0..10_000 {
            if !self.busy.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        Err(StoreError::new(StoreCode::Store, "whoever has the connection does not go on"))
    }

    fn after(&self) {
        self.busy.store(false, Ordering::Release);
    }
}

type Notes = Vec<String>;

async fn notes(ctx: Ctx, notes: Session<Notes>) -> WordsUpdate {
    pending_for(ctx.attempt()).await;
    notes.with(|notes| notes.push("inside".into()));
    Words::update().seen(["inside"])
}

async fn says(seen: Snapshot<Words>) -> WordsUpdate {
    pending_for(seen.seen.len() as u32).await;
    Words::update().seen(["says"])
}

/// Runs inside of runs, side by side, all of which change what belongs to the run around them.
fn family(saver: Arc<dyn Checkpointer>, eager: bool) -> CompiledGraph<Words> {
    let inside = || {
        let inside = StateGraph::new().session::<Notes>("notes").node("notes", notes).node("says", says);
        inside.edge(START, "notes").edge("notes", "says").compile().unwrap()
    };
    let names = ["a", "b", "c", "d", "e"];
    let mut graph = StateGraph::new().session::<Notes>("notes");
    if eager {
        graph = graph.eager();
    }
    for name in names {
        graph = graph.node(name, inside()).edge(START, name);
    }
    let tells = |notes: Session<Notes>| {
        let told = notes.with(|notes| notes.join(" "));
        async move { Words::update().seen([told]) }
    };
    graph
        .node("plain", says)
        .edge(START, "plain")
        .node("tells", tells)
        .edge(names, "tells")
        .compile()
        .unwrap()
        .checkpointer(saver)
}

async fn assert_ends(saver: Arc<dyn Checkpointer>) {
    for (eager, durability) in [false, true].into_iter().flat_map(|eager| {
        [Durability::Sync, Durability::Async, Durability::Exit].map(|durability| (eager, durability))
    }) {
        let graph = family(Arc::clone(&saver), eager);
        let thread = format!("{eager} {durability:?}");
        let outcome = graph.invoke(Words::update()).thread(&thread).durability(durability).await.unwrap();
        assert!(text(outcome.output()).ends_with("inside inside inside inside inside"), "{outcome:?}");
    }
}

#[tokio::test]
async fn one_connection_is_enough_for_runs_inside_of_runs() {
    assert_ends(Arc::new(Mannered::new(OneConnection::default()))).await;
}

#[tokio::test]
async fn one_connection_is_enough_for_passes_whose_nodes_run_graphs() {
    let saver: Arc<dyn Checkpointer> = Arc::new(Mannered::new(OneConnection::default()));
    let mut graph = DependencyGraph::<String>::new();
    for name in ["a", "b", "c"] {
        let other = family(Arc::clone(&saver), false);
        let runs = move |_: Deps<'static, String>| {
            let other = other.clone();
            async move {
                let outcome = other.invoke(Words::update()).thread(name).await?;
                Ok::<String, BoxError>(text(outcome.output()))
            }
        };
        graph =
            graph.node(name, runs).node(format!("after {name}"), |deps: Deps<'_, String>| deps[0].clone());
        graph = graph.edge(name, format!("after {name}"));
    }
    let graph = graph.node("plain", |_: Deps<'_, String>| String::new());
    let graph = graph.compile().unwrap().checkpointer(saver);
    let outputs = graph.invoke(()).thread("pass").await.unwrap().into_finished().unwrap();
    assert!(outputs["after c"].contains("inside inside"), "{}", outputs["after c"]);
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn one_connection_to_postgres_is_enough_and_many_do_not_lock_each_other_out() {
    let server = postgres_server::PostgresServer::get();
    for connections in [1, 2, 16] {
        let saver = agentgraph::PostgresSaver::builder(server.url())
            .schema(server.fresh_schema())
            .connections(connections);
        let saver: Arc<dyn Checkpointer> = Arc::new(saver.connect().await.unwrap());
        for _ in 0..2 {
            assert_ends(Arc::clone(&saver)).await;
            for thread in saver.threads().await.unwrap() {
                saver.delete_thread(&thread).await.unwrap();
            }
        }
    }
}

/// Takes long for what runs inside store of the run around them, or for the commits of that run.
struct Slow {
    inside: u32,
    commits: u32,
}

#[async_trait::async_trait]
impl Manner for Slow {
    async fn before(&self, call: Call<'_>) -> Result<(), StoreError> {
        match call {
            Call::Writes(put)
                if put.place.namespace.is_empty()
                    && put.writes.iter().all(|write| write.task.to_u128() == 0) =>
            {
                pending_for(self.inside).await;
            }
            Call::Put(put) if put.place.namespace.is_empty() => pending_for(self.commits).await,
            _ => {}
        }
        Ok(())
    }
}

/// A run inside notes something, and so does `beside`; `last` holds the run until it is dropped, and `tells`
/// what was noted.
fn noting(eager: bool, ends: &Arc<AtomicBool>, later: u32) -> StateGraph<Words> {
    let notes_inside = move |notes: Session<Notes>| async move {
        pending_for(later).await;
        notes.with(|notes| notes.push("inside".into()));
    };
    let inside = StateGraph::new().session::<Notes>("notes").node("notes", notes_inside);
    let inside = inside.edge(START, "notes").compile().unwrap();
    let beside = |notes: Session<Notes>| async move {
        pending_for(5).await;
        notes.with(|notes| notes.push("beside".into()));
    };
    let ends = Arc::clone(ends);
    let last = move || {
        let ends = Arc::clone(&ends);
        async move {
            if !ends.load(Ordering::Acquire) {
                std::future::pending::<()>().await;
            }
        }
    };
    let tells = |notes: Session<Notes>| {
        let mut told = notes.with(|notes| notes.clone());
        told.sort();
        async move { Words::update().seen(told) }
    };
    let graph = StateGraph::new().session::<Notes>("notes");
    let graph = if eager { graph.eager() } else { graph };
    graph.node("inside", inside).node("beside", beside).node("last", last).node("tells", tells)
}

/// What is told by the call that goes on with a run that was dropped.
async fn told_after_drop(
    graph: StateGraph<Words>,
    saver: Arc<dyn Checkpointer>,
    ends: &AtomicBool,
) -> String {
    let graph = graph.compile().unwrap().checkpointer(saver);
    let run = Box::pin(graph.invoke(Words::update()).thread("t").into_future());
    assert!(at_most(run, 2_000).await.is_none());
    ends.store(true, Ordering::Release);
    text(graph.proceed().thread("t").await.unwrap().output())
}

/// However their writes cross on the way to the store.
#[tokio::test]
async fn what_several_note_in_a_session_is_not_lost_with_a_run_that_is_dropped() {
    for eager in [false, true] {
        for (inside, commits) in [(40, 0), (0, 40), (7, 7), (15, 30)] {
            for later in 0..50 {
                let ends = Arc::default();
                let graph = noting(eager, &ends, later);
                let graph = graph.edge(START, "inside").edge(START, "beside").edge(START, "last");
                let graph = graph.edge(["inside", "beside", "last"], "tells");
                let saver = Arc::new(Mannered::new(Slow { inside, commits }));
                let told = told_after_drop(graph, saver, &ends).await;
                assert_eq!(told, "beside inside", "eager {eager}, slow {inside} {commits}, later {later}");
            }
        }
    }
}

/// The run inside has stored it with its own checkpoint before.
#[tokio::test]
async fn what_a_run_inside_notes_in_a_session_is_in_the_next_checkpoint_of_the_run_around_it() {
    for eager in [false, true] {
        let ends = Arc::default();
        let graph = noting(eager, &ends, 0).edge(START, "beside").edge("beside", "inside");
        let graph = graph.edge("inside", "last").edge("last", "tells");
        let told = told_after_drop(graph, Arc::new(MemorySaver::new()), &ends).await;
        assert_eq!(told, "beside inside", "eager {eager}");
    }
}
