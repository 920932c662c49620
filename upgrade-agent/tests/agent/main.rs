//! What the agent promises, turn by turn.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../server/tests/fixtures/recording.rs"]
mod recording;

mod confirmations_flow_as_recorded;
mod conversation_actions_are_checked;
mod conversation_answers_count_as_whole_messages;
mod conversation_runs_nothing_without_a_yes;
mod conversation_streams_equal_the_turn;
mod conversation_survives_a_stop_anywhere;
mod conversation_turns_do_not_mix;
mod conversation_warns_of_traps;
mod documented_bugs_of_the_original_do_not_occur;
mod failures_flow_as_recorded;
mod flows_of_the_graph_document_are_reproduced;
mod flows_run_on_the_graph_as_specified;
mod requests_flow_as_recorded;
mod simulations_are_reported_truthfully;
mod simulations_flow_as_recorded;
mod simulations_restore_the_status;
