//! Temporary edits: a run changes its own graph.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "sqlite")]
#[path = "../sqlite_folder/mod.rs"]
mod sqlite_folder;

mod edit_model;
mod edited_runs_match_a_model;
mod temporary_edits_hold_for_one_run;
mod temporary_edits_outlive_the_process;
