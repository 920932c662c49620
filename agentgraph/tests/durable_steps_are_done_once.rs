//! A durable step is never done again once its result is stored, however its node comes to run again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::checkpoint::{Place, WaitingQuery, catalog};
use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::{Node, OnceError};
use agentgraph::prelude::*;
use agentgraph::subgraph::Memory;
use agentgraph::{BoxError, Code};
use common::poll::{at_most, pending_for};
use common::saver::NotingSaver;
use common::words::{Words, says, text};
use futures_util::future::join_all;

/// The effects of durable steps on the world outside, each checked against the store.
#[derive(Clone)]
struct World {
    saver: NotingSaver,
    effects: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        World { saver: NotingSaver::memory(), effects: Arc::default() }
    }

    /// Does a piece of work, whose result is its mark.
    async fn work(&self, mark: String, polls: u32) -> Result<String> {
        pending_for(polls).await;
        assert!(!self.saver.has_stored_marked(&mark), "{mark} is done again although its result is stored");
        self.effects.lock().unwrap().push(mark.clone());
        pending_for(polls).await;
        Ok(mark)
    }

    fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    /// The number of times that a piece of work was done.
    fn count(&self, mark: &str) -> usize {
        self.effects().iter().filter(|effect| *effect == mark).count()
    }

    /// A node that does `steps` pieces of work, one after the other, and then asks.
    fn asks(&self, steps: u32) -> Node<Words> {
        let world = self.clone();
        let node = move |ctx: Ctx| {
            let world = world.clone();
            async move {
                let marks = world.steps(&ctx, steps).await?;
                let _: bool = ctx.interrupt("go on?")?;
                Ok::<_, BoxError>(Words::update().seen(marks))
            }
        };
        node.into_node()
    }

    /// A node that does `steps` pieces of work, one after the other.
    fn works(&self, steps: u32) -> Node<Words> {
        let world = self.clone();
        let node = move |ctx: Ctx| {
            let world = world.clone();
            async move { Ok::<_, BoxError>(Words::update().seen(world.steps(&ctx, steps).await?)) }
        };
        node.into_node()
    }

    /// A node that does a piece of work and then fails as long as the switch is off.
    fn fails(&self, is_mended: &Arc<AtomicU32>) -> Node<Words> {
        let world = self.clone();
        let is_mended = Arc::clone(is_mended);
        let node = move |ctx: Ctx| {
            let world = world.clone();
            let is_mended = Arc::clone(&is_mended);
            async move {
                let marks = world.steps(&ctx, 1).await?;
                match is_mended.load(Ordering::SeqCst) {
                    0 => Err(BoxError::from("not yet")),
                    _ => Ok(Words::update().seen(marks)),
                }
            }
        };
        node.into_node()
    }

    async fn steps(&self, ctx: &Ctx, steps: u32) -> Result<Vec<String>> {
        let mut marks = Vec::new();
        for step in 0..steps {
            let mark = format!("<{}.{step}>", ctx.node());
            marks.push(ctx.once("work", self.work(mark, 1)).await?);
        }
        Ok(marks)
    }

    fn compile(&self, graph: StateGraph<Words>) -> CompiledGraph<Words> {
        graph.compile().unwrap().checkpointer(self.saver.clone())
    }
}

