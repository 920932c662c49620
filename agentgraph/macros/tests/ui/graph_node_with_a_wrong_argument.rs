use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

async fn plan(_limit: u32) -> TriageUpdate {
    Triage::update()
}

fn main() {
    let _ = StateGraph::<Triage>::new().node("plan", plan);
}
