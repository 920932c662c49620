//! A run of the graph "steps" that failed in "first".

use agentgraph::prelude::*;
use agentgraph::testing::TestGraph;

use super::{Steps, steps}; // the state, and the function that builds the graph

#[tokio::test]
async fn steps_fails_as_it_did() -> Result<()> {
    let test = TestGraph::of(steps());
    let test = test.fail("first", 1, || "boom!");
    let trace = test.trace(Steps::update().fails("ValueError").text("a \"cup\"")).await;
    let error = trace.outcome().unwrap_err();
    assert_eq!(error.node(), Some("first"));
    assert!(error.to_string().contains("boom!"), "{error}");
    Ok(())
}
