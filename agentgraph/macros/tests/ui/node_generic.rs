use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node(Triage)]
async fn plan<T: Send + Sync + 'static>(_client: Dep<T>) -> TriageUpdate {
    Triage::update()
}

#[node(Triage)]
async fn search(_state: impl std::ops::Deref<Target = Triage>) -> TriageUpdate {
    Triage::update()
}

fn main() {}
