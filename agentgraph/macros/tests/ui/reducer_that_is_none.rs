use agentgraph::State;
use serde::{Deserialize, Serialize};

struct Sum;

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Spent {
    #[reduce(reducer = Sum, write = u64)]
    tokens: u64,
}

fn main() {}
