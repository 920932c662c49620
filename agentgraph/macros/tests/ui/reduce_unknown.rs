use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(concatenate)]
    notes: Vec<String>,
}

fn main() {}
