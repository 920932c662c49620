use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(with)]
    risk: u8,
    #[reduce(with = "keep_max")]
    cost: u8,
    #[reduce(with = keep_max, writes = u8)]
    size: u8,
}

fn keep_max(value: &mut u8, write: u8) {
    *value = write.max(*value);
}

fn main() {}
