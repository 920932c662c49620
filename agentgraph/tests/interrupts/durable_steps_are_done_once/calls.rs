//! The calls of `once` in one node: their names, keys and results, and calls that are errors.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::OnceError;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};
use futures_util::future::join_all;

use super::world::{World, count_of, node, run_node, value};
use crate::common::words::{Words, text};

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
async fn a_key_is_the_text_of_its_value() {
    let done = run_node(node(|ctx| async move {
        let number = ctx.once_for("x", 7_u64, value("1")).await?;
        let text = ctx.once_for("x", "7", value("2")).await?;
        let owned = ctx.durable("x").key(String::from("7")).run(|| value("3")).await?;
        let other = ctx.durable("x").key(-7).run(|| value("4")).await?;
        Ok(vec![number, text, owned, other])
    }));
    assert_eq!(done.await, Ok("1 1 1 4".to_owned()));
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

struct Elsewhere(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for Elsewhere {
    async fn run(&self, call: TaskCall) -> std::result::Result<TaskReply, BoxError> {
        Ok(self.0.run_task(call).await?)
    }
}

#[tokio::test]
async fn a_task_on_a_host_without_a_store_refuses_it() {
    let world = World::new();
    let graph = StateGraph::new().node("a", world.works(1)).edge(START, "a").compile().unwrap();
    let graph = graph.clone().host(Elsewhere(graph)).checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    assert!(error.to_string().contains("a process without a store"), "{error}");
    assert!(error.to_string().contains("`run_task(..).once_in(..)`"), "{error}");
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
