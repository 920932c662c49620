use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node(Triage)]
fn plan(_state: Snapshot<Triage>) -> TriageUpdate {
    Triage::update()
}

fn main() {}
