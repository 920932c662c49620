use agentgraph::prelude::*;

struct Triage;

fn main() {
    let _ = StateGraph::<Triage>::new();
}
