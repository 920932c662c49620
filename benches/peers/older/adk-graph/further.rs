//! Graphs of their own, each run once: one, or five with `--cfg many`. The state is JSON, so that they share
//! its type.

use adk_graph::checkpoint::MemoryCheckpointer;
use adk_graph::edge::{END, START};
use adk_graph::error::Result;
use adk_graph::graph::StateGraph;
use adk_graph::node::{ExecutionConfig, NodeContext, NodeOutput};
use adk_graph::state::{State, StateSchema};
use serde_json::{Value, json};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            async fn plan(context: NodeContext) -> Result<NodeOutput> {
                let question = context.get("question").and_then(Value::as_str).unwrap_or_default();
                Ok(NodeOutput::new()
                    .with_update("risk", question.len())
                    .with_update("notes", json!(["planned"])))
            }

            async fn answer(context: NodeContext) -> Result<NodeOutput> {
                let risk = context.get("risk").and_then(Value::as_u64).unwrap_or_default();
                Ok(NodeOutput::new().with_update("answer", risk.to_string()).with_update("done", true))
            }

            pub async fn run() {
                let channels = ["question", "risk", "answer", "done"];
                let schema =
                    channels.into_iter().fold(StateSchema::builder(), |schema, name| schema.channel(name));
                let graph = StateGraph::new(schema.list_channel("notes").build());
                let graph = graph.add_node_fn("plan", plan).add_node_fn("answer", answer);
                let graph = graph.add_edge(START, "plan").add_edge("plan", "answer").add_edge("answer", END);
                let graph = graph.compile().expect("a graph").with_checkpointer(MemoryCheckpointer::new());
                let asked = State::from([("question".to_owned(), json!("why?"))]);
                let state = graph.invoke(asked, ExecutionConfig::new("t")).await.expect("it ends");
                assert_eq!(state.get("answer"), Some(&json!("4")));
            }
        }
    };
}

harness::graphs!();
