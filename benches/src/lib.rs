//! What the engine costs, beside hand-written floors in the same program.
//!
//! A *case* has a floor (the same work by hand) and one or more *entrants* (the engine), which are run in
//! turns, so that a machine that changes its speed changes it for all of them. Only their ratio is judged.
//! Every run asserts its result.
//!
//! ```text
//! cargo bench -p agentgraph-benches                      all cases: times, then allocations
//! cargo bench -p agentgraph-benches -- chain sqlite      the cases whose names contain one of the words
//! cargo bench -p agentgraph-benches --bench server       the embedded UpGrade server: calls a second
//! cargo bench -p agentgraph-benches -- --quick           a few repetitions, to see that everything runs
//! cargo bench -p agentgraph-benches --bench cost -- --processes 1 chain/100
//! ```
//!
//! The cases of Postgres are there with `--features postgres`. They start a private server, measure another
//! one if `AGENTGRAPH_BENCHES_POSTGRES` holds the URL of a database that may be filled, and are left out
//! where there is neither.
//!
//! Each case is taken in five fresh processes, and the figure is the median of theirs: within one process the
//! layout of memory is chosen once, and it alone moves a loop of 60 ns by a tenth.

// A measurement that goes wrong must stop at once, and there is nobody to whom it could report an error.
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
mod states;

pub use measure::Allocated;

/// Why the measuring itself could not be done.
pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// The times of the cases that the arguments name, as a table on the standard output.
///
/// # Errors
/// When an argument is not known, or a measuring process fails.
pub fn take_times() -> Result<(), Problem> {
    process::main(&arguments::Arguments::read()?)
}

/// The calls a second of the embedded UpGrade server, as a table on the standard output, unless the
/// arguments name other things.
///
/// # Errors
/// When an argument is not known, or a call is not answered well.
pub fn count_calls() -> Result<(), Problem> {
    server::main(&arguments::Arguments::read()?)
}

/// The allocations of the cases that the arguments name. `count` runs what it is given and counts.
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
