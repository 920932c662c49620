use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

fn main() {
    let _ = StateGraph::<Triage>::new().route("plan", |state: &Triage| state.question.len());
}
