use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, Default)]
struct Money(u32);

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Bill {
    #[reduce(sum)]
    total: Money,
}

fn main() {}
