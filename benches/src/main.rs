//! `agentgraph-benches traverse`: walks graphs of any shape and size; see `--help`.

use agentgraph_benches::{Problem, traverse};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures how fast the engine walks a graph, beside petgraph and a walk by hand")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Walks graphs of a shape and of several sizes, or a graph from a file.
    Traverse(traverse::Options),
}

fn main() -> Result<(), Problem> {
    let Command::Traverse(options) = Arguments::parse().command;
    traverse::main(&options)
}
