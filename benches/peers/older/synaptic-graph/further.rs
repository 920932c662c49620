//! Graphs with state types of their own, each run once: one, or five with `--cfg many`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use synaptic_core::SynapticError;
use synaptic_graph::{CheckpointConfig, END, FnNode, NodeOutput, State, StateGraph, StoreCheckpointer};
use synaptic_store::InMemoryStore;

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[derive(Serialize, Deserialize, Clone, Debug, Default)]
            struct Ask {
                question: String,
                notes: Vec<String>,
                risk: u8,
                answer: String,
                done: bool,
            }

            impl State for Ask {
                fn merge(&mut self, other: Self) {
                    self.notes.extend(other.notes);
                }
            }

            type Output = Result<NodeOutput<Ask>, SynapticError>;

            pub async fn run() {
                let plan = FnNode::new(|mut state: Ask| async move {
                    state.risk = state.question.len() as u8;
                    state.notes.push("planned".to_owned());
                    Output::Ok(state.into())
                });
                let answer = FnNode::new(|mut state: Ask| async move {
                    state.answer = state.risk.to_string();
                    state.done = true;
                    Output::Ok(state.into())
                });
                let graph = StateGraph::new()
                    .add_node("plan", plan)
                    .add_node("answer", answer)
                    .set_entry_point("plan");
                let graph =
                    graph.add_edge("plan", "answer").add_edge("answer", END).compile().expect("a graph");
                let saver = StoreCheckpointer::new(Arc::new(InMemoryStore::new()));
                let graph = graph.with_checkpointer(Arc::new(saver));
                let asked = Ask { question: "why?".to_owned(), ..Ask::default() };
                let ended =
                    graph.invoke_with_config(asked, Some(CheckpointConfig::new("t"))).await.expect("it ends");
                let state = ended.into_state();
                assert!(state.done && state.answer == "4");
            }
        }
    };
}

harness::graphs!();
