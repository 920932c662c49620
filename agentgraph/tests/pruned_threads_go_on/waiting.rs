//! Which threads wait, and for what.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Catalog, Leases, ListQuery, PendingWrite, Place, Put, PutWrites, Row, StoreError, Tail, Upkeep, Usage,
    Waiting, WaitingQuery, stale,
};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Checkpointer, Code, Interrupt, InterruptId};

use super::common::poll::at_most;
use super::common::saver::NotingSaver;
use super::savers;
use super::talk::{Talk, TalkUpdate, asks, family, said};

#[tokio::test]
async fn an_unreadable_request_keeps_no_other_thread_from_being_told() {
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    for saver in savers() {
        let graph = graph.clone().checkpointer(Arc::clone(&saver));
        for number in 0..9 {
            graph.invoke(said("i")).thread(format!("t{number}")).await.unwrap();
        }
        for thread in ["t2", "t7"] {
            let (place, at) = (Place::root(thread), graph.state(thread).await.unwrap().unwrap().id);
            let write = PendingWrite { task: TaskId::from_u128(1), slot: 1, bytes: b"\xc1junk".to_vec() };
            saver.put_writes(PutWrites::new(place, at, &[write])).await.unwrap();
        }
        let waiting = graph.waiting().await.unwrap();
        assert_eq!(waiting.len(), 9);
        for one in waiting {
            let bad = ["t2", "t7"].contains(&&*one.thread);
            assert_eq!((one.interrupts.len(), one.problem.is_some()), (usize::from(!bad), bad), "{one:?}");
        }
    }
}

/// A store, or what stands before it, that cannot give what some threads wait for.
struct Unreadable {
    inner: MemorySaver,
    threads: &'static [&'static str],
}

#[async_trait::async_trait]
impl Checkpointer for Unreadable {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.inner.row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.inner.put(put).await
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.inner.put_writes(put).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.inner.list(place, query).await
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
        Some(self)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }
}

#[async_trait::async_trait]
impl Catalog for Unreadable {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let found = self.inner.waiting(query).await?;
        match found.iter().find(|one| self.threads.contains(&&*one.thread)) {
            None => Ok(found),
            Some(one) => Err(stale(Place::root(&one.thread), one.at)),
        }
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        self.inner.namespaces(thread).await
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        self.inner.branches(place).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.inner.usage().await
    }
}

#[tokio::test]
async fn what_a_store_cannot_say_of_one_thread_is_no_answer_about_the_others() {
    for threads in [&["t00"][..], &["t19"], &["t00", "t01", "t07", "t18", "t19"]] {
        let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
        let graph = graph.checkpointer(Unreadable { inner: MemorySaver::new(), threads });
        for number in 0..20 {
            graph.invoke(said("i")).thread(format!("t{number:02}")).await.unwrap();
        }
        for limit in [1, 3, 20, 50] {
            let (mut all, mut after) = (Vec::new(), String::new());
            loop {
                let page = graph.waiting().after(&after).limit(limit).await.unwrap();
                let Some(last) = page.last() else { break };
                after.clone_from(&last.thread);
                all.extend(page);
            }
            assert_eq!(all.len(), 20, "{limit}");
            let bad = all.iter().filter(|one| one.problem.as_ref().is_some_and(|it| it.code == Code::Stale));
            assert_eq!(bad.map(|one| &*one.thread).collect::<Vec<_>>(), threads);
        }
    }
}

/// Threads whose subgraphs asked before they were begun anew wait for nothing, as the store sees it they do.
#[tokio::test]
async fn a_page_is_empty_only_behind_the_last_thread_that_waits() {
    for saver in savers() {
        let graph = family(saver);
        for number in 0..6 {
            graph.invoke(said("i")).thread(format!("t{number}")).await.unwrap();
        }
        for number in [0, 1, 3] {
            let thread = format!("t{number}");
            graph.update_state(&thread).as_end(said("enough")).await.unwrap();
        }
        let (mut told, mut after) = (Vec::new(), String::new());
        loop {
            let page = graph.waiting().after(&after).limit(1).await.unwrap();
            let Some(last) = page.last() else { break };
            after.clone_from(&last.thread);
            told.extend(page.into_iter().map(|one| one.thread));
        }
        assert_eq!(told, ["t2", "t4", "t5"]);
    }
}

