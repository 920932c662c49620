//! A context that outlives its superstep, and a graph that a node invokes, do not act for another task.

use agentgraph::{BoxError, Code, prelude::*};
use serde::{Deserialize, Serialize};
use std::error::Error as _;
use std::sync::{Arc, Mutex};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Tally {
    n: u64,
    #[reduce(append)]
    log: Vec<String>,
}

#[tokio::test]
async fn a_context_of_a_past_superstep_cannot_interrupt_for_another_task() {
    let kept: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let late = kept;
    let first = move |ctx: Ctx| {
        *keep.lock().unwrap() = Some(ctx);
        async {}
    };
    let second = move |ctx: Ctx| {
        let late = late.lock().unwrap().take();
        async move {
            if let Some(late) = late {
                late.interrupt::<String>("late").unwrap_err();
            }
            let answer: String = ctx.interrupt("mine")?;
            Ok::<_, BoxError>(Tally::update().log([answer]))
        }
    };
    let graph = StateGraph::new().node("first", first).node("second", second);
    let graph = graph.edge(START, "first").edge("first", "second").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let asked = graph.invoke(Tally::update()).thread("t").await.unwrap();
    assert_eq!(asked.interrupts()[0].value, "mine");
    let done = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(done.log, ["yes"]);
}

#[tokio::test]
async fn an_error_of_a_graph_invoked_by_a_node_is_a_failure_of_the_node() {
    async fn broken() -> Result<TallyUpdate> {
        Err("inner bad".into())
    }
    let inner = StateGraph::<Tally>::new().node("inside", broken).edge(START, "inside").compile().unwrap();
    let call = move || {
        let inner = inner.clone();
        async move {
            inner.invoke(Tally::update().n(7)).await?;
            Ok::<_, BoxError>(())
        }
    };
    async fn first() -> TallyUpdate {
        Tally::update().n(42)
    }
    let outer = StateGraph::new().node("first", first).node("call", call);
    let outer = outer.edge(START, "first").edge("first", "call").compile().unwrap();
    let error = outer.invoke(Tally::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NodeFailed, Some("call")));
    assert_eq!(error.state::<Tally>().unwrap().n, 42);
    let inner = error.source().unwrap().downcast_ref::<agentgraph::Error>().unwrap();
    assert_eq!(inner.node(), Some("inside"));
}

#[tokio::test]
async fn the_value_of_an_interrupt_must_be_json() {
    async fn ask(ctx: Ctx) -> Result<()> {
        ctx.interrupt::<bool>(std::collections::HashMap::from([((1, 2), 3)])).ok();
        Ok(())
    }
    let graph = StateGraph::<Tally>::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let error = graph.invoke(Tally::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::Encode, Some("ask")));
}

#[tokio::test]
async fn an_input_of_another_type_converts_as_it_would_after_a_checkpoint() {
    async fn work(Input(n): Input<u64>) -> TallyUpdate {
        Tally::update().log([n.to_string()])
    }
    let graph = StateGraph::new()
        .node("work", work)
        .branch(START, |_: &Tally| agentgraph::Dispatch::new("work", 7_u32), ["work"])
        .compile()
        .unwrap();
    assert_eq!(graph.invoke(Tally::update()).await.unwrap().output().log, ["7"]);
}
