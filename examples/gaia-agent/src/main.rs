//! The program: runs of the benchmark's questions, single questions, and looks at both.

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    gaia_agent::python::helper().unwrap_or_else(cli::main)
}
