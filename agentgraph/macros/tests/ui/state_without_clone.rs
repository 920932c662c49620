use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Default)]
struct Triage {
    question: String,
}

fn main() {}
