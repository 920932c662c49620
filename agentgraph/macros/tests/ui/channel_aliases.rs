use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
    #[channel(alias = "question")]
    answer: String,
    #[channel(alias = "danger")]
    risk: u8,
    #[channel(alias = "danger")]
    cost: u8,
    #[channel(untracked, alias = "was_stored")]
    cache: String,
}

fn main() {}
