//! A copy is a thread of its own and keeps the results of finished tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::checkpoint::Place;
use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Code};

use super::savers;
use super::talk::{Talk, asks, said};

/// Builds a graph in which `asks` waits beside `works`, which has finished, and a counter of the runs of
/// `works`.
fn half_done(saver: Arc<dyn Checkpointer>) -> (CompiledGraph<Talk>, Arc<AtomicU32>) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let works = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { said("worked") }
    };
    let graph = StateGraph::new().node("works", works).node("asks", asks);
    let graph = graph.edge(START, "works").edge(START, "asks").compile().unwrap();
    (graph.checkpointer(saver), runs)
}

#[tokio::test]
async fn a_copy_has_its_own_interrupts_and_keeps_finished_tasks() {
    for saver in savers() {
        let (graph, runs) = half_done(saver);
        let outcome = graph.invoke(said("i")).thread("t").await.unwrap();
        graph.copy_thread("t", "copy").await.unwrap();
        assert_eq!(graph.copy_thread("t", "copy").await.unwrap_err().code(), Code::ThreadExists);
        let copy = graph.state("copy").await.unwrap().unwrap();
        assert_eq!(copy.values.said, ["i", "worked"]);
        assert_ne!(copy.interrupts[0].id, outcome.interrupts()[0].id);
        let answered = graph.resume("copied").thread("copy").await.unwrap();
        assert_eq!(answered.output().said, ["i", "worked", "copied"]);
        let answered = graph.resume("original").thread("t").await.unwrap();
        assert_eq!(answered.output().said, ["i", "worked", "original"]);
        assert_eq!(runs.load(Ordering::SeqCst), 1, "the copy does not run finished tasks again");
        graph.copy_thread("t", "third").await.unwrap();
        assert_eq!(graph.history("third").await.unwrap().len(), graph.history("t").await.unwrap().len());
    }
}

#[tokio::test]
async fn a_copy_of_a_missing_thread_is_an_error() {
    for saver in savers() {
        let (graph, _) = half_done(saver);
        let refused = graph.copy_thread("nowhere", "copy").await.unwrap_err();
        assert_eq!(refused.code(), Code::UnknownThread);
        assert!(graph.state("copy").await.unwrap().is_none());
    }
}

/// The process ended after the store copied the rows, and before they got new ids.
#[tokio::test]
async fn an_unfinished_copy_is_completed_by_the_next_call() {
    for saver in savers() {
        let (graph, runs) = half_done(Arc::clone(&saver));
        graph.invoke(said("i")).thread("t").await.unwrap();
        saver.upkeep().unwrap().copy_thread("t", "copy").await.unwrap();
        graph.copy_thread("t", "copy").await.unwrap();
        let copy = graph.state("copy").await.unwrap().unwrap();
        let waiting = graph.waiting().await.unwrap().remove(0);
        assert_eq!((&*waiting.thread, &waiting.interrupts), ("copy", &copy.interrupts));
        assert_eq!(graph.copy_thread("t", "copy").await.unwrap_err().code(), Code::ThreadExists);
        let answered = graph.resume("copied").thread("copy").await.unwrap();
        assert_eq!(
            (answered.output().said.join(" "), runs.load(Ordering::SeqCst)),
            ("i worked copied".into(), 1)
        );
    }
}

/// Completing the copy would lose the changes made in it, or would copy a state that the original has
/// left.
#[tokio::test]
async fn an_unfinished_copy_is_left_alone_if_it_or_its_original_has_continued() {
    for saver in savers() {
        let (graph, _) = half_done(Arc::clone(&saver));
        graph.invoke(said("i")).thread("t").await.unwrap();
        for copy in ["ran", "edited", "other", "late"] {
            saver.upkeep().unwrap().copy_thread("t", copy).await.unwrap();
        }
        // The tasks of `ran` run again and ask under ids of their own. Nothing is committed.
        graph.proceed().thread("ran").await.unwrap();
        graph.update_state("edited").update(said("edited")).await.unwrap();
        graph.invoke(said("j")).thread("u").await.unwrap();
        let refused = async |from: &str, to: &str| {
            let before = saver.get(Place::root(to), None).await.unwrap();
            assert_eq!(graph.copy_thread(from, to).await.unwrap_err().code(), Code::ThreadExists, "{to}");
            assert_eq!(saver.get(Place::root(to), None).await.unwrap(), before, "{to}");
        };
        refused("t", "t").await;
        refused("t", "ran").await;
        refused("t", "edited").await;
        refused("u", "other").await;
        refused("nothing", "other").await;
        graph.resume("so").thread("t").await.unwrap();
        refused("t", "late").await;
    }
}