/// Every shape of graph in which a node may do durable steps, with the marks of its steps.
fn shapes(world: &World) -> Vec<(&'static str, StateGraph<Words>, Vec<&'static str>)> {
    let single = || StateGraph::new().node("a", world.asks(2)).edge(START, "a");
    let several = || {
        StateGraph::new()
            .node("a", world.asks(2))
            .node("b", world.works(3))
            .node("c", world.asks(1))
            .node("end", world.works(1))
            .edge(START, "a")
            .edge(START, "b")
            .edge(START, "c")
            .edge(["a", "b", "c"], "end")
    };
    let marks = vec!["<a.0>", "<a.1>", "<b.0>", "<b.1>", "<b.2>", "<c.0>", "<end.0>"];
    let around = |inner: StateGraph<Words>| {
        let inner = inner.compile().unwrap();
        StateGraph::new()
            .node("sub", inner.memory(Memory::PerCall))
            .node("beside", world.works(2))
            .edge(START, "sub")
            .edge(START, "beside")
    };
    let with_beside = |marks: &[&'static str]| [marks, &["<beside.0>", "<beside.1>"]].concat();
    let handled = || {
        StateGraph::new()
            .node("fails", world.fails(&Arc::default()).on_error("handler"))
            .node("handler", world.asks(1))
            .edge(START, "fails")
    };
    vec![
        ("one node", single(), vec!["<a.0>", "<a.1>"]),
        ("one node, eager", single().eager(), vec!["<a.0>", "<a.1>"]),
        ("several nodes", several(), marks.clone()),
        ("several nodes, eager", several().eager(), marks.clone()),
        ("a subgraph", around(several()), with_beside(&marks)),
        ("an eager subgraph", around(several().eager()), with_beside(&marks)),
        ("a subgraph of an eager graph", around(several()).eager(), with_beside(&marks)),
        ("a handler", handled(), vec!["<fails.0>", "<handler.0>"]),
        ("a handler, eager", handled().eager(), vec!["<fails.0>", "<handler.0>"]),
    ]
}

/// Continues a thread, with an answer to every open interrupt. `None` if the call was dropped.
async fn answer(graph: &CompiledGraph<Words>, polls: u32) -> Option<Outcome<Words>> {
    let open = graph.state("t").await.unwrap().unwrap().interrupts;
    let answers: Vec<_> = open.iter().filter_map(|open| Some((open.id?, true))).collect();
    let call = if answers.is_empty() { graph.proceed() } else { graph.resume_many(answers) };
    at_most(call.thread("t").into_future(), polls).await.map(|outcome| outcome.unwrap())
}

#[tokio::test]
async fn an_interrupt_does_not_repeat_it() {
    let names: Vec<_> = shapes(&World::new()).into_iter().map(|(name, ..)| name).collect();
    for (at, name) in names.into_iter().enumerate() {
        let world = World::new();
        let (_, graph, marks) = shapes(&world).swap_remove(at);
        let graph = world.compile(graph);
        let mut outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        while !matches!(outcome, Outcome::Finished { .. }) {
            outcome = answer(&graph, u32::MAX).await.unwrap();
        }
        let mut effects = world.effects();
        effects.sort();
        let mut marks = marks;
        marks.sort_unstable();
        assert_eq!(effects, marks, "{name}");
    }
}

/// The run is dropped at each of its polls, and goes on in another process.
#[tokio::test]
async fn a_kill_at_any_poll_repeats_only_what_is_not_stored() {
    let shapes_of = shapes(&World::new()).len();
    let mut repeated = 0;
    for at in 0..shapes_of {
        for killed_at in 0.. {
            let world = World::new();
            let (name, graph, marks) = shapes(&world).swap_remove(at);
            let graph = world.compile(graph);
            let begun = at_most(graph.invoke(Words::update()).thread("t").into_future(), killed_at).await;
            let mut outcome = begun.transpose().unwrap();
            let was_killed = outcome.is_none();
            // The second process is killed as well, while it goes on.
            for polls in [killed_at, u32::MAX, u32::MAX, u32::MAX] {
                if matches!(outcome, Some(Outcome::Finished { .. })) {
                    break;
                }
                outcome = match graph.state("t").await.unwrap() {
                    None => Some(graph.invoke(Words::update()).thread("t").await.unwrap()),
                    Some(state) if state.next.is_empty() => break,
                    Some(_) => answer(&graph, polls).await,
                };
            }
            let end = graph.state("t").await.unwrap().unwrap();
            assert!(end.next.is_empty(), "{name}, {killed_at}: {outcome:?}");
            for mark in marks {
                let count = world.count(mark);
                assert!((1..=3).contains(&count), "{name}, {killed_at}: {mark} was done {count} times");
                repeated += usize::from(count > 1);
            }
            if !was_killed {
                break;
            }
        }
    }
    assert!(repeated > 0, "no kill came between a piece of work and its commit");
}

#[tokio::test(start_paused = true)]
async fn a_retry_does_not_repeat_it() {
    for eager in [false, true] {
        for is_kept in [false, true] {
            let world = World::new();
            let again = world.clone();
            let node = move |ctx: Ctx| {
                let world = again.clone();
                async move {
                    let marks = world.steps(&ctx, 2).await?;
                    if ctx.attempt() < 3 {
                        return Err(BoxError::from("not yet"));
                    }
                    Ok(Words::update().seen(marks))
                }
            };
            let graph = StateGraph::new().node("a", node.retry(RetryPolicy::attempts(3))).edge(START, "a");
            let graph = if eager { graph.eager() } else { graph };
            let graph = graph.compile().unwrap();
            let graph = if is_kept { graph.checkpointer(world.saver.clone()) } else { graph };
            let words = graph.invoke(Words::update()).thread("t").await.unwrap().into_finished().unwrap();
            assert_eq!(text(&words), "<a.0> <a.1>");
            assert_eq!(world.effects(), ["<a.0>", "<a.1>"]);
        }
    }
}

#[tokio::test]
async fn a_failed_run_that_proceeds_does_not_repeat_it() {
    for eager in [false, true] {
        let world = World::new();
        let is_mended = Arc::default();
        let graph = StateGraph::new()
            .node("a", world.fails(&is_mended))
            .node("b", world.works(1))
            .edge(START, "a")
            .edge(START, "b");
        let graph = world.compile(if eager { graph.eager() } else { graph });
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert_eq!(error.code(), Code::NodeFailed);
        is_mended.store(1, Ordering::SeqCst);
        let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(words.seen.len(), 2);
        assert_eq!((world.count("<a.0>"), world.count("<b.0>")), (1, 1), "eager: {eager}");
    }
}

#[tokio::test]
async fn nodes_of_a_pass_do_not_repeat_it() {
    let world = World::new();
    let is_mended: Arc<AtomicU32> = Arc::default();
    let build = || {
        let pay = world.clone();
        let mail = world.clone();
        let mended = Arc::clone(&is_mended);
        DependencyGraph::<String>::new()
            .node("pay", move |ctx: Ctx| {
                let world = pay.clone();
                async move {
                    let mark = ctx.once("pay", world.work("<pay>".to_owned(), 1)).await?;
                    let _: bool = ctx.interrupt("go on?")?;
                    Ok::<_, BoxError>(mark)
                }
            })
            .node("mail", move |ctx: Ctx| {
                let world = mail.clone();
                let mended = Arc::clone(&mended);
                async move {
                    let mark = ctx.once("mail", world.work("<mail>".to_owned(), 2)).await?;
                    match mended.load(Ordering::SeqCst) {
                        0 => Err(BoxError::from("not yet")),
                        _ => Ok(mark),
                    }
                }
            })
            .node("end", |deps: Deps<String>| format!("{}{}", deps["pay"], deps["mail"]))
            .edge("pay", "end")
            .edge("mail", "end")
            .compile()
            .unwrap()
            .checkpointer(world.saver.clone())
    };
    let error = build().invoke(()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::NodeFailed);
    is_mended.store(1, Ordering::SeqCst);
    let waits = build().proceed().thread("t").await.unwrap();
    assert_eq!(waits.interrupts().len(), 1);
    let outputs = build().resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["end"], "<pay><mail>");
    assert_eq!((world.count("<pay>"), world.count("<mail>")), (1, 1));
}

