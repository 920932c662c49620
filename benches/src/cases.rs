//! The cases, in the order of the tables.

mod chain;
mod draw;
mod eager;
mod edits;
mod fan_out;
mod flat;
mod growth;
mod kept;
mod looped;
mod many_runs;
mod once;
mod pass;
#[cfg(feature = "postgres")]
mod postgres;
mod reading;
mod sqlite;
mod store;
mod waiting;

use crate::case::Case;

/// All cases of the engine.
pub fn all() -> Vec<Case> {
    [
        chain::cases(),
        looped::cases(),
        flat::cases(),
        fan_out::cases(),
        eager::cases(),
        edits::cases(),
        many_runs::cases(),
        pass::cases(),
        kept::cases(),
        sqlite::cases(),
        growth::cases(),
        once::cases(),
        store::cases(),
        reading::cases(),
        waiting::cases(),
        draw::cases(),
        #[cfg(feature = "postgres")]
        postgres::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
