use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(with = larger)]
    risk: u8,
}

fn larger(one: u8, other: u8) -> u8 {
    one.max(other)
}

fn main() {}
