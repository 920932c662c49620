//! Measures the cost of the engine against hand-written floors in the same program.
//!
//! A *case* has a floor (the same work by hand) and one or more *entrants* (the engine). They run in
//! turns, so that a change of the machine's speed affects all of them. Only their ratio is judged. Every
//! run asserts its result.
//!
//! ```text
//! cargo bench -p agentgraph-benches                      all cases: times, then allocations
//! cargo bench -p agentgraph-benches -- chain sqlite      the cases whose names contain one of the words
//! cargo bench -p agentgraph-benches --bench server       the embedded UpGrade server: calls a second
//! cargo bench -p agentgraph-benches --bench shop         the shop agent over HTTP: first frame, whole turn, cancel
//! cargo bench -p agentgraph-benches -- --quick           a few repetitions, to see that everything runs
//! cargo bench -p agentgraph-benches --bench cost -- --processes 1 chain/100
//! ```
//!
//! The Postgres cases need `--features postgres`. They use the database whose URL is in
//! `AGENTGRAPH_BENCHES_POSTGRES`, and fill it. Without the variable they start a private server. If
//! Postgres is not installed either, they are left out.
//!
//! Five fresh processes measure each case, and the figure is the median of the five. A process lays out its
//! memory once, and that layout alone changes the time of a 60 ns loop by a tenth.

// A failing measurement must stop at once; it has no caller that could handle an error.
#![allow(clippy::expect_used, clippy::panic)]

mod arguments;
mod bare;
mod case;
mod cases;
mod measure;
mod postgres;
mod process;
mod report;
mod runtime;
mod server;
mod shop;
mod states;

pub use measure::Allocated;

/// The reason why a measurement could not be made.
pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Prints the times of the cases that the arguments name, as a table on the standard output.
///
/// # Errors
/// When an argument is not known, or a measuring process fails.
pub fn take_times() -> Result<(), Problem> {
    process::main(&arguments::Arguments::read()?)
}

/// Prints the calls a second of the embedded UpGrade server, as a table on the standard output. Prints
/// nothing if the arguments name other cases.
///
/// # Errors
/// When an argument is not known, or a call fails.
pub fn count_calls() -> Result<(), Problem> {
    server::main(&arguments::Arguments::read()?)
}

/// Prints the times of turns of the shop agent, and of a cancel. Prints nothing if the arguments name other
/// cases.
///
/// # Errors
/// When an argument is not known, or a call fails.
pub fn time_turns() -> Result<(), Problem> {
    shop::main(&arguments::Arguments::read()?)
}

/// Prints the allocations of the cases that the arguments name. `count` runs its argument and counts the
/// allocations.
///
/// # Errors
/// When an argument is not known.
pub fn count_allocations(count: fn(&mut dyn FnMut()) -> Allocated) -> Result<(), Problem> {
    let arguments = arguments::Arguments::read()?;
    let mut lines = Vec::new();
    for case in cases::all().into_iter().filter(|case| arguments.wants(case.name)) {
        lines.extend(measure::allocations(&case, count));
    }
    report::allocations(&lines);
    Ok(())
}
