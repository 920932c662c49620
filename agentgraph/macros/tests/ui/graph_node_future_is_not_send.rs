use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

async fn wait() {}

async fn plan(_state: Snapshot<Triage>) -> TriageUpdate {
    let shared = std::rc::Rc::new(3);
    wait().await;
    Triage::update().question(shared.to_string())
}

fn main() {
    let _ = StateGraph::<Triage>::new().node("plan", plan);
}