#[tokio::test]
async fn a_killed_pass_repeats_only_what_is_not_stored() {
    for killed_at in 0.. {
        let world = World::new();
        let mut graph = DependencyGraph::<String>::new();
        for name in ["a", "b"] {
            let world = world.clone();
            graph = graph.node(name, move |ctx: Ctx| {
                let world = world.clone();
                async move {
                    let marks = world.steps(&ctx, 2).await?;
                    Ok::<_, BoxError>(marks.concat())
                }
            });
        }
        let graph = graph.compile().unwrap().checkpointer(world.saver.clone());
        let begun = at_most(graph.invoke(()).thread("t").into_future(), killed_at).await;
        if begun.is_some() {
            break;
        }
        let outputs = match graph.state("t").await.unwrap() {
            None => graph.invoke(()).thread("t").await.unwrap().into_finished().unwrap(),
            Some(state) if state.next.is_empty() => state.values,
            Some(_) => graph.proceed().thread("t").await.unwrap().into_finished().unwrap(),
        };
        assert_eq!((&*outputs["a"], &*outputs["b"]), ("<a.0><a.1>", "<b.0><b.1>"), "{killed_at}");
        for mark in ["<a.0>", "<a.1>", "<b.0>", "<b.1>"] {
            assert!((1..=2).contains(&world.count(mark)), "{killed_at}");
        }
    }
}

