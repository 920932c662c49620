//! A stored thread reports why it failed, also later and in another process: each open task that failed,
//! with its code, text and attempt. A result or a question of the task removes its failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::{BoxError, CheckpointId, Code, DependencyGraph, Durability, Failure, Memory, State};
use serde::{Deserialize, Serialize};

use crate::common::words::{Words, WordsUpdate, says};

/// The number of failures that are left for the nodes that share it.
#[derive(Clone, Default)]
struct Fails(Arc<AtomicU32>);

impl Fails {
    fn times(times: u32) -> Self {
        Fails(Arc::new(AtomicU32::new(times)))
    }

    fn fails(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    /// Returns a node that fails while failures are left.
    fn node(
        &self,
        name: &'static str,
    ) -> impl Fn() -> std::future::Ready<Result<WordsUpdate>> + Clone + Send + Sync + 'static {
        let fails = self.clone();
        move || {
            std::future::ready(if fails.fails() {
                Err(format!("{name} broke").into())
            } else {
                Ok(Words::update().seen([name]))
            })
        }
    }
}

fn line(failure: &Failure) -> String {
    let within = if failure.namespace().is_empty() { "" } else { " inside" };
    let node = failure.node();
    let code = failure.code();
    let message = failure.message();
    format!("{node}{within}: {code} {message} ({})", failure.attempt())
}

async fn failures<S: State>(graph: &CompiledGraph<S>) -> Vec<String> {
    graph.state("t").await.unwrap().unwrap().failures.iter().map(line).collect()
}

/// Returns the failures in the history, for each checkpoint that has any.
async fn in_history<S: State>(graph: &CompiledGraph<S>) -> Vec<(CheckpointId, Vec<String>)> {
    let history = graph.history("t").await.unwrap().into_iter();
    let lines = history.map(|one| (one.id, one.failures.iter().map(line).collect::<Vec<_>>()));
    lines.filter(|(_, lines)| !lines.is_empty()).collect()
}

