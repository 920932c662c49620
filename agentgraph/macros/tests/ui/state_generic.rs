use agentgraph::State;

#[derive(State, Clone, Default)]
struct Triage<T> {
    question: T,
}

fn main() {}
