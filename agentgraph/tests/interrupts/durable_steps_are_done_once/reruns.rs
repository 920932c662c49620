//! A node that runs again in its run: after an interrupt, a kill, a failure, or a call that was cancelled.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::subgraph::Memory;
use agentgraph::{BoxError, Code};

use super::world::{World, node};
use crate::common::poll::at_most;
use crate::common::words::{Words, says, text};

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
            let run = match is_kept {
                true => graph.checkpointer(world.saver.clone()).invoke(Words::update()).thread("t"),
                false => graph.invoke(Words::update()),
            };
            let words = run.await.unwrap().into_finished().unwrap();
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
