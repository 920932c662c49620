//! Graphs with state types of their own, each run once: one, or five with `--cfg many`.

use std::sync::Arc;

use juncture_checkpoint::MemorySaver;
use juncture_core::config::RunnableConfig;
use juncture_core::error::JunctureError;
use juncture_core::graph::StateGraph;
use juncture_core::node::NodeFnUpdate;
use juncture_derive::State;
use serde::{Deserialize, Serialize};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
            struct Ask {
                question: String,
                #[reducer(append)]
                notes: Vec<String>,
                risk: u8,
                answer: String,
                done: bool,
            }

            pub async fn run() {
                let plan = NodeFnUpdate(|state: &Ask| {
                    let (risk, notes) = (Some(state.question.len() as u8), Some(vec!["planned".to_owned()]));
                    async move { Ok::<_, JunctureError>(AskUpdate { risk, notes, ..AskUpdate::default() }) }
                });
                let answer = NodeFnUpdate(|state: &Ask| {
                    let answer = Some(state.risk.to_string());
                    async move {
                        Ok::<_, JunctureError>(AskUpdate { answer, done: Some(true), ..AskUpdate::default() })
                    }
                });
                let mut graph = StateGraph::new();
                graph.add_node_simple("plan", plan).expect("a new name");
                graph.add_node_simple("answer", answer).expect("a new name");
                graph.add_edge("plan", "answer");
                graph.set_entry_point("plan");
                graph.set_finish_point("answer");
                let graph: juncture_core::graph::CompiledGraph<Ask> =
                    graph.compile_with_checkpointer(Some(Arc::new(MemorySaver::new()))).expect("a graph");
                let asked = Ask { question: "why?".to_owned(), ..Ask::default() };
                let ended = graph
                    .invoke_async(asked, &RunnableConfig::new().with_thread_id("t"))
                    .await
                    .expect("it ends");
                assert!(ended.value.done && ended.value.answer == "4");
            }
        }
    };
}

harness::graphs!();
