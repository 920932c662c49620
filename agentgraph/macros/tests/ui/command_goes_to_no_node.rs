use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

async fn plan() -> Command<Triage> {
    Command::new().goto(3)
}

fn main() {
    let _ = StateGraph::<Triage>::new().node("plan", plan);
}