/// Other tasks of an eager run commit while one that has done its step waits.
#[tokio::test]
async fn commits_of_other_activations_keep_it() {
    let world = World::new();
    let graph = StateGraph::new()
        .node("a", world.asks(2))
        .node("b1", says("b1"))
        .node("b2", says("b2"))
        .node("b3", says("b3"))
        .edge(START, "a")
        .edge(START, "b1")
        .edge("b1", "b2")
        .edge("b2", "b3")
        .eager();
    let graph = world.compile(graph);
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert!(world.saver.puts() >= 4);
    let words = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "b1 b2 b3 <a.0> <a.1>");
    assert_eq!(world.effects(), ["<a.0>", "<a.1>"]);
}

#[tokio::test]
async fn edits_of_the_state_and_copies_take_it_over() {
    for eager in [false, true] {
        let world = World::new();
        let graph = StateGraph::new().node("a", world.asks(1)).edge(START, "a");
        let graph = world.compile(if eager { graph.eager() } else { graph });
        graph.invoke(Words::update()).thread("t").await.unwrap();
        graph.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
        graph.copy_thread("t", "copy").await.unwrap();
        for thread in ["t", "copy"] {
            let words = graph.resume(true).thread(thread).await.unwrap().into_finished().unwrap();
            assert_eq!(text(&words), "edited <a.0>", "{thread}, eager: {eager}");
        }
        assert_eq!(world.effects(), ["<a.0>"], "eager: {eager}");
    }
}

/// A world without a check, for runs that do the work again rightly.
async fn count_of(calls: &Arc<AtomicU32>) -> Result<u32> {
    Ok(calls.fetch_add(1, Ordering::SeqCst))
}

#[tokio::test]
async fn forks_replays_and_new_runs_do_it_again() {
    let calls: Arc<AtomicU32> = Arc::default();
    let counter = Arc::clone(&calls);
    let node = move |ctx: Ctx| {
        let calls = Arc::clone(&counter);
        async move {
            let n = ctx.once("count", async move { count_of(&calls).await }).await?;
            let _: bool = ctx.interrupt("go on?")?;
            Ok::<_, BoxError>(Words::update().seen([n.to_string()]))
        }
    };
    let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap().checkpoint().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    graph.update_state("t").update(Words::update()).await.unwrap();
    // From the checkpoint before the edit: a replay, on a branch of its own.
    graph.proceed().from(first).thread("t").await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    graph.invoke(Words::update()).thread("t").abandon().await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let words = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "2");
    // The same node in the next run.
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn each_task_of_a_node_has_its_own() {
    let world = World::new();
    let again = world.clone();
    let work = move |ctx: Ctx, Input(page): Input<u32>| {
        let world = again.clone();
        async move {
            let mark = ctx.once("fetch", world.work(format!("<{page}>"), 1)).await?;
            let _: bool = ctx.interrupt(page)?;
            Ok::<_, BoxError>(Words::update().seen([mark]))
        }
    };
    for eager in [false, true] {
        let graph = StateGraph::new().node("work", work.clone()).branch(
            START,
            |_: &Words| {
                vec![1u32, 2, 3].into_iter().map(|page| Dispatch::new("work", page)).collect::<Vec<_>>()
            },
            ["work"],
        );
        let graph = if eager { graph.eager() } else { graph };
        let thread = if eager { "e" } else { "s" };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let waits = graph.invoke(Words::update()).thread(thread).await.unwrap();
        let answers: Vec<_> = waits.interrupts().iter().map(|open| (open.id.unwrap(), true)).collect();
        let words = graph.resume_many(answers).thread(thread).await.unwrap().into_finished().unwrap();
        assert_eq!(text(&words), "<1> <2> <3>");
    }
    assert_eq!(world.effects().len(), 6);
}

/// A node that returns the words of a function.
fn node<F, Fut>(function: F) -> Node<Words>
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>>> + Send + 'static,
{
    let function = Arc::new(function);
    let node = move |ctx: Ctx| {
        let function = Arc::clone(&function);
        async move { Ok::<_, BoxError>(Words::update().seen(function(ctx).await?)) }
    };
    node.into_node()
}

/// Runs a node. Returns its words, or the code of its error with the text.
async fn run_node(node: Node<Words>) -> std::result::Result<String, (Code, String)> {
    let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    match graph.invoke(Words::update()).thread("t").await {
        Ok(outcome) => Ok(text(outcome.output())),
        Err(error) => Err((error.code(), error.to_string())),
    }
}

