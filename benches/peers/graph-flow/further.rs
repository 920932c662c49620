//! Graphs of their own, each run once: one, or five with `--cfg many`. The state is JSON, so that they share
//! its type.

use std::sync::Arc;

use async_trait::async_trait;
use graph_flow::{
    Context, FlowRunner, GraphBuilder, InMemorySessionStorage, NextAction, Result, Session, SessionStorage,
    Task, TaskResult,
};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            struct Plan;

            #[async_trait]
            impl Task for Plan {
                fn id(&self) -> &str {
                    "plan"
                }

                async fn run(&self, context: Context) -> Result<TaskResult> {
                    let question: String = context.get("question").unwrap_or_default();
                    context.set("risk", question.len() as u8)?;
                    context.set("notes", ["planned"])?;
                    Ok(TaskResult::new(None, NextAction::ContinueAndExecute))
                }
            }

            struct Answer;

            #[async_trait]
            impl Task for Answer {
                fn id(&self) -> &str {
                    "answer"
                }

                async fn run(&self, context: Context) -> Result<TaskResult> {
                    let risk: u8 = context.get("risk").unwrap_or_default();
                    context.set("answer", risk.to_string())?;
                    context.set("done", true)?;
                    Ok(TaskResult::new(None, NextAction::End))
                }
            }

            pub async fn run() {
                let graph = GraphBuilder::new("ask").add_task(Arc::new(Plan)).add_task(Arc::new(Answer));
                let graph = graph.add_edge("plan", "answer").build().expect("a graph");
                let store = Arc::new(InMemorySessionStorage::new());
                let session = Session::new_from_task("t".to_owned(), "plan");
                session.context.set("question", "why?").expect("a text");
                let context = session.context.clone();
                store.save(session).await.expect("a store");
                FlowRunner::new(Arc::new(graph), store).run("t").await.expect("it ends");
                assert_eq!(context.get::<String>("answer").as_deref(), Some("4"));
            }
        }
    };
}

harness::graphs!();
