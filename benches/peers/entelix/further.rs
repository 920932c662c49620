//! Graphs with state types of their own, each run once: one, or five with `--cfg many`.

use std::sync::Arc;

use entelix_core::ExecutionContext;
use entelix_graph::{Annotated, Append, InMemoryCheckpointer, StateGraph, StateMerge};
use entelix_runnable::{Runnable, RunnableLambda};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[derive(StateMerge, Clone, Debug, Default)]
            pub struct Ask {
                question: String,
                notes: Annotated<Vec<String>, Append<String>>,
                risk: u8,
                answer: String,
                done: bool,
            }

            pub async fn run() {
                let plan = RunnableLambda::new(|state: Ask, _| async move {
                    let update = AskContribution::default().with_risk(state.question.len() as u8);
                    Ok(update.with_notes(vec!["planned".to_owned()]))
                });
                let answer = RunnableLambda::new(|state: Ask, _| async move {
                    Ok(AskContribution::default().with_answer(state.risk.to_string()).with_done(true))
                });
                let graph = StateGraph::new()
                    .add_contributing_node("plan", plan)
                    .add_contributing_node("answer", answer);
                let graph =
                    graph.add_edge("plan", "answer").set_entry_point("plan").add_finish_point("answer");
                let graph = graph
                    .with_checkpointer(Arc::new(InMemoryCheckpointer::new()))
                    .compile()
                    .expect("a graph");
                let asked = Ask { question: "why?".to_owned(), ..Ask::default() };
                let context = ExecutionContext::new().with_thread_id("t");
                let state = graph.invoke(asked, &context).await.expect("it ends");
                assert!(state.done && state.answer == "4");
            }
        }
    };
}

harness::graphs!();
