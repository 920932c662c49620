//! The program: runs of the benchmark's questions, single questions, and looks at both.

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
