use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node(Triage)]
async fn plan(_state: &Triage, _name: &str) -> TriageUpdate {
    Triage::update()
}

fn main() {}
