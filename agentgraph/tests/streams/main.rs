//! What the reader of a stream hears.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod continued_calls_begin_with_their_state;
mod events_have_a_stable_json_form;
mod streams_are_ordered_and_end_once;
mod streams_include_events_of_subgraphs;
mod streams_show_attempts;
mod streams_show_tasks_and_checkpoints;
