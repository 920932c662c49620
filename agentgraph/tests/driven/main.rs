//! Driven runs: the loop notes what it needs, and a driver of the test replies.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod driver;
mod graphs;
mod local;

mod bytes_are_the_same_on_every_replay;
mod calls_end_as_local_ones_do;
mod edits_change_a_thread_as_local_ones_do;
mod rows_are_all_that_a_thread_needs;
mod tasks_that_run_here_read_the_state_itself;
mod wrong_replies_are_errors;
