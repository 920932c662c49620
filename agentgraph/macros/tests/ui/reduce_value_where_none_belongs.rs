use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(append = 3)]
    notes: Vec<String>,
    #[channel(run = true)]
    risk: u8,
}

fn main() {}
