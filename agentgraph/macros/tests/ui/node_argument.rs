use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node(Triage)]
async fn plan(_state: Snapshot<Triage>, _limit: u32, _ctx: Ctx) -> TriageUpdate {
    Triage::update().question("why?")
}

fn main() {}
