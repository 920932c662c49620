use agentgraph::State;

#[derive(State, Clone)]
enum Phase {
    Asking,
    Answering,
}

fn main() {}
