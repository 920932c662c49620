use agentgraph::State;

#[derive(State, Clone, Default)]
struct Nothing;

fn main() {}
