use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, Default)]
struct Rank(u32);

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Race {
    #[reduce(max)]
    best: Rank,
}

fn main() {}
