//! A loop of nodes that are always ready does not keep other tasks from running.

use agentgraph::{CancellationToken, StopReason, prelude::*};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Count {
    n: u64,
}

async fn add(count: Snapshot<Count>) -> CountUpdate {
    Count::update().n(count.n + 1)
}

#[tokio::test]
async fn a_loop_of_ready_nodes_stops_when_another_task_cancels_its_token() {
    let graph = StateGraph::new().node("add", add).edge(START, "add").edge("add", "add").compile().unwrap();
    let token = CancellationToken::new();
    let cancel = token.clone();
    let other = tokio::spawn(async move { cancel.cancel() });
    let outcome = graph.invoke(Count::update()).cancel(token).max_supersteps(1_000_000).await.unwrap();
    other.await.unwrap();
    let Outcome::Stopped { reason, output, .. } = outcome else { panic!("it was cancelled") };
    assert_eq!(reason, StopReason::Cancelled);
    assert!(output.n < 1_000_000);
}
