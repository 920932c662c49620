use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node]
async fn plan(_state: Snapshot<Triage>) -> TriageUpdate {
    Triage::update()
}

#[node(Triage, TriageUpdate)]
async fn search(_state: Snapshot<Triage>) -> TriageUpdate {
    Triage::update()
}

fn main() {}
