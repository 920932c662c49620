use agentgraph::Snapshot;
use agentgraph_llm::tool;

struct Trip;

#[tool]
async fn plan(trip: Snapshot<Trip>) -> String {
    let _ = trip;
    String::new()
}

fn main() {}
