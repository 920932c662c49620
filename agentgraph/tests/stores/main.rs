//! Stores: their contract, SQLite, large values, encryption, wrappers.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "postgres")]
#[path = "../postgres_server/mod.rs"]
mod postgres_server;
#[cfg(feature = "sqlite")]
#[path = "../sqlite_folder/mod.rs"]
mod sqlite_folder;

mod clones_are_handles_of_one_store;
mod impossible_row_ids_are_errors;
mod large_values_are_stored_once;
mod sqlite_dropped_waiters;
mod sqlite_shared_commits;
mod stored_values_are_encrypted;
mod stores_keep_their_contract;
mod wrappers_delegate_what_they_do_not_change;
