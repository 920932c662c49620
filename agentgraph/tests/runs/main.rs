//! A run from its input to its end: nodes, failures, policies, limits, hosts.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../beside_langgraph/mod.rs"]
mod beside_langgraph;
#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "sqlite")]
#[path = "../sqlite_folder/mod.rs"]
mod sqlite_folder;

mod a_session_belongs_to_its_run;
mod a_thread_needs_a_checkpointer;
mod an_open_breaker_rejects_attempts;
mod blocking_nodes_do_not_stall_their_run;
mod cached_nodes_are_not_run_again;
mod calls_pass_context_to_their_nodes;
mod calls_that_are_dropped_warn;
mod contexts_act_only_for_their_own_task;
mod declaration_order_changes_nothing;
mod engine_matches_reference_model;
mod error_handlers_stand_in_for_failed_nodes;
mod errors_are_printed_as_their_messages;
mod failures_keep_what_finished;
mod finish_is_the_output_of_a_finished_run;
mod graphs_agree_with_langgraph;
mod habits_of_langgraph_carry_over;
mod hosts_run_tasks_elsewhere;
#[cfg(feature = "testing")]
mod limits_hold_across_subgraphs;
mod panics_outside_nodes_are_errors_too;
mod pauses_keep_finished_work;
mod policies_of_nodes_and_graphs;
mod ready_loops_give_way;
mod ready_tasks_are_merged_as_stored_ones;
#[cfg(feature = "sqlite")]
mod reference_model;
mod runs_end_within_their_budget;
mod runs_stop_at_exact_limits;
mod types_cross_threads;
mod unfinished_work_is_always_reported;
