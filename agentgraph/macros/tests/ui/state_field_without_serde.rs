use agentgraph::State;

#[derive(Clone, Default)]
struct Client;

#[derive(State, Clone, Default)]
struct Triage {
    question: String,
    client: Client,
}

fn main() {}
