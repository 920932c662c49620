//! The program: a chat with the UpGrade agent, single questions to it, and its embedded server alone.

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
