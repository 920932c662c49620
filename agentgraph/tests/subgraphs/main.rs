//! Graphs as nodes of graphs.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "sqlite")]
#[path = "../sqlite_folder/mod.rs"]
mod sqlite_folder;

mod a_drawing_shows_the_graphs_inside;
mod commands_leave_subgraphs;
mod fatal_errors_in_subgraphs_end_the_run;
mod subgraphs_are_read_through_their_parent;
mod subgraphs_ask_at_the_root;
mod subgraphs_fail_stop_and_go_on;
mod subgraphs_keep_their_memories;
mod subgraphs_nest_a_thousand_deep;
mod subgraphs_pass_on_their_updates;
