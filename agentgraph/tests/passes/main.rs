//! Passes of a `DependencyGraph`.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dependency_model;
mod edges_are_prepended_by_the_builder;
mod edits_of_running_nodes_are_typed;
mod passes_are_kept_watched_and_stopped;
mod passes_go_on_as_if_nothing_had_stopped_them;
mod passes_match_reference_model;
mod passes_run_and_edit_as_specified;
