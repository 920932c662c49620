use agentgraph::State;
use agentgraph::reduce::Reducer;
use serde::{Deserialize, Serialize};

struct Sum;

impl Reducer<u64> for Sum {
    type Write = u64;
    const KIND: &'static str = "sum";
    fn reduce(value: &mut u64, write: u64) {
        *value += write;
    }
    fn combine(write: &mut u64, later: u64) {
        *write += later;
    }
}

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Spent {
    #[reduce(reducer = Sum)]
    tokens: u64,
}

fn main() {}
