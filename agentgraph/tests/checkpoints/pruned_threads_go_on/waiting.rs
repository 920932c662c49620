//! `waiting()`: which threads wait, and for which answers.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Catalog, Leases, PendingWrite, Place, PutWrites, StoreError, Upkeep, Waiting, WaitingQuery, delegate,
    stale,
};
use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Code, Interrupt, InterruptId};

use super::savers;
use super::talk::{Talk, TalkUpdate, asks, family, said};
use crate::common::poll::at_most;
use crate::common::saver::NotingSaver;

#[tokio::test]
async fn an_unreadable_request_does_not_hide_other_threads() {
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    for saver in savers() {
        let graph = graph.clone().checkpointer(Arc::clone(&saver));
        for number in 0..9 {
            graph.invoke(said("i")).thread(format!("t{number}")).await.unwrap();
        }
        for thread in ["t2", "t7"] {
            let place = Place::root(thread);
            let at = graph.state(thread).await.unwrap().unwrap().id;
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

/// A store that fails when a page of waiting threads contains one of `threads`.
struct Unreadable {
    inner: MemorySaver,
    threads: &'static [&'static str],
}

#[async_trait::async_trait]
impl Checkpointer for Unreadable {
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

    delegate!(self => &self.inner; get, row, put, put_writes, list, threads, delete_thread);
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

    delegate!(self => &self.inner; namespaces, branches, usage);
}

#[tokio::test]
async fn a_store_error_about_some_threads_does_not_hide_the_others() {
    for threads in [&["t00"][..], &["t19"], &["t00", "t01", "t07", "t18", "t19"]] {
        let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
        let graph = graph.checkpointer(Unreadable { inner: MemorySaver::new(), threads });
        for number in 0..20 {
            graph.invoke(said("i")).thread(format!("t{number:02}")).await.unwrap();
        }
        for limit in [1, 3, 20, 50] {
            let mut all = Vec::new();
            let mut after = String::new();
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

/// The edits end three runs whose subgraphs asked. The threads wait for nothing, but the store still
/// lists their requests.
#[tokio::test]
async fn only_the_page_after_the_last_waiting_thread_is_empty() {
    for saver in savers() {
        let graph = family(saver);
        for number in 0..6 {
            graph.invoke(said("i")).thread(format!("t{number}")).await.unwrap();
        }
        for number in [0, 1, 3] {
            let thread = format!("t{number}");
            graph.update_state(&thread).as_end(said("enough")).await.unwrap();
        }
        let mut listed = Vec::new();
        let mut after = String::new();
        loop {
            let page = graph.waiting().after(&after).limit(1).await.unwrap();
            let Some(last) = page.last() else { break };
            after.clone_from(&last.thread);
            listed.extend(page.into_iter().map(|one| one.thread));
        }
        assert_eq!(listed, ["t2", "t4", "t5"]);
    }
}

#[tokio::test]
async fn a_hundred_thousand_waiting_threads_need_no_task_and_one_query() {
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.checkpointer(Arc::clone(&saver));
    let name = |number: u32| format!("t{number:06}");
    // Most threads are copied, since runs take time in a debug build.
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
async fn waiting_threads_are_listed_with_their_interrupts() {
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

/// Builds a graph with a node that asks once, one that asks twice, one that finishes, and one that fails
/// and whose handler asks.
fn all_sorts(saver: NotingSaver, eager: bool) -> CompiledGraph<Talk> {
    let graph = StateGraph::new().node("once", asks).node("twice", asks_twice);
    let graph = graph.node("works", || async { said("worked") }).node("then", || async { said("then") });
    let graph = graph.node("fails", fails.on_error("stands_in")).node("stands_in", asks);
    let graph = graph.edge(START, "once").edge(START, "twice").edge(START, "works").edge(START, "fails");
    let graph = graph.edge("works", "then");
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(saver)
}

/// Asserts that `waiting()` reports the interrupts that the state of the thread reports, and returns
/// them.
///
/// `waiting()` reads only pending writes, not the frontier. A dropped eager run also has requests in its
/// records, which `waiting()` misses until the run has proceeded to where it waits. `may_miss` allows
/// for that.
async fn assert_waiting_matches_the_state(
    graph: &CompiledGraph<Talk>,
    may_miss: bool,
    when: &str,
) -> Vec<InterruptId> {
    let ids = |interrupts: Vec<Interrupt>| -> BTreeSet<InterruptId> {
        interrupts.into_iter().filter_map(|one| one.id).collect()
    };
    let listed = ids(graph.waiting().await.unwrap().into_iter().flat_map(|one| one.interrupts).collect());
    let state = graph.state("t").await.unwrap();
    let open = ids(state.map(|state| state.interrupts).unwrap_or_default());
    assert!(listed.is_subset(&open) && (may_miss || listed == open), "{when}: {listed:?} of {open:?}");
    open.into_iter().collect()
}

#[tokio::test]
async fn every_listed_interrupt_can_be_answered_wherever_the_run_was_dropped() {
    for eager in [false, true] {
        let mut ended = false;
        for polls in 0.. {
            let graph = all_sorts(NotingSaver::memory(), eager);
            let run = graph.invoke(said("i")).thread("t").into_future();
            let dropped = at_most(run, polls).await.is_none();
            let when = format!("{polls} polls, eager {eager}");
            let mut open = assert_waiting_matches_the_state(&graph, eager && dropped, &when).await;
            for turn in 0..6 {
                let Some(id) = open.first().copied() else { break };
                let run = graph.resume_many([(id, "so")]).thread("t").into_future();
                let dropped = at_most(run, polls).await.is_none();
                let when = format!("{when}, {turn} answers");
                open = assert_waiting_matches_the_state(&graph, eager && dropped, &when).await;
            }
            if std::mem::replace(&mut ended, !dropped) {
                assert!(open.is_empty() && polls > 5, "{when}");
                break;
            }
        }
    }
}
