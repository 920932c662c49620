use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

struct Planner;

impl Planner {
    #[node(Triage)]
    async fn plan(&self, _state: Snapshot<Triage>) -> TriageUpdate {
        Triage::update()
    }
}

fn main() {}
