//! A state is encoded once for all tasks that read it, and a call without its state asks for it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agentgraph::Code;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize, Serializer};

use super::far::{Far, carried};

thread_local! {
    /// Of one test: each has a thread of its own.
    static ENCODED: Cell<usize> = const { Cell::new(0) };
}

/// A text that counts how often it is encoded.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
struct Counted(String);

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ENCODED.set(ENCODED.get() + 1);
        serializer.serialize_newtype_struct("Counted", &self.0)
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Document {
    text: Counted,
    #[reduce(append)]
    found: Vec<u64>,
}

fn fan_out() -> CompiledGraph<Document> {
    let split = || async { Command::to((0..100_u64).map(|n| Dispatch::new("count", n)).collect::<Vec<_>>()) };
    let count = |Input(n): Input<u64>, document: Snapshot<Document>| async move {
        Document::update().found([n + document.text.0.len() as u64])
    };
    let graph = StateGraph::new().node("split", split.targets(["count"])).node("count", count.remote());
    graph.edge(START, "split").compile().unwrap()
}

#[tokio::test]
async fn a_fan_out_of_100_over_a_megabyte_hands_the_state_over_once() {
    let input = || Document::update().text(Counted("x".repeat(1 << 20)));
    let near = fan_out().invoke(input()).await.unwrap().into_finished().unwrap();
    let far = Far::of(fan_out()).compact();
    ENCODED.set(0);
    let hosted = fan_out().host(far.clone()).invoke(input()).await.unwrap().into_finished().unwrap();
    assert_eq!(near.found, hosted.found);
    // `split` leaves the state as it is, and each superstep encodes the one that it reads.
    assert_eq!(ENCODED.get(), 2);
    let calls = far.calls();
    let counts: Vec<_> = calls.iter().filter(|call| call.node == "count").collect();
    assert_eq!(counts.len(), 100);
    let first = counts[0].state().unwrap();
    assert!(counts.iter().all(|call| Arc::ptr_eq(call.state().unwrap(), first)));
    let hashes: BTreeSet<_> = counts.iter().map(|call| call.state_hash()).collect();
    let tasks: BTreeSet<_> = counts.iter().map(|call| call.task).collect();
    assert_eq!((hashes.len(), tasks.len()), (1, 100));
    assert!(counts.iter().all(|call| call.remote) && !calls[0].remote);
    assert!(counts.iter().map(|call| call.index).eq(0..100));
    // What goes to and fro without the state is small.
    let mut bytes = 0;
    for call in &counts {
        let mut call = (*call).clone();
        call.take_state().unwrap();
        bytes += rmp_serde::to_vec(&call).unwrap().len();
    }
    assert!(bytes < 100 * 600, "{bytes} bytes for 100 calls");
}

#[tokio::test]
async fn a_state_that_was_held_back_is_taken_without_a_copy() {
    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Single(u32);
    impl Clone for Single {
        fn clone(&self) -> Self {
            CLONED.fetch_add(1, Ordering::SeqCst);
            Single(self.0)
        }
    }
    static CLONED: AtomicUsize = AtomicUsize::new(0);
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    struct Held {
        single: Single,
        #[reduce(append)]
        seen: Vec<u32>,
    }
    let build = || {
        let add = || async { Held::update().seen([1]) };
        let graph = StateGraph::new().node("a", add).node("b", add).node("c", add).edge(START, "a");
        graph.edge(START, "b").edge(["a", "b"], "c").compile().unwrap()
    };
    let held = build().host(Far::of(build())).invoke(Held::update()).await.unwrap().into_finished().unwrap();
    assert_eq!((held.seen.len(), CLONED.load(Ordering::SeqCst)), (3, 0));
}

#[tokio::test]
async fn a_call_without_its_state_says_so_and_takes_only_that_state() {
    let far = Far::of(fan_out());
    fan_out().host(far.clone()).invoke(Document::update()).await.unwrap();
    let mut call = far.calls().remove(0);
    let state = call.take_state().unwrap();
    let mut bare = carried(&call, true).unwrap();
    assert_eq!((bare.state(), bare.state_hash()), (None, call.state_hash()));
    let error = fan_out().run_task(bare.clone()).await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.to_string().contains("has no state"), "{error}");
    let other = bare.put_state(Arc::from(&b"other"[..])).unwrap_err();
    assert_eq!(other.code(), Code::Host);
    bare.put_state(state).unwrap();
    assert!(fan_out().run_task(bare).await.is_ok());
}

#[tokio::test]
async fn a_task_has_one_id_in_this_process_and_on_a_host() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    struct Ids {
        #[reduce(append)]
        seen: Vec<String>,
    }
    async fn note(ctx: Ctx) -> Result<IdsUpdate> {
        if ctx.node() == "fails" {
            return Err("no".into());
        }
        Ok(Ids::update().seen([format!("{}", ctx.task_id())]))
    }
    for eager in [false, true] {
        let build = || {
            let inner = StateGraph::new().node("x", note).node("y", note).edge(START, "x").edge("x", "y");
            let inner = if eager { inner.eager() } else { inner };
            let split =
                || async { Command::<Ids>::new().also_goto([1, 2].map(|n| Dispatch::new("note", n))) };
            let graph = StateGraph::new()
                .node("split", split)
                .node("note", note)
                .node("fails", note.on_error("handler"))
                .node("handler", note)
                .node("inner", inner.compile().unwrap())
                .edge(START, "split")
                .edge("split", "fails")
                .edge("split", "inner");
            (if eager { graph.eager() } else { graph }).compile().unwrap()
        };
        let far = Far::of(build());
        let hosted = build().host(far.clone()).invoke(Ids::update()).await.unwrap().into_finished().unwrap();
        let written: BTreeSet<_> = hosted.seen.iter().cloned().collect();
        assert_eq!(written.len(), 5, "{:?}", hosted.seen);
        let sent: BTreeSet<_> = far.calls().iter().map(|call| call.task.to_string()).collect();
        assert!(written.is_subset(&sent), "{written:?} {sent:?}");
    }
}

#[tokio::test]
async fn a_task_that_goes_on_in_another_process_keeps_its_id() {
    for eager in [false, true] {
        let ids = Arc::new(Mutex::new(Vec::new()));
        let build = || {
            let ids = Arc::clone(&ids);
            let note = move |ctx: Ctx| {
                let mut ids = ids.lock().unwrap();
                ids.push(ctx.task_id());
                // Both tasks fail in the first process.
                let failed = if ids.len() <= 2 { Err("the power failed".into()) } else { Ok(()) };
                async move { failed as Result<()> }
            };
            let inner = StateGraph::<Document>::new().node("x", note.clone()).edge(START, "x");
            let inner = if eager { inner.eager() } else { inner };
            let graph = StateGraph::new().node("note", note).node("inner", inner.compile().unwrap());
            let graph = graph.edge(START, "note").edge(START, "inner");
            (if eager { graph.eager() } else { graph }).compile().unwrap()
        };
        let saver = Arc::new(MemorySaver::new());
        let near = build().checkpointer(Arc::clone(&saver));
        near.invoke(Document::update()).thread("t").await.unwrap_err();
        let hosted = build().checkpointer(saver).host(Far::of(build()));
        hosted.proceed().thread("t").await.unwrap();
        let ids = ids.lock().unwrap();
        let (first, second): (BTreeSet<_>, BTreeSet<_>) =
            (ids[..2].iter().collect(), ids[2..].iter().collect());
        assert_eq!((first.len(), first), (2, second), "eager: {eager}");
    }
}
