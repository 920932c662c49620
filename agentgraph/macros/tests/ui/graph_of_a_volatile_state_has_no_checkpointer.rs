use agentgraph::prelude::*;

#[derive(State, Clone, Default)]
#[state(volatile)]
struct Session {
    socket: Option<std::sync::Arc<std::net::TcpStream>>,
}

async fn close() -> SessionUpdate {
    Session::update().socket(None)
}

fn main() {
    let graph = StateGraph::new().node("close", close).edge(START, "close").compile().unwrap();
    let _ = graph.checkpointer(MemorySaver::new());
}
