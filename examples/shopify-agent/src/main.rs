//! The program: the shop assistant over HTTP, with its page.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
