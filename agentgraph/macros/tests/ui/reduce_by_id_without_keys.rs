use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone)]
struct Message {
    id: String,
}

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(by_id)]
    messages: Vec<Message>,
}

fn main() {}
