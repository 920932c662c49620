use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce]
    notes: Vec<String>,
    #[reduce()]
    more: Vec<String>,
    #[reduce = "append"]
    others: Vec<String>,
    #[reduce("append")]
    last: Vec<String>,
}

fn main() {}
