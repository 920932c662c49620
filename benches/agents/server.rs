//! Counts the calls that the embedded UpGrade server answers; see the crate's documentation.

fn main() -> Result<(), agentgraph_benches::Problem> {
    agentgraph_agent_benches::count_calls()
}
