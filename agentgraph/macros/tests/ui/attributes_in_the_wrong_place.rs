use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
#[channel(run)]
#[state(volatil)]
struct Triage {
    #[state(volatile)]
    question: String,
}

fn main() {}
