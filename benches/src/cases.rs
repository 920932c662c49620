//! The cases, in the order of the tables.

mod chain;
#[cfg(feature = "all")]
mod draw;
mod eager;
mod edits;
mod fan_out;
mod flat;
#[cfg(feature = "all")]
mod growth;
mod kept;
mod looped;
mod many_runs;
#[cfg(feature = "all")]
mod once;
#[cfg(feature = "all")]
mod pass;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "all")]
mod reading;
#[cfg(feature = "all")]
mod sqlite;
#[cfg(feature = "all")]
mod store;
#[cfg(feature = "all")]
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
        #[cfg(feature = "all")]
        pass::cases(),
        kept::cases(),
        #[cfg(feature = "all")]
        sqlite::cases(),
        #[cfg(feature = "all")]
        growth::cases(),
        #[cfg(feature = "all")]
        once::cases(),
        #[cfg(feature = "all")]
        store::cases(),
        #[cfg(feature = "all")]
        reading::cases(),
        #[cfg(feature = "all")]
        waiting::cases(),
        #[cfg(feature = "all")]
        draw::cases(),
        #[cfg(feature = "postgres")]
        postgres::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
