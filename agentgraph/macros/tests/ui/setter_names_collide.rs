use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(append)]
    notes: Vec<String>,
    overwrite_notes: bool,
    is_empty: bool,
}

fn main() {}