async fn fail(graph: &CompiledGraph<Words>, durability: Durability) -> agentgraph::Error {
    graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap_err()
}

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// Builds `a`, then `b` and `c`, which may fail, and `d`, which does not, in parallel with them.
fn branches(fails: &Fails) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", says("a"))
        .node("b", fails.node("b"))
        .node("c", fails.node("c"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("a", "c")
        .edge("a", "d")
}

#[tokio::test]
async fn every_failed_task_is_listed_in_task_order_by_the_error_and_the_thread() {
    for durability in ALL {
        for eager in [false, true] {
            let saver = Arc::new(MemorySaver::new());
            let fails = Fails::times(2);
            let make = || {
                let graph = branches(&fails);
                let graph = if eager { graph.eager() } else { graph };
                graph.compile().unwrap().checkpointer(Arc::clone(&saver))
            };
            let error = fail(&make(), durability).await;
            let expected = ["b: E_NODE_FAILED b broke (1)", "c: E_NODE_FAILED c broke (1)"];
            let listed: Vec<_> = error.failures().iter().map(line).collect();
            assert_eq!(listed, expected, "{durability:?}, eager: {eager}");
            assert_eq!((error.node(), error.code()), (Some("b"), Code::NodeFailed));
            assert_eq!(error.to_string(), "E_NODE_FAILED: node `b`: b broke (thread `t`)");

            // Another process has another graph and the same store.
            let later = make();
            assert_eq!(failures(&later).await, expected, "{durability:?}, eager: {eager}");
            let newest = later.state("t").await.unwrap().unwrap().id;
            let history = in_history(&later).await;
            assert_eq!(history.first().unwrap(), &(newest, expected.map(str::to_owned).to_vec()));
            let at = later.state_at("t", newest).await.unwrap().unwrap();
            assert_eq!(at.failures.iter().map(line).collect::<Vec<_>>(), expected);

            let mut done = later.proceed().thread("t").await.unwrap().into_finished().unwrap().seen;
            done.sort();
            assert_eq!(done, ["a", "b", "c", "d"]);
            assert!(failures(&later).await.is_empty(), "the commit removed the failures");
            assert_eq!(later.history("t").limit(1).await.unwrap()[0].failures, []);
        }
    }
}

#[tokio::test]
async fn a_single_failed_task_is_listed() {
    for durability in ALL {
        for eager in [false, true] {
            let fails = Fails::times(1);
            let graph = StateGraph::new().node("a", says("a")).node("b", fails.node("b"));
            let graph = graph.edge(START, "a").edge("a", "b");
            let graph = if eager { graph.eager() } else { graph };
            let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
            let error = fail(&graph, durability).await;
            assert_eq!(error.to_string(), "E_NODE_FAILED: node `b`: b broke (thread `t`)");
            assert_eq!(error.failures().len(), 1);
            assert_eq!(failures(&graph).await, ["b: E_NODE_FAILED b broke (1)"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn codes_and_attempts_are_kept() {
    let always = || async { Err::<(), BoxError>("no".into()) };
    let retried = RetryPolicy::attempts(3).initial(Duration::from_millis(1));
    for eager in [false, true] {
        let graph = StateGraph::<Words>::new()
            .node("tries", always.retry(retried.clone()))
            .node("late", (|| std::future::pending::<()>()).timeout(Duration::from_secs(5)))
            .node("panics", || async {
                if true {
                    panic!("oh")
                }
            })
            .node("asks", |_: Dep<String>| async {})
            .dep("text".to_owned());
        let graph =
            ["tries", "late", "panics", "asks"].iter().fold(graph, |graph, node| graph.edge(START, *node));
        let graph = if eager { graph.eager() } else { graph };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let graph = graph.services(crate::common::clock::TokioClock::default());
        fail(&graph, Durability::Sync).await;
        let found = failures(&graph).await;
        let codes = ["tries: E_NODE_FAILED no (3)", "late: E_NODE_TIMEOUT", "panics: E_NODE_PANICKED"];
        assert_eq!(found.len(), 3, "{found:?}");
        for (found, code) in found.iter().zip(codes) {
            assert!(found.starts_with(code), "{found}");
        }
    }
}

#[tokio::test]
async fn a_task_that_succeeds_or_asks_later_is_no_longer_listed() {
    for eager in [false, true] {
        let fails = Fails::times(3);
        let first = fails.clone();
        let second = fails.clone();
        let b = move || {
            let fails = first.clone();
            async move {
                if fails.fails() {
                    Err::<WordsUpdate, BoxError>("b".into())
                } else {
                    Ok(Words::update().seen(["b"]))
                }
            }
        };
        let c = move |ctx: Ctx| {
            let fails = second.clone();
            async move {
                if fails.fails() {
                    return Err::<WordsUpdate, BoxError>("c".into());
                }
                let answer: String = ctx.interrupt("?")?;
                Ok(Words::update().seen([answer]))
            }
        };
        let graph = StateGraph::new().node("b", b).node("c", c).edge(START, "b").edge(START, "c");
        let graph = if eager { graph.eager() } else { graph };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        fail(&graph, Durability::Sync).await;
        assert_eq!(failures(&graph).await, ["b: E_NODE_FAILED b (1)", "c: E_NODE_FAILED c (1)"]);
        // `b` fails once more, and `c` asks.
        graph.proceed().thread("t").await.unwrap_err();
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((state.failures.len(), state.interrupts.len()), (1, 1), "eager: {eager}, {state:?}");
        assert_eq!(state.failures[0].node(), "b");
        // Now `c` gets its answer and `b` succeeds.
        let waits = graph.resume("c").thread("t").max_supersteps(9).await;
        let _ = waits.unwrap().into_finished().unwrap();
        assert!(failures(&graph).await.is_empty());
    }
}

#[tokio::test]
async fn an_error_before_a_question_does_not_return_after_the_answer() {
    for eager in [false, true] {
        let fails = Fails::times(1);
        let also = fails.clone();
        let asks = move |ctx: Ctx| {
            let fails = also.clone();
            async move {
                if fails.fails() {
                    return Err::<WordsUpdate, BoxError>("at first".into());
                }
                let answer: String = ctx.interrupt("?")?;
                match &*answer {
                    "wait" => std::future::pending().await,
                    _ => Ok(Words::update().seen([answer])),
                }
            }
        };
        let graph = StateGraph::new().node("asks", asks).edge(START, "asks");
        let graph = if eager { graph.eager() } else { graph };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        fail(&graph, Durability::Sync).await;
        assert_eq!(failures(&graph).await.len(), 1);
        graph.proceed().thread("t").await.unwrap();
        assert!(failures(&graph).await.is_empty(), "the task waits for an answer");
        // The call is dropped while the task runs again.
        let cut = Box::pin(std::future::IntoFuture::into_future(graph.resume("wait").thread("t")));
        assert!(crate::common::poll::at_most(cut, 5).await.is_none());
        assert!(
            failures(&graph).await.is_empty(),
            "eager: {eager}: the task has not failed since its answer"
        );
    }
}

#[tokio::test]
async fn a_cancelled_sibling_keeps_its_earlier_error() {
    let fails = Fails::times(3);
    let once = Fails::times(1);
    let then_hangs = move || {
        let once = once.clone();
        async move {
            if once.fails() { Err::<(), BoxError>("first".into()) } else { std::future::pending().await }
        }
    };
    let graph = StateGraph::new().node("b", fails.node("b")).node("c", then_hangs);
    let graph = graph.edge(START, "b").edge(START, "c").compile().unwrap().checkpointer(MemorySaver::new());
    fail(&graph, Durability::Sync).await;
    let error = graph.proceed().thread("t").siblings(Siblings::Cancel).await.unwrap_err();
    assert_eq!(error.failures().len(), 1);
    assert_eq!(failures(&graph).await.len(), 2);
}

#[tokio::test]
async fn a_failed_handler_is_listed_under_its_own_name() {
    for eager in [false, true] {
        let fails = Fails::times(2);
        let graph = StateGraph::new()
            .node("b", fails.node("b").on_error("fix"))
            .node("fix", fails.node("fix"))
            .edge(START, "b");
        let graph = if eager { graph.eager() } else { graph };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let error = fail(&graph, Durability::Sync).await;
        assert_eq!(
            error.failures().iter().map(line).collect::<Vec<_>>(),
            ["fix: E_NODE_FAILED fix broke (1)"]
        );
        assert_eq!(failures(&graph).await, ["fix: E_NODE_FAILED fix broke (1)"]);
        let done = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(done.seen, ["fix"]);
        assert!(failures(&graph).await.is_empty());
    }
}

#[tokio::test]
async fn failures_inside_a_subgraph_are_listed_with_its_namespace() {
    for memory in [Memory::PerCall, Memory::PerThread] {
        for eager in [false, true] {
            let fails = Fails::times(2);
            let child = StateGraph::new().node("x", fails.node("x")).node("y", fails.node("y"));
            let child = child.edge(START, "x").edge(START, "y");
            let child = if eager { child.eager() } else { child };
            let graph = StateGraph::new()
                .node("sub", child.compile().unwrap().memory(memory))
                .node("beside", says("beside"))
                .edge(START, "sub")
                .edge(START, "beside")
                .compile()
                .unwrap()
                .checkpointer(MemorySaver::new());
            let error = fail(&graph, Durability::Sync).await;
            assert_eq!(error.failures().len(), 1);
            let found = failures(&graph).await;
            assert!(found[0].starts_with("sub: E_NODE_FAILED E_NODE_FAILED: node `x`: x broke"), "{found:?}");
            let inside = ["x inside: E_NODE_FAILED x broke (1)", "y inside: E_NODE_FAILED y broke (1)"];
            assert_eq!(found[1..], inside, "{memory:?}, eager: {eager}");
            assert_eq!(in_history(&graph).await[0].1, found);
            graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
            assert!(failures(&graph).await.is_empty());
        }
    }
}

#[tokio::test]
async fn a_pass_of_a_dependency_graph_lists_its_failed_nodes() {
    for durability in ALL {
        let fails = Fails::times(2);
        let node = |name: &'static str| {
            let fails = fails.clone();
            move || if fails.fails() { Err::<String, BoxError>(name.into()) } else { Ok(name.to_owned()) }
        };
        let graph = DependencyGraph::<String>::new()
            .node("a", || Ok::<_, BoxError>("a".to_owned()))
            .node("late", node("late"))
            .node("early", node("early"))
            .edge("a", "late")
            .edge("a", "early")
            .compile()
            .unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        // One node at a time, so that only the first of the two runs.
        let error = graph.invoke(()).thread("t").durability(durability).max_concurrency(1).await.unwrap_err();
        assert_eq!(error.failures().iter().map(line).collect::<Vec<_>>(), ["late: E_NODE_FAILED late (1)"]);
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(state.failures.iter().map(line).collect::<Vec<_>>(), ["late: E_NODE_FAILED late (1)"]);
        let history = graph.history("t").await.unwrap();
        assert_eq!(history[0].failures, state.failures);
        graph.proceed().thread("t").await.unwrap_err();
        assert_eq!(
            graph.state("t").await.unwrap().unwrap().failures,
            state.failures,
            "the second failure is the same"
        );
        graph.proceed().thread("t").await.unwrap();
        assert!(graph.state("t").await.unwrap().unwrap().failures.is_empty());
    }
}

#[tokio::test]
async fn a_pass_without_a_checkpointer_lists_its_failed_node() {
    let graph = DependencyGraph::<String>::new().node("a", || Err::<String, BoxError>("no".into()));
    let error = graph.compile().unwrap().invoke(()).await.unwrap_err();
    assert_eq!(error.failures().iter().map(line).collect::<Vec<_>>(), ["a: E_NODE_FAILED no (1)"]);
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct One {
    value: u32,
}

#[tokio::test]
async fn a_failure_outside_tasks_is_kept() {
    for durability in ALL {
        let writes = || async { One::update().value(1) };
        let graph = StateGraph::new()
            .node("first", writes)
            .node("a", writes)
            .node("b", writes)
            .edge(START, "first")
            .edge("first", "a")
            .edge("first", "b")
            .compile()
            .unwrap()
            .checkpointer(MemorySaver::new());
        let error = graph.invoke(One::update()).thread("t").durability(durability).await.unwrap_err();
        assert_eq!((error.code(), error.failures().len()), (Code::ConcurrentUpdate, 0));
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(state.failures.len(), 1, "{durability:?}");
        assert_eq!(state.failures[0].code(), Code::ConcurrentUpdate);
        assert!(state.failures[0].message().contains("`value`"));
        assert_eq!(graph.history("t").await.unwrap()[0].failures, state.failures);
        graph.update_state("t").as_end(One::update()).await.unwrap();
        assert!(graph.state("t").await.unwrap().unwrap().failures.is_empty());
    }
}

#[tokio::test]
async fn a_failure_stays_on_its_branch_and_survives_an_edit_of_the_state() {
    let fails = Fails::times(2);
    let graph = branches(&fails).compile().unwrap().checkpointer(MemorySaver::new());
    fail(&graph, Durability::Sync).await;
    let failed_at = graph.state("t").await.unwrap().unwrap().id;
    graph.update_state("t").update(Words::update().seen(["edit"])).await.unwrap();
    assert_eq!(failures(&graph).await.len(), 2, "nothing has run since");
    // A fork on which nothing fails.
    graph.proceed().thread("t").from(CheckpointId::new(0, 0)).await.unwrap();
    assert!(failures(&graph).await.is_empty());
    let old = graph.history("t").branch(0).await.unwrap();
    assert_eq!((old[0].failures.len(), old[1].id), (2, failed_at));
}

#[tokio::test]
async fn a_copy_lists_the_failures() {
    let fails = Fails::times(2);
    let graph = branches(&fails).compile().unwrap().checkpointer(MemorySaver::new());
    fail(&graph, Durability::Sync).await;
    graph.copy_thread("t", "copy").await.unwrap();
    assert_eq!(graph.state("copy").await.unwrap().unwrap().failures.len(), 2);
}

#[tokio::test]
async fn a_run_without_failures_leaves_no_pending_writes() {
    use agentgraph::checkpoint::{Checkpointer, Place};
    let saver = Arc::new(MemorySaver::new());
    let graph = branches(&Fails::default()).compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert!(saver.get(Place::root("t"), None).await.unwrap().unwrap().writes.is_empty());
}

#[cfg(feature = "encryption")]
#[tokio::test]
async fn an_encrypted_store_holds_no_failure_text_in_clear() {
    use agentgraph::checkpoint::{Checkpointer, EncryptedSaver, EncryptionKey, KeyRing, Place};
    let inner = Arc::new(MemorySaver::new());
    let keys = KeyRing::new("k", EncryptionKey::from_bytes([7; 32])).unwrap();
    let fails = Fails::times(2);
    let saver = EncryptedSaver::new(Arc::clone(&inner), keys);
    let graph = branches(&fails).compile().unwrap().checkpointer(saver);
    fail(&graph, Durability::Sync).await;
    assert_eq!(failures(&graph).await.len(), 2);
    let writes = inner.get(Place::root("t"), None).await.unwrap().unwrap().writes;
    let text = |bytes: &[u8]| bytes.windows(5).any(|part| part == b"broke");
    assert!(writes.len() >= 3 && !writes.iter().any(|write| text(&write.bytes)));
}

fn explode(old: &mut u32, new: u32) {
    assert!(new < 2, "too much");
    *old = new;
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Fragile {
    #[reduce(with = explode)]
    value: u32,
}

#[tokio::test]
async fn a_panic_outside_nodes_is_kept() {
    for durability in ALL {
        let graph = StateGraph::new()
            .node("one", || async { Fragile::update().value(1) })
            .node("two", || async { Fragile::update().value(2) })
            .edge(START, "one")
            .edge("one", "two")
            .compile()
            .unwrap()
            .checkpointer(MemorySaver::new());
        graph.update_state("t").as_start(Fragile::update()).await.unwrap();
        let error = graph.proceed().thread("t").durability(durability).await.unwrap_err();
        assert_eq!(error.code(), Code::NodePanicked);
        let state = graph.state("t").await.unwrap().unwrap();
        let next = if durability == Durability::Exit { "one" } else { "two" };
        assert_eq!(state.next, [next], "{durability:?}");
        assert_eq!(state.failures.len(), 1, "{durability:?}");
        assert!(state.failures[0].message().contains("too much"), "{:?}", state.failures);
    }
}

/// A run that fails before its first commit adds no failure to the checkpoints of the run before it.
#[tokio::test]
async fn a_run_that_stored_nothing_adds_no_failure_to_the_run_before() {
    for durability in ALL {
        let wrote = Arc::new(AtomicU32::new(1));
        let writes = Arc::clone(&wrote);
        let write = move || std::future::ready(Fragile::update().value(writes.load(Ordering::Relaxed)));
        let graph = StateGraph::new().node("write", write).edge(START, "write").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let run =
            |value| graph.invoke(Fragile::update().value(value)).thread("t").durability(durability).abandon();
        run(0).await.unwrap().into_finished().unwrap();
        let first = graph.state("t").await.unwrap().unwrap().id;

        // The input breaks a reducer.
        assert_eq!(run(2).await.unwrap_err().code(), Code::NodePanicked);
        assert_eq!(run(2).from(CheckpointId::new(0, 0)).await.unwrap_err().code(), Code::NodePanicked);
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((state.id, state.failures.len()), (first, 0), "{durability:?}");
        // A fork with the number that the failed fork would have used begins without failures.
        run(0).from(CheckpointId::new(0, 0)).await.unwrap().into_finished().unwrap();
        assert!(in_history(&graph).await.is_empty(), "{durability:?}");

        // The first superstep breaks the reducer.
        let before = graph.state("t").await.unwrap().unwrap().id;
        wrote.store(2, Ordering::Relaxed);
        assert_eq!(run(0).await.unwrap_err().code(), Code::NodePanicked);
        let state = graph.state("t").await.unwrap().unwrap();
        match durability {
            Durability::Exit => assert_eq!((state.id, state.failures.len()), (before, 0)),
            _ => assert_eq!((&state.next[..], state.failures.len()), (&["write".to_owned()][..], 1)),
        }
    }
}

#[tokio::test]
async fn an_answer_that_a_subgraph_cannot_read_is_a_failure_of_its_task() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let yes: bool = ctx.interrupt("yes?")?;
        Ok(Words::update().seen([yes.to_string()]))
    }
    for eager in [false, true] {
        let child = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
        let graph = StateGraph::new().node("child", child).edge(START, "child");
        let graph = if eager { graph.eager() } else { graph }.compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        let error = graph.resume("maybe").thread("t").await.unwrap_err();
        let failed: Vec<_> = error.failures().iter().map(|one| (one.node(), one.code())).collect();
        assert_eq!(
            (error.code(), failed),
            (Code::BadAnswer, vec![("child", Code::BadAnswer)]),
            "eager: {eager}"
        );
        let open = graph.state("t").await.unwrap().unwrap();
        assert_eq!((open.failures.len(), open.interrupts.len()), (0, 1), "the question is open again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_timeout_is_listed_until_a_task_asks() {
    let hangs = Arc::new(AtomicU32::new(1));
    let node = {
        let hangs = Arc::clone(&hangs);
        move |ctx: Ctx| {
            let hangs = Arc::clone(&hangs);
            async move {
                if hangs.load(Ordering::SeqCst) == 1 {
                    std::future::pending::<()>().await;
                }
                let answer: String = ctx.interrupt("?")?;
                Ok::<_, BoxError>(Words::update().seen([answer]))
            }
        }
    };
    let graph = StateGraph::new().node("slow", node).edge(START, "slow").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new()).services(crate::common::clock::TokioClock::default());
    let limit = Duration::from_secs(1);
    let error = graph.invoke(Words::update()).thread("t").step_timeout(limit).await.unwrap_err();
    assert_eq!(error.code(), Code::StepTimeout);
    let kept = graph.state("t").await.unwrap().unwrap().failures;
    assert_eq!((kept.len(), kept[0].code()), (1, Code::StepTimeout));
    hangs.store(0, Ordering::SeqCst);
    graph.proceed().thread("t").await.unwrap();
    let waits = graph.state("t").await.unwrap().unwrap();
    assert_eq!((waits.failures.len(), waits.interrupts.len()), (0, 1));
    graph.resume("done").thread("t").await.unwrap().into_finished().unwrap();
}
