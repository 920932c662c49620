use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(append)]
    #[reduce(last)]
    notes: Vec<String>,
    #[reduce(append, last)]
    more: Vec<String>,
}

fn main() {}
