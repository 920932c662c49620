//! A run of the graph "ask".

use agentgraph::prelude::*;
use agentgraph::testing::TestGraph;
use serde_json::json;

use super::{Ask, ask}; // the state, and the function that builds the graph

#[tokio::test]
async fn ask_ends_as_it_did() -> Result<()> {
    let test = TestGraph::of(ask());
    let test = test.answer(json!({"go":true}));
    let trace = test.trace(Ask::update().done(false)).await;
    assert!(trace.outcome().is_ok());
    Ok(())
}
