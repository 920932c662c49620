use agentgraph::State;
use serde::{Deserialize, Serialize};

type Notes = std::collections::BTreeSet<String>;

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(append)]
    notes: Notes,
}

fn main() {}
