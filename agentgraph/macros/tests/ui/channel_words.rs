use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[channel(ephemerl)]
    question: String,
    #[channel(encrypted)]
    token: String,
    #[channel(run, ephemeral)]
    notes: Vec<String>,
    #[channel(alias)]
    risk: u8,
    #[channel(alias = old_answer)]
    answer: String,
}

fn main() {}