async fn value(value: &'static str) -> Result<String> {
    pending_for(1).await;
    Ok(value.to_owned())
}

#[tokio::test]
async fn calls_of_one_name_are_counted_when_called() {
    let done = run_node(node(|ctx| async move {
        let first = ctx.once("x", value("1"));
        let second = ctx.once("x", value("2"));
        // The second is polled first.
        let second = second.await?;
        let first = first.await?;
        Ok(vec![first, second])
    }));
    assert_eq!(done.await, Ok("1 2".to_owned()));
}

#[tokio::test]
async fn steps_of_different_names_may_change_places() {
    let (calls, attempts): (Arc<AtomicU32>, Arc<AtomicU32>) = Default::default();
    let done = run_node(
        node(move |ctx| {
            let a = Arc::clone(&calls);
            let b = Arc::clone(&calls);
            let attempt = attempts.fetch_add(1, Ordering::SeqCst);
            async move {
                let a = ctx.once("a", async move { Ok(format!("a{}", count_of(&a).await?)) });
                let b = ctx.once("b", async move { Ok(format!("b{}", count_of(&b).await?)) });
                if attempt == 0 {
                    a.await?;
                    b.await?;
                    return Err("once more".into());
                }
                let b = b.await?;
                Ok(vec![a.await?, b])
            }
        })
        .retry(RetryPolicy::attempts(2).initial(Duration::ZERO)),
    );
    assert_eq!(done.await, Ok("a0 b1".to_owned()));
}

/// The first attempt ends while its result is being stored. The second one waits until it is stored.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cut_off_while_its_result_is_stored_leaves_it() {
    let world = World::new();
    let again = world.clone();
    let node = node(move |ctx| {
        let world = again.clone();
        async move {
            let is_first = ctx.attempt() == 1;
            let step = ctx.once("x", world.work("<x>".to_owned(), 0));
            let mut step = Box::pin(step);
            if is_first {
                // The work is done at the first poll; the second one would be after the commit.
                assert!(futures_util::poll!(&mut step).is_pending());
                return Err("cut off".into());
            }
            let mark = step.await?;
            assert!(world.saver.has_stored_marked("<x>"));
            Ok(vec![mark])
        }
    });
    let node = node.retry(RetryPolicy::attempts(2).initial(Duration::ZERO));
    let graph = world.compile(StateGraph::new().node("a", node).edge(START, "a"));
    let words = graph.invoke(Words::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), world.effects()), ("<x>".to_owned(), vec!["<x>".to_owned()]));
}

/// A cancelled call stops a step that does not end, and keeps those that did.
#[tokio::test]
async fn a_cancelled_call_keeps_finished_steps() {
    let world = World::new();
    let again = world.clone();
    let token = CancellationToken::new();
    let cancel = token.clone();
    let is_resumed: Arc<AtomicU32> = Arc::default();
    let resumed = Arc::clone(&is_resumed);
    let node = node(move |ctx| {
        let world = again.clone();
        let cancel = cancel.clone();
        let resumed = Arc::clone(&resumed);
        async move {
            let mark = ctx.once("x", world.work("<x>".to_owned(), 1)).await?;
            if resumed.load(Ordering::SeqCst) == 0 {
                cancel.cancel();
                std::future::pending::<()>().await;
            }
            Ok(vec![mark])
        }
    });
    let graph = world.compile(StateGraph::new().node("a", node).edge(START, "a"));
    let stopped = graph.invoke(Words::update()).thread("t").cancel(token).await.unwrap();
    assert!(matches!(stopped, Outcome::Stopped { .. }), "{stopped:?}");
    is_resumed.store(1, Ordering::SeqCst);
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), world.effects().len()), ("<x>".to_owned(), 1));
}

#[tokio::test]
async fn steps_run_in_parallel() {
    let done = run_node(node(|ctx| async move {
        let keyed = ["c", "a", "b"].map(|key| ctx.once_for("x", key, value(key)));
        let counted = ["1", "2"].map(|n| ctx.once("x", value(n)));
        let all = join_all(keyed.into_iter().chain(counted)).await;
        all.into_iter().collect()
    }));
    assert_eq!(done.await, Ok("c a b 1 2".to_owned()));
}

