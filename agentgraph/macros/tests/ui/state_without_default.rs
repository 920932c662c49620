use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone)]
struct Triage {
    question: String,
    #[channel(run)]
    risk: u8,
}

fn main() {}
