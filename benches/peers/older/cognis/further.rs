//! Graphs with state types of their own, each run once: one, or five with `--cfg many`.

use std::sync::Arc;

use cognis_core::{Runnable, RunnableConfig};
use cognis_graph::{Goto, Graph, GraphState, InMemoryCheckpointer, NodeCtx, NodeOut, node_fn};
use serde::{Deserialize, Serialize};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[derive(GraphState, Serialize, Deserialize, Clone, Debug, Default)]
            struct Ask {
                #[reducer(last)]
                question: String,
                #[reducer(append)]
                notes: Vec<String>,
                #[reducer(last)]
                risk: u8,
                #[reducer(last)]
                answer: String,
                #[reducer(last)]
                done: bool,
            }

            pub async fn run() {
                let plan = node_fn::<Ask, _, _>("plan", |state: &Ask, _: &NodeCtx<'_>| {
                    let risk = Some(state.question.len() as u8);
                    let update =
                        AskUpdate { risk, notes: vec!["planned".to_owned()], ..AskUpdate::default() };
                    async move { Ok(NodeOut { update, goto: Goto::node("answer") }) }
                });
                let answer = node_fn::<Ask, _, _>("answer", |state: &Ask, _: &NodeCtx<'_>| {
                    let answer = Some(state.risk.to_string());
                    let update = AskUpdate { answer, done: Some(true), ..AskUpdate::default() };
                    async move { Ok(NodeOut { update, goto: Goto::end() }) }
                });
                let graph = Graph::new().node("plan", plan).node("answer", answer).start_at("plan");
                let graph = graph
                    .compile()
                    .expect("a graph")
                    .with_checkpointer(Arc::new(InMemoryCheckpointer::new()));
                let asked = Ask { question: "why?".to_owned(), ..Ask::default() };
                let state = graph.invoke(asked, RunnableConfig::default()).await.expect("it ends");
                assert!(state.done && state.answer == "4");
            }
        }
    };
}

harness::graphs!();
