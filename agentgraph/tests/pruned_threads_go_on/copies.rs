//! A copy is a thread of its own, with all that had finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::checkpoint::Place;
use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Code};

use super::savers;
use super::talk::{Talk, asks, said};

/// One node asks while another has finished; and how often that one ran.
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
async fn a_copy_is_asked_for_itself_and_keeps_what_had_finished() {
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
        assert_eq!(runs.load(Ordering::SeqCst), 1, "what is finished is finished in the copy too");
        graph.copy_thread("t", "third").await.unwrap();
        assert_eq!(graph.history("third").await.unwrap().len(), graph.history("t").await.unwrap().len());
    }
}

/// As a process leaves it that ends between the copy and the new ids of what is in it.
#[tokio::test]
async fn a_copy_that_was_cut_off_is_completed_by_the_next_call() {
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

/// What was done in it would be lost, or it would be a copy of what is no more.
#[tokio::test]
async fn a_copy_in_which_somebody_went_on_or_whose_original_did_is_left_as_it_is() {
    for saver in savers() {
        let (graph, _) = half_done(Arc::clone(&saver));
        graph.invoke(said("i")).thread("t").await.unwrap();
        for copy in ["ran", "edited", "other", "late"] {
            saver.upkeep().unwrap().copy_thread("t", copy).await.unwrap();
        }
        // Its tasks finish and ask once more, under ids of their own, and nothing is committed.
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
