//! Graphs with state types of their own, each run once: one, or five with `--cfg many`.

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
            struct Ask {
                question: String,
                #[reduce(append)]
                notes: Vec<String>,
                risk: u8,
                answer: String,
                done: bool,
            }

            async fn plan(state: Snapshot<Ask>) -> Result<AskUpdate> {
                Ok(Ask::update().risk(u8::try_from(state.question.len())?).notes(["planned"]))
            }

            async fn answer(state: Snapshot<Ask>) -> AskUpdate {
                Ask::update().answer(state.risk.to_string()).done(true)
            }

            pub async fn run() {
                let graph = StateGraph::new().node("plan", plan).node("answer", answer);
                let graph = graph.edge(START, "plan").edge("plan", "answer").compile().expect("a graph");
                let graph = graph.checkpointer(MemorySaver::new());
                let state =
                    graph.invoke(Ask::update().question("why?")).thread("t").finish().await.expect("it ends");
                assert!(state.done && state.answer == "4");
            }
        }
    };
}

harness::graphs!();