#[tokio::test]
async fn an_equal_key_in_turn_gives_the_stored_result_and_at_once_an_error() {
    let done = run_node(node(|ctx| async move {
        let first = ctx.once_for("x", "k", value("1")).await?;
        let second = ctx.once_for("x", "k", value("2")).await?;
        Ok(vec![first, second])
    }));
    assert_eq!(done.await, Ok("1 1".to_owned()));
    let failed = run_node(node(|ctx| async move {
        let both = join_all([ctx.once_for("x", "k", value("1")), ctx.once_for("x", "k", value("2"))]).await;
        both.into_iter().collect()
    }));
    let (code, text) = failed.await.unwrap_err();
    assert_eq!(code, Code::Once);
    assert!(text.contains("two durable steps `x` with the key \"k\" run at the same time"), "{text}");
}

#[tokio::test]
async fn a_dropped_step_may_be_called_again() {
    let done = run_node(node(|ctx| async move {
        let slow = ctx.once_for("x", "k", async {
            std::future::pending::<()>().await;
            Ok("never".to_owned())
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), slow).await.is_err());
        Ok(vec![ctx.once_for("x", "k", value("again")).await?])
    }));
    assert_eq!(done.await, Ok("again".to_owned()));
}

#[tokio::test]
async fn a_step_inside_another_is_an_error() {
    let failed = run_node(node(|ctx| async move {
        let inner = ctx.clone();
        let outer = ctx.once("outer", async move { inner.once("inner", value("1")).await });
        Ok(vec![outer.await?])
    }));
    let (code, text) = failed.await.unwrap_err();
    assert_eq!(code, Code::Once);
    assert!(text.contains("`inner` is called inside another one"), "{text}");
}

/// Another graph may be run inside a step, with steps of its own.
#[tokio::test]
async fn a_run_inside_a_step_has_its_own_steps() {
    let inner = StateGraph::new()
        .node("a", node(|ctx| async move { Ok(vec![ctx.once("x", value("inner")).await?]) }))
        .edge(START, "a")
        .compile()
        .unwrap();
    let done = run_node(node(move |ctx| {
        let inner = inner.clone();
        async move {
            let words =
                ctx.once("call", async move { Ok(text(inner.invoke(Words::update()).await?.output())) });
            Ok(vec![words.await?])
        }
    }));
    assert_eq!(done.await, Ok("inner".to_owned()));
}

#[tokio::test]
async fn the_error_of_the_work_is_given_back_and_not_stored() {
    let failed = run_node(node(|ctx| async move {
        let failed = ctx.once("x", async { Err::<String, _>(std::fmt::Error.into()) }).await;
        assert!(failed.unwrap_err().is::<std::fmt::Error>());
        Ok(vec![ctx.once_for("x", "again", value("1")).await?])
    }));
    assert_eq!(failed.await, Ok("1".to_owned()));
}

#[tokio::test]
async fn another_result_type_is_an_error_that_names_the_remedy() {
    let saver = MemorySaver::new();
    let is_new: Arc<AtomicU32> = Arc::default();
    let switch = Arc::clone(&is_new);
    let node = move |ctx: Ctx| {
        let is_new = switch.load(Ordering::SeqCst) == 1;
        async move {
            if is_new {
                let _: u32 = ctx.once("price", async { Ok(7) }).await?;
            } else {
                let _: String = ctx.once("price", value("seven")).await?;
            }
            let _: bool = ctx.interrupt("go on?")?;
            Ok::<_, BoxError>(())
        }
    };
    let graph = StateGraph::<Words>::new()
        .node("a", node.retry(RetryPolicy::attempts(5)))
        .edge(START, "a")
        .compile()
        .unwrap()
        .checkpointer(saver);
    graph.invoke(Words::update()).thread("t").await.unwrap();
    is_new.store(1, Ordering::SeqCst);
    let error = graph.resume(true).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    assert!(error.to_string().contains("the durable step `price` has another type"), "{error}");
    assert!(error.to_string().contains("give the changed step a new name"), "{error}");
    assert_eq!(error.failures()[0].attempt(), 1, "no further attempt can help");
}

#[tokio::test]
async fn waiting_threads_and_open_questions_do_not_show_it() {
    let world = World::new();
    let graph = world.compile(StateGraph::new().node("a", world.asks(2)).edge(START, "a"));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let waiting = catalog::waiting(&world.saver, WaitingQuery::default()).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let tail = world.saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert_eq!(tail.writes.len(), 3, "two results and a question");
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts.len(), 1);
    graph.resume(true).thread("t").await.unwrap();
    let tail = world.saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert_eq!(tail.writes, [], "the commit of the task drops its results");
}

