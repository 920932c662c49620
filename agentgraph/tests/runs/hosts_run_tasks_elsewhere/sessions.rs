//! Sessions travel with a task on a host, and a parallel change of one is an error that names both nodes.

use std::collections::HashMap;

use agentgraph::Code;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use super::far::Far;
use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, text};

#[derive(Default, Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
    /// Written in another order each time it is read anew.
    prices: HashMap<String, u32>,
}

async fn pick(ctx: Ctx, cart: Session<Cart>) -> Result<()> {
    cart.with(|cart| {
        cart.items.push(format!("{}{}", ctx.node(), ctx.attempt()));
        cart.prices.extend((0..20).map(|n| (format!("{n}"), n)));
    });
    if ctx.node() == "twice" && ctx.attempt() == 1 {
        return Err("again".into());
    }
    Ok(())
}

async fn look(ctx: Ctx, cart: Session<Cart>) -> WordsUpdate {
    Words::update().seen([format!("{} sees {}", ctx.node(), cart.with(|cart| cart.items.join("+")))])
}

fn shop() -> StateGraph<Words> {
    StateGraph::new().session::<Cart>("cart")
}

fn compiled(graph: StateGraph<Words>) -> CompiledGraph<Words> {
    graph.compile().unwrap().services(Clock::default())
}

#[tokio::test]
async fn changes_come_back_attempt_by_attempt_and_readers_are_no_conflict() {
    let build = || {
        let again = RetryPolicy::attempts(2);
        let inner = compiled(
            shop().node("inner", pick).node("reads", look).edge(START, "inner").edge("inner", "reads"),
        );
        compiled(
            shop()
                .node("a", pick)
                .node("twice", pick.retry(again))
                .node("left", look)
                .node("right", look)
                .node("graph", inner)
                .edge(START, "a")
                .edge("a", "twice")
                .edge("twice", "left")
                .edge("twice", "right")
                .edge(["left", "right"], "graph"),
        )
    };
    let near = build().invoke(Words::update()).await.unwrap();
    let far = Far::of(build());
    let hosted = build().host(far).invoke(Words::update()).await.unwrap();
    assert_eq!(text(near.output()), text(hosted.output()));
    let all = "a1+twice1+twice2";
    assert_eq!(text(hosted.output()), format!("left sees {all} right sees {all} reads sees {all}+inner1"));
}

#[tokio::test]
async fn sessions_are_stored_and_read_again_by_another_process() {
    let asks = |ctx: Ctx, cart: Session<Cart>| async move {
        cart.with(|cart| cart.items.push("asked".to_owned()));
        let _: bool = ctx.interrupt("go on?")?;
        Ok::<_, agentgraph::BoxError>(())
    };
    let build = || {
        compiled(
            shop()
                .node("a", pick)
                .node("asks", asks)
                .node("look", look)
                .edge(START, "a")
                .edge("a", "asks")
                .edge("asks", "look"),
        )
    };
    let saver = std::sync::Arc::new(MemorySaver::new());
    let graph = || build().checkpointer(std::sync::Arc::clone(&saver)).host(Far::of(build()));
    graph().invoke(Words::update()).thread("t").await.unwrap();
    let end = graph().resume(true).thread("t").await.unwrap();
    assert_eq!(text(end.output()), "look sees a1+asked");
}

#[tokio::test]
async fn two_parallel_changes_of_one_session_are_an_error_with_both_nodes() {
    let build = || compiled(shop().node("a", pick).node("b", pick).edge(START, "a").edge(START, "b"));
    assert!(build().invoke(Words::update()).await.is_ok());
    // Also one after the other: which of them comes back first is no reason for another end.
    for at_once in [1, 2] {
        let hosted = build().host(Far::of(build()));
        let error = hosted.invoke(Words::update()).max_concurrency(at_once).await.unwrap_err();
        assert_eq!(error.code(), Code::ConcurrentSession, "{error}");
        let text = error.to_string();
        assert!(["`a`", "`b`", "`cart`", "reducer"].iter().all(|part| text.contains(part)), "{text}");
    }
}

#[tokio::test]
async fn in_an_eager_graph_only_tasks_that_overlap_clash() {
    let build = || {
        compiled(
            shop()
                .node("a", pick)
                .node("b", pick)
                .node("look", look)
                .edge(START, "a")
                .edge("a", "b")
                .edge("b", "look")
                .eager(),
        )
    };
    let hosted = build().host(Far::of(build())).invoke(Words::update()).await.unwrap();
    assert_eq!(text(hosted.output()), "look sees a1+b1");
    let late = || compiled(shop().node("a", slow).node("b", slow).edge(START, "a").edge(START, "b").eager());
    let error = late().host(Far::of(late())).invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::ConcurrentSession, "{error}");
}

async fn slow(cart: Session<Cart>) {
    cart.with(|cart| cart.items.push("slow".to_owned()));
    tokio::task::yield_now().await;
}
