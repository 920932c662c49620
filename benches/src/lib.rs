//! Measures the cost of the engine against hand-written floors in the same program.
//!
//! ```text
//! cargo run --release -p agentgraph-benches -- traverse --shape grid --nodes 10..1000000
//! ```
//!
//! walks graphs of a shape and a size of your own, beside petgraph and beside a walk by hand; `--help`
//! lists the options. What follows is about the fixed cases:
//!
//! A *case* has a floor (the same work by hand) and one or more *entrants* (the engine). They run in
//! turns, so that a change of the machine's speed affects all of them. Only their ratio is judged. Every
//! run asserts its result.
//!
//! ```text
//! cargo bench -p agentgraph-benches                      all cases: times, then allocations
//! cargo bench -p agentgraph-benches -- chain sqlite      the cases of these groups
//! cargo bench -p agentgraph-benches -- --help            the other options
//! ```
//!
//! The Postgres cases need `--features postgres`. They use the database whose URL is in
//! `AGENTGRAPH_BENCHES_POSTGRES`, and fill it. Without the variable they start a private server. If
//! Postgres is not installed either, they are left out.
//!
//! Five fresh processes measure each case, and the figure is the median of the five. A process lays out its
//! memory once, and that layout alone changes the time of a 60 ns loop by a tenth.
//!
//! The package `agentgraph-agent-benches` measures the agents and the servers with the same parts.

// A failing measurement must stop at once; it has no caller that could handle an error.
#![allow(clippy::expect_used, clippy::panic)]

mod accepted;
mod arguments;
mod bare;
mod baseline;
mod case;
mod cases;
mod folder;
mod measure;
mod postgres;
mod process;
mod report;
mod runtime;
mod states;
#[cfg(feature = "all")]
pub mod traverse;

use accepted::Accepted;
pub use arguments::Arguments;
pub use case::{Case, Entrant, Figure};
pub use cases::all as engine_cases;
pub use folder::Folder;
pub use measure::Allocated;
use measure::EntrantAllocations;
pub use runtime::{on, one_thread};

/// The reason why a measurement could not be made.
pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Prints the times of the cases that the arguments name, as a table on the standard output.
///
/// # Errors
/// When no case has a name that was given, or a measuring process fails.
pub fn take_times(cases: Vec<Case>) -> Result<(), Problem> {
    process::main(cases, &Arguments::read())
}

/// How often an entrant with more allocations than were accepted is counted again.
const AGAIN: usize = 4;

/// Prints the allocations of the cases that the arguments name, beside those that were accepted. `count` runs
/// its argument and counts the allocations.
///
/// # Errors
/// When an entrant allocates more often than was accepted.
pub fn count_allocations(cases: &[Case], count: fn(&mut dyn FnMut()) -> Allocated) -> Result<(), Problem> {
    let arguments = Arguments::read();
    if arguments.list {
        // `cost`, which cargo runs as well, lists them.
        return Ok(());
    }
    let wanted = cases.iter().filter(|case| arguments.wants(case.name));
    let mut lines: Vec<_> = wanted.flat_map(|case| measure::allocations(case, count)).collect();
    let mut accepted = Accepted::read()?;
    // A writer of SQLite takes all that has come meanwhile into one transaction. On a busy machine that is
    // less, and a caller waits, and allocates, more often. The least of some counts is what the code costs.
    for _ in 0..AGAIN {
        let has_grown =
            |case: &&Case| lines.iter().any(|line| line.case == case.name && accepted.has_grown(line));
        let again: Vec<_> =
            cases.iter().filter(has_grown).flat_map(|case| measure::allocations(case, count)).collect();
        for line in &mut lines {
            let counts = again.iter().filter(|again| (again.case, again.label) == (line.case, line.label));
            for EntrantAllocations { count, bytes, .. } in counts {
                line.count = line.count.min(*count);
                line.bytes = line.bytes.min(*bytes);
            }
        }
    }
    report::allocations(&lines, &accepted);
    if arguments.accept { accepted.replace(&lines) } else { accepted.check(&lines) }
}
