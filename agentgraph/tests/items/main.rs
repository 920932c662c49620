//! Long-term memory: what each `Store` keeps and finds, alone, beside others and after kills, and how nodes
//! reach it.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(feature = "postgres")]
#[path = "../postgres_server/mod.rs"]
mod postgres_server;
#[cfg(feature = "sqlite")]
#[path = "../sqlite_folder/mod.rs"]
mod sqlite_folder;
#[cfg(feature = "sqlite")]
#[path = "../two_processes/mod.rs"]
mod two_processes;

mod damaged_items_are_errors;
mod items_are_found_as_in_langgraph;
mod items_are_kept;
mod items_survive_kills;
mod nodes_reach_their_store;
mod stores_find_the_same_items;
