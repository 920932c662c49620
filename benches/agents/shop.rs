//! Times the turns of the shop agent over HTTP; see the crate's documentation.

fn main() -> Result<(), agentgraph_benches::Problem> {
    agentgraph_agent_benches::time_turns()
}
