//! Nodes of a pass of a `DependencyGraph`.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};

use super::world::World;
use crate::common::poll::at_most;

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

/// Each attempt counts its steps and questions from the first.
#[tokio::test(start_paused = true)]
async fn a_retry_in_a_pass_does_not_repeat_it() {
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
                Ok(marks.concat())
            }
        };
        let node = DependencyNode::of(node).retry(RetryPolicy::attempts(3));
        let graph = DependencyGraph::<String>::new()
            .node("a", node)
            .node("end", |deps: Deps<String>| deps["a"].clone())
            .edge("a", "end")
            .compile()
            .unwrap();
        let pass = match is_kept {
            true => graph.checkpointer(world.saver.clone()).invoke(()).thread("t"),
            false => graph.invoke(()),
        };
        let outputs = pass.await.unwrap().into_finished().unwrap();
        assert_eq!(outputs["end"], "<a.0><a.1>");
        assert_eq!(world.effects(), ["<a.0>", "<a.1>"], "kept: {is_kept}");
    }
}
