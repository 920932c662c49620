//! Graphs of their own, each run once: one, or five with `--cfg many`. The state is JSON, so that they share
//! its type.

use std::sync::Arc;

use rusty_agent_runtime::prelude::*;
use serde_json::{Value, json};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            async fn plan(context: NodeContext) -> Result<NodeOutput> {
                let question = context.state().get("question").and_then(Value::as_str).unwrap_or_default();
                Ok(NodeOutput::update("risk", question.len().into()).with_update("notes", json!("planned")))
            }

            async fn answer(context: NodeContext) -> Result<NodeOutput> {
                let risk = context.state().get("risk").and_then(Value::as_u64).unwrap_or_default();
                Ok(NodeOutput::update("answer", risk.to_string().into()).with_update("done", true.into()))
            }

            pub async fn run() {
                let spec = ["question", "risk", "answer", "done"].into_iter().fold(StateSpec::new(), |spec, name| {
                    spec.channel(name, Reducer::Overwrite)
                });
                let spec = spec.channel("notes", Reducer::Append);
                let mut graph = GraphBuilder::new();
                graph.add_node("plan", plan).add_node("answer", answer).set_entry_point("plan").add_edge("plan", "answer");
                let graph = graph.compile().expect("a graph");
                let asked = State::from_value(json!({ "question": "why?" })).expect("an object");
                let executor = Executor::with_checkpointer(Arc::new(InMemoryCheckpointer::new()));
                let ended = executor.run(&graph, &spec, asked, RunConfig::new("t")).await.expect("it ends");
                assert_eq!(ended.state().get("answer"), Some(&json!("4")));
            }
        }
    };
}

harness::graphs!();
