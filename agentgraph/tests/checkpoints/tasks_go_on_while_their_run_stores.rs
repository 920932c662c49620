//! Tasks continue while their run stores. Otherwise the run could wait for something that one of its own
//! tasks holds: a connection, a row, an earlier place in a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentgraph::checkpoint::{
    Catalog, Leases, ListQuery, Place, Put, PutWrites, Row, StoreCode, StoreError, Tail, Upkeep, delegate,
};
use agentgraph::prelude::*;
use agentgraph::{BoxError, CheckpointId, Checkpointer, Durability, MemorySaver};

use crate::common::poll::{at_most, pending_for};
use crate::common::words::{Words, WordsUpdate, text};

/// What a test does before and after each call of a store.
#[async_trait::async_trait]
trait Hooks: Send + Sync + 'static {
    async fn before(&self, call: Call<'_>) -> Result<(), StoreError>;
    fn after(&self) {}
}

#[derive(Clone, Copy)]
enum Call<'a> {
    Read,
    Put(&'a Put<'a>),
    Writes(&'a PutWrites<'a>),
}

/// A store in memory with hooks.
struct HookedStore<H> {
    inner: Arc<MemorySaver>,
    hooks: H,
}

impl<H: Hooks> HookedStore<H> {
    fn new(hooks: H) -> Self {
        HookedStore { inner: Arc::default(), hooks }
    }

    async fn call<T>(
        &self,
        call: Call<'_>,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.hooks.before(call).await?;
        let guard = CallGuard(&self.hooks);
        pending_for(2).await;
        let answer = work.await;
        pending_for(2).await;
        drop(guard);
        answer
    }
}

/// Runs the hook after a call, even if the call is dropped.
struct CallGuard<'a, H: Hooks>(&'a H);

impl<H: Hooks> Drop for CallGuard<'_, H> {
    fn drop(&mut self) {
        self.0.after();
    }
}

#[async_trait::async_trait]
impl<H: Hooks> Checkpointer for HookedStore<H> {
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

    delegate!(self => &self.inner; threads, delete_thread);
}

/// A connection that serves one call at a time.
#[derive(Default)]
struct OneConnection {
    busy: AtomicBool,
}

#[async_trait::async_trait]
impl Hooks for OneConnection {
    async fn before(&self, _: Call<'_>) -> Result<(), StoreError> {
        for _ in 0..10_000 {
            if !self.busy.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        Err(StoreError::new(StoreCode::Store, "the call that has the connection does not end"))
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

/// Returns a graph of parallel subgraphs, which change a session of the outer run.
fn parallel_subgraphs(saver: Arc<dyn Checkpointer>, eager: bool) -> CompiledGraph<Words> {
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
        let words = notes.with(|notes| notes.join(" "));
        async move { Words::update().seen([words]) }
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
        let graph = parallel_subgraphs(Arc::clone(&saver), eager);
        let thread = format!("{eager} {durability:?}");
        let outcome = graph.invoke(Words::update()).thread(&thread).durability(durability).await.unwrap();
        assert!(text(outcome.output()).ends_with("inside inside inside inside inside"), "{outcome:?}");
    }
}

#[tokio::test]
async fn one_connection_is_enough_for_subgraphs() {
    assert_ends(Arc::new(HookedStore::new(OneConnection::default()))).await;
}

#[tokio::test]
async fn one_connection_is_enough_for_passes_whose_nodes_run_graphs() {
    let saver: Arc<dyn Checkpointer> = Arc::new(HookedStore::new(OneConnection::default()));
    let mut graph = DependencyGraph::<String>::new();
    for name in ["a", "b", "c"] {
        let other = parallel_subgraphs(Arc::clone(&saver), false);
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
async fn one_connection_to_postgres_is_enough_and_many_do_not_deadlock() {
    let server = crate::postgres_server::PostgresServer::get();
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

/// Delays the writes that subgraphs make for the outer run, and the commits of that run, by numbers of polls.
struct Slow {
    inside: u32,
    commits: u32,
}

#[async_trait::async_trait]
impl Hooks for Slow {
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

/// Returns a graph in which a subgraph and `beside` add notes to a session. `last` blocks until `ends` is
/// set, and `tells` writes the notes.
fn graph_with_notes(eager: bool, ends: &Arc<AtomicBool>, later: u32) -> StateGraph<Words> {
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
        let mut words = notes.with(|notes| notes.clone());
        words.sort();
        async move { Words::update().seen(words) }
    };
    let graph = StateGraph::new().session::<Notes>("notes");
    let graph = if eager { graph.eager() } else { graph };
    graph.node("inside", inside).node("beside", beside).node("last", last).node("tells", tells)
}

/// Drops a run of the graph, sets `ends` and returns the words of the call that finishes the run.
async fn notes_after_drop(
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

/// The delays let the writes overtake each other in every way.
#[tokio::test]
async fn session_changes_of_several_tasks_survive_a_dropped_run() {
    for eager in [false, true] {
        for (inside, commits) in [(40, 0), (0, 40), (7, 7), (15, 30)] {
            for later in 0..50 {
                let ends = Arc::default();
                let graph = graph_with_notes(eager, &ends, later);
                let graph = graph.edge(START, "inside").edge(START, "beside").edge(START, "last");
                let graph = graph.edge(["inside", "beside", "last"], "tells");
                let saver = Arc::new(HookedStore::new(Slow { inside, commits }));
                let words = notes_after_drop(graph, saver, &ends).await;
                assert_eq!(words, "beside inside", "eager {eager}, slow {inside} {commits}, later {later}");
            }
        }
    }
}

/// The subgraph has already stored the changes with its own checkpoint.
#[tokio::test]
async fn session_changes_of_a_subgraph_are_in_the_next_checkpoint_of_the_outer_run() {
    for eager in [false, true] {
        let ends = Arc::default();
        let graph = graph_with_notes(eager, &ends, 0).edge(START, "beside").edge("beside", "inside");
        let graph = graph.edge("inside", "last").edge("last", "tells");
        let words = notes_after_drop(graph, Arc::new(MemorySaver::new()), &ends).await;
        assert_eq!(words, "beside inside", "eager {eager}");
    }
}
