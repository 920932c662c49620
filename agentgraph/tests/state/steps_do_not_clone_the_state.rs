//! No step clones the state, whether its only task, several tasks or a store take part: the snapshots of its
//! nodes are gone before the merge.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

/// Counts how often it is cloned.
#[derive(Serialize, Deserialize, Debug, Default)]
struct Counted {
    #[serde(skip)]
    count: Arc<AtomicUsize>,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.count.fetch_add(1, SeqCst);
        Counted { count: Arc::clone(&self.count) }
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Walk {
    counted: Counted,
    #[reduce(sum)]
    steps: u32,
}

async fn step(walk: Snapshot<Walk>) -> WalkUpdate {
    Walk::update().steps(u32::from(walk.steps < 1000))
}

#[tokio::test]
async fn neither_a_chain_nor_parallel_nodes_nor_a_store_cost_a_clone() {
    for (stored, parallel) in [(false, false), (true, false), (false, true), (true, true)] {
        let graph = StateGraph::new().node("a", step).node("b", step);
        let graph = graph.edge(START, "a").edge("a", "a");
        let graph = if parallel { graph.edge(START, "b").edge("b", "b") } else { graph.edge("a", "b") };
        let graph = graph.compile().unwrap();
        let graph = if stored { graph.checkpointer(MemorySaver::new()) } else { graph };
        let mut clones = Vec::new();
        for steps in [10, 50] {
            let counted = Counted::default();
            let count = Arc::clone(&counted.count);
            let call = graph.invoke(Walk::update().counted(counted)).max_supersteps(steps);
            let call = if stored { call.thread(format!("t-{steps}")) } else { call };
            call.await.unwrap();
            clones.push(count.load(SeqCst));
        }
        assert_eq!(clones[0], clones[1], "stored: {stored}, parallel: {parallel}");
    }
}
