use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Bill {
    #[reduce(sum)]
    items: Vec<u32>,
    #[reduce(sum)]
    name: String,
    #[reduce(sum)]
    tip: Option<u32>,
}

fn main() {}
