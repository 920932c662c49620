//! Measures the time of every case; see the crate's documentation for the arguments.

fn main() -> Result<(), agentgraph_benches::Problem> {
    agentgraph_benches::take_times(agentgraph_benches::engine_cases())
}
