//! Graphs with state types of their own, each run once: one, or five with `--cfg many`.

use std::sync::Arc;

use langgraph::checkpoint::InMemorySaver;
use langgraph::langgraph_state;
use langgraph::prelude::*;
use serde_json::json;

fn append(list: &JsonValue, more: &JsonValue) -> JsonValue {
    let items = |list: &JsonValue| list.as_array().cloned().unwrap_or_default();
    JsonValue::Array([items(list), items(more)].concat())
}

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[langgraph_state]
            struct Ask {
                question: String,
                #[channel(reducer = "append")]
                notes: Vec<String>,
                risk: u8,
                answer: String,
                done: bool,
            }

            async fn plan(state: JsonValue, _: RunnableConfig) -> Result<JsonValue, RunnableError> {
                let question = state["question"].as_str().unwrap_or_default();
                Ok(json!({ "risk": question.len(), "notes": ["planned"] }))
            }

            async fn answer(state: JsonValue, _: RunnableConfig) -> Result<JsonValue, RunnableError> {
                Ok(json!({ "answer": state["risk"].to_string(), "done": true }))
            }

            pub async fn run() {
                let mut graph = StateGraph::new(Ask::create_channels());
                graph.add_node("plan", plan).expect("a node").add_node("answer", answer).expect("a node");
                graph.add_edge(START, "plan").expect("an edge").add_edge("plan", "answer").expect("an edge");
                graph.add_edge("answer", END).expect("an edge");
                let graph = graph.compile_builder().checkpointer(Arc::new(InMemorySaver::new())).build().expect("a graph");
                let thread = RunnableConfig::from([("configurable".to_owned(), json!({ "thread_id": "t" }))]);
                let state = graph.ainvoke(&json!({ "question": "why?" }), &thread).await.expect("it ends");
                assert_eq!(state["answer"], "4");
            }
        }
    };
}

harness::graphs!();