/// The result is in the store when the step is over, also if the run does not wait for its commits.
#[tokio::test]
async fn the_result_is_stored_before_the_step_is_over() {
    for durability in [Durability::Sync, Durability::Async] {
        let world = World::new();
        let again = world.clone();
        let node = node(move |ctx| {
            let world = again.clone();
            async move {
                let mark = ctx.once("x", world.work("<x>".to_owned(), 1)).await?;
                assert!(world.saver.has_stored_marked("<x>"), "{durability:?}");
                Ok(vec![mark])
            }
        });
        let graph = world.compile(StateGraph::new().node("a", node).edge(START, "a"));
        let outcome = graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
        assert_eq!(text(outcome.output()), "<x>");
    }
}

/// Such runs store nothing before their end. Steps work, and retries find their results.
#[tokio::test]
async fn runs_that_store_nothing_do_it_again_after_an_interrupt() {
    for is_kept in [false, true] {
        let calls: Arc<AtomicU32> = Arc::default();
        let counter = Arc::clone(&calls);
        let node = node(move |ctx| {
            let calls = Arc::clone(&counter);
            async move {
                let n = ctx.once("count", async move { count_of(&calls).await }).await?;
                if is_kept {
                    let _: bool = ctx.interrupt("go on?")?;
                }
                Ok(vec![n.to_string()])
            }
        });
        let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
        if is_kept {
            let graph = graph.checkpointer(MemorySaver::new());
            graph.invoke(Words::update()).thread("t").durability(Durability::Exit).await.unwrap();
            let outcome = graph.resume(true).thread("t").durability(Durability::Exit).await.unwrap();
            assert_eq!(text(outcome.output()), "1");
        } else {
            assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "0");
        }
    }
}

#[tokio::test]
async fn the_node_for_the_limit_may_have_steps() {
    let world = World::new();
    let graph = StateGraph::new()
        .node("round", says("r"))
        .node("limit", world.works(2))
        .edge(START, "round")
        .edge("round", "round")
        .on_limit("limit");
    let graph = world.compile(graph);
    let outcome = graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    assert_eq!(text(outcome.output()), "r r <limit.0> <limit.1>");
}

struct Elsewhere(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for Elsewhere {
    async fn run(&self, call: TaskCall) -> std::result::Result<TaskReply, BoxError> {
        Ok(self.0.run_task(call).await?)
    }
}

#[tokio::test]
async fn a_task_on_a_host_refuses_it() {
    let world = World::new();
    let graph = StateGraph::new().node("a", world.works(1)).edge(START, "a").compile().unwrap();
    let graph = graph.clone().host(Elsewhere(graph)).checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    assert!(error.to_string().contains("a host runs elsewhere"), "{error}");
    assert_eq!(world.effects(), Vec::<String>::new());
}

/// A context that outlives its task starts no step for the next one.
#[tokio::test]
async fn a_step_of_an_ended_task_is_an_error() {
    let kept: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let keeper = Arc::clone(&kept);
    let reader = Arc::clone(&kept);
    let keep = move |ctx: Ctx| {
        *keeper.lock().unwrap() = Some(ctx);
        async {}
    };
    let read = node(move |_| {
        let old = reader.lock().unwrap().take().unwrap();
        async move {
            let late = old.once("x", value("1")).await.unwrap_err();
            assert_eq!(late.downcast_ref::<OnceError>(), Some(&OnceError::TooLate));
            Ok(Vec::new())
        }
    });
    let graph = StateGraph::new()
        .node("keep", keep)
        .node("read", read)
        .edge(START, "keep")
        .edge("keep", "read")
        .compile()
        .unwrap();
    graph.invoke(Words::update()).await.unwrap();
}

/// A store that fails ends the run, and the step is done again: its result is not stored.
#[tokio::test]
async fn a_failing_store_ends_the_run() {
    let world = World::new();
    let graph = world.compile(StateGraph::new().node("a", world.works(1)).edge(START, "a"));
    world.saver.fail_writes(1);
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Store);
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), world.count("<a.0>")), ("<a.0>".to_owned(), 2));
}
