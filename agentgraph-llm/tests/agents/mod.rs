//! Agents and tool nodes.

mod a_finished_call_never_runs_again;
mod a_request_holds_a_complete_conversation;
mod agents_are_nodes_and_are_heard;
mod answers_have_the_form_of_their_type;
mod calls_have_ids_of_their_own;
mod calls_of_one_answer_run_together;
mod hooks_run_in_order_ask_and_jump;
mod ids_of_calls_name_one_call;
mod killed_processes_go_on;
mod loops_keep_what_happened;
mod only_an_assistant_answers;
mod people_answer_across_killed_processes;
mod requests_follow_every_change_of_the_conversation;
mod runs_end_at_their_limits;
pub(crate) mod support;
mod tools_read_and_change_the_state;
mod wraps_are_nested;
