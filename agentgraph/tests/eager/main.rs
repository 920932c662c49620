//! Graphs without supersteps.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod eager_branches_do_not_wait;
mod eager_model;
mod eager_runs_are_edited_as_they_go;
mod eager_runs_are_kept;
mod eager_runs_match_a_model;
