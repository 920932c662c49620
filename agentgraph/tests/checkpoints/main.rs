//! What is stored of a thread and when, reading it again, who may write it, and removing old checkpoints.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "postgres")]
#[path = "../postgres_server/mod.rs"]
mod postgres_server;
#[cfg(feature = "sqlite")]
#[path = "../sqlite_folder/mod.rs"]
mod sqlite_folder;

mod a_refused_call_takes_nothing;
mod a_replay_is_a_replay_from_any_checkpoint;
mod a_run_whose_thread_is_deleted_has_lost_it;
mod branches_say_where_they_began;
mod checkpoint_cost_grows_with_the_change;
mod checkpoints_list_open_work;
mod dropped_at_every_poll_the_thread_proceeds;
mod durability_says_when_checkpoints_are_stored;
mod edits_send_a_thread_to_other_nodes;
mod ended_calls_keep_the_progress_of_their_run;
mod every_flipped_bit_is_found;
mod history_holds_one_state_at_a_time;
mod memories_are_those_of_their_checkpoint;
mod pruned_threads_go_on;
mod reading_a_checkpoint_is_bounded;
mod reports_say_what_is_open_and_why;
mod reports_say_what_proceed_runs;
mod runs_are_cancelled_from_anywhere;
mod several_edits_are_one_commit;
mod stored_bytes_never_panic;
mod stored_checkpoints_of_all_formats_still_read;
mod stored_threads_say_why_they_failed;
mod tasks_go_on_while_their_run_stores;
mod threads_are_pruned_while_they_run;
mod threads_belong_to_their_graph;
mod threads_have_one_run_at_a_time;
mod time_travel_never_changes_what_was_stored;
