use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node(Triage)]
async fn plan(_state: Snapshot<Triage>) -> String {
    "why?".to_owned()
}

#[node(Triage)]
async fn search(_state: Snapshot<Triage>) -> Result<usize> {
    Ok(3)
}

fn main() {}
