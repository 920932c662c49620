//! Measures the agents and their servers, with the parts of `agentgraph-benches`.
//!
//! ```text
//! cargo bench -p agentgraph-agent-benches --bench agents     a round of each agent beside a loop by hand
//! cargo bench -p agentgraph-agent-benches --bench server     the embedded UpGrade server: calls a second
//! cargo bench -p agentgraph-agent-benches --bench shop       the shop agent over HTTP: first frame, whole turn, cancel
//! ```
//!
//! `-- --help` lists the options.

// A failing measurement must stop at once; it has no caller that could handle an error.
#![allow(clippy::expect_used, clippy::panic)]

mod agent;
mod gaia;
mod gaia_wire;
mod server;
mod shop;

use agentgraph_benches::{Arguments, Case, Problem};

/// All cases of the agents.
pub fn cases() -> Vec<Case> {
    [agent::cases(), gaia::cases()].into_iter().flatten().collect()
}

/// Prints the calls a second of the embedded UpGrade server, as a table on the standard output.
///
/// # Errors
/// When a call fails.
pub fn count_calls() -> Result<(), Problem> {
    let arguments = Arguments::read();
    if wants(&arguments, "server") { server::main(&arguments) } else { Ok(()) }
}

/// Prints the times of turns of the shop agent, and of a cancel.
///
/// # Errors
/// When a call fails.
pub fn time_turns() -> Result<(), Problem> {
    let arguments = Arguments::read();
    if wants(&arguments, "shop") { shop::main(&arguments) } else { Ok(()) }
}

/// Whether a bench that is one case is to run. Prints its name if the names are asked for.
fn wants(arguments: &Arguments, case: &str) -> bool {
    if arguments.list {
        println!("{case}");
    }
    !arguments.list && arguments.wants(case)
}
