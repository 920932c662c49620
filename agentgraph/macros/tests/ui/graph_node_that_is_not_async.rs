use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

fn main() {
    let _ = StateGraph::<Triage>::new().node("plan", |state: Snapshot<Triage>| state.question.len());
}
