//! Every clause, and the graphs that the clauses call.

mod attempts;
mod dispatches;
mod eager;
mod edits;
mod failures;
mod far_side;
mod identity;
mod kills;
mod limits;
mod passes;
mod questions;
mod sessions;
mod subgraphs;
mod supersteps;
mod threads;
mod values;

pub use far_side::{TaskContext, context_of};

use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;

/// Every clause there is.
pub fn clauses() -> Vec<Clause> {
    [
        supersteps::CLAUSES,
        values::CLAUSES,
        dispatches::CLAUSES,
        attempts::CLAUSES,
        failures::CLAUSES,
        questions::CLAUSES,
        sessions::CLAUSES,
        identity::CLAUSES,
        subgraphs::CLAUSES,
        edits::CLAUSES,
        passes::CLAUSES,
        eager::CLAUSES,
        limits::CLAUSES,
        threads::CLAUSES,
        far_side::CLAUSES,
        kills::CLAUSES,
    ]
    .concat()
}

/// Every graph of the kit. The processes on both sides of a host build them, with the same notes.
pub fn graphs(notes: &Notes) -> Vec<KitGraph> {
    [
        supersteps::graphs(notes),
        values::graphs(notes),
        dispatches::graphs(notes),
        attempts::graphs(notes),
        failures::graphs(notes),
        questions::graphs(notes),
        sessions::graphs(notes),
        identity::graphs(notes),
        subgraphs::graphs(notes),
        edits::graphs(notes),
        passes::graphs(notes),
        eager::graphs(notes),
        limits::graphs(notes),
        threads::graphs(notes),
        far_side::graphs(notes),
        kills::graphs(notes),
    ]
    .concat()
}
