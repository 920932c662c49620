use std::collections::{HashMap, HashSet};

use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(append)]
    prices: HashMap<String, u32>,
    #[reduce(merge)]
    notes: Vec<String>,
    #[reduce(by_id)]
    risk: u8,
    #[reduce(append)]
    seen: HashSet<String>,
    #[reduce(merge)]
    answer: Option<String>,
}

fn main() {}
