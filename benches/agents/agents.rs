//! Measures the time of every case of the agents; see the crate's documentation.

fn main() -> Result<(), agentgraph_benches::Problem> {
    agentgraph_benches::take_times(agentgraph_agent_benches::cases())
}
