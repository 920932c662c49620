use agentgraph::State;

#[derive(State, Clone, Default)]
struct Triage(String, u8);

fn main() {}