#[tokio::test]
async fn a_hundred_thousand_threads_that_wait_cost_no_task_and_are_one_query() {
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.checkpointer(Arc::clone(&saver));
    let name = |number: u32| format!("t{number:06}");
    // Most are copied row by row, since runs take time in a debug build.
    for number in (0..100_000).rev() {
        match number % 1_000 {
            777 => drop(graph.invoke(said("i")).thread(name(number)).await.unwrap()),
            _ if number > 99_777 => drop(graph.invoke(said("i")).thread(name(number)).await.unwrap()),
            _ => saver.copy_thread(&name(99_777), &name(number)).await.unwrap(),
        }
    }
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    let page = graph.waiting().after(name(49_999)).limit(10).await.unwrap();
    assert_eq!(
        page.iter().map(|one| one.thread.clone()).collect::<Vec<_>>(),
        (50_000..50_010).map(name).collect::<Vec<_>>()
    );
    assert_eq!(graph.waiting().await.unwrap().len(), 100_000);
    let answered = graph.resume("so").thread(name(77_777)).await.unwrap();
    assert_eq!(answered.output().said, ["i", "so"]);
    assert_eq!(graph.waiting().await.unwrap().len(), 99_999);
}

#[tokio::test]
async fn threads_that_wait_are_told_with_what_they_wait_for() {
    for saver in savers() {
        let graph = family(saver);
        for thread in ["c", "a", "b"] {
            graph.invoke(said("i")).thread(thread).await.unwrap();
        }
        let inside = graph.state("a").await.unwrap().unwrap().interrupts;
        let waiting = graph.waiting().await.unwrap();
        assert_eq!(waiting.iter().map(|one| &*one.thread).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(waiting[0].interrupts, inside, "in a subgraph, with its namespace");
        graph.resume_many([(inside[0].id.unwrap(), "so")]).thread("a").await.unwrap();
        graph.invoke(said("j")).thread("b").abandon().await.unwrap();
        let waiting = graph.waiting().await.unwrap();
        assert_eq!(
            waiting.iter().map(|one| (&*one.thread, one.interrupts.len())).collect::<Vec<_>>(),
            [("b", 1), ("c", 1)]
        );
        graph.delete_thread("b").await.unwrap();
        assert_eq!(graph.waiting().limit(5).await.unwrap().len(), 1);
    }
}

async fn fails() -> Result<TalkUpdate> {
    Err("no".into())
}

async fn asks_twice(ctx: Ctx) -> Result<TalkUpdate> {
    let first = ctx.interrupt::<String>("first?")?;
    Ok(said(first + &ctx.interrupt::<String>("second?")?))
}

/// What asks once, what asks twice, what finishes, and what fails and is stood in for by one who asks.
fn all_sorts(saver: NotingSaver, eager: bool) -> CompiledGraph<Talk> {
    let graph = StateGraph::new().node("once", asks).node("twice", asks_twice);
    let graph = graph.node("works", || async { said("worked") }).node("then", || async { said("then") });
    let graph = graph.node("fails", fails.on_error("stands_in")).node("stands_in", asks);
    let graph = graph.edge(START, "once").edge(START, "twice").edge(START, "works").edge(START, "fails");
    let graph = graph.edge("works", "then");
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(saver)
}

/// Who waits is asked of pending writes alone, without a look at what is to run next. An eager run that was
/// dropped has questions in its records, too, which are found when it has gone on to where it waits.
async fn tells_what_the_thread_says(
    graph: &CompiledGraph<Talk>,
    may_miss: bool,
    when: &str,
) -> Vec<InterruptId> {
    let ids = |interrupts: Vec<Interrupt>| -> BTreeSet<InterruptId> {
        interrupts.into_iter().filter_map(|one| one.id).collect()
    };
    let told = ids(graph.waiting().await.unwrap().into_iter().flat_map(|one| one.interrupts).collect());
    let state = graph.state("t").await.unwrap();
    let open = ids(state.map(|state| state.interrupts).unwrap_or_default());
    assert!(told.is_subset(&open) && (may_miss || told == open), "{when}: {told:?} of {open:?}");
    open.into_iter().collect()
}

#[tokio::test]
async fn whoever_is_said_to_wait_can_be_answered_wherever_a_run_was_dropped() {
    for eager in [false, true] {
        let mut ended = false;
        for polls in 0.. {
            let graph = all_sorts(NotingSaver::memory(), eager);
            let run = graph.invoke(said("i")).thread("t").into_future();
            let dropped = at_most(run, polls).await.is_none();
            let when = format!("{polls} polls, eager {eager}");
            let mut open = tells_what_the_thread_says(&graph, eager && dropped, &when).await;
            for turn in 0..6 {
                let Some(id) = open.first().copied() else { break };
                let run = graph.resume_many([(id, "so")]).thread("t").into_future();
                let dropped = at_most(run, polls).await.is_none();
                let when = format!("{when}, {turn} answers");
                open = tells_what_the_thread_says(&graph, eager && dropped, &when).await;
            }
            if std::mem::replace(&mut ended, !dropped) {
                assert!(open.is_empty() && polls > 5, "{when}");
                break;
            }
        }
    }
}
