//! Times the turns of the shop agent over HTTP; see the crate's documentation.

fn main() -> Result<(), agentgraph_benches::Problem> {
    agentgraph_benches::time_turns()
}
