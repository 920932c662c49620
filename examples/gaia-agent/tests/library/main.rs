//! The agent as a library, over the embedded world and over scripted models.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod support;

mod answers_are_found_in_what_models_write;
mod answers_are_kept_for_the_same_question_alone;
mod answers_follow_from_the_world;
mod downloads_reach_public_addresses_alone;
mod each_kind_of_file_is_read;
mod evaluation_servers_are_read_with_care;
mod files_are_confined_to_two_folders;
mod hostile_files_cost_little;
mod keys_are_in_no_file;
mod models_that_fail_are_retried_and_replaced;
mod pages_are_visited_with_care;
mod python_is_kept_apart;
mod python_stays_inside;
mod questions_are_read_in_all_their_forms;
mod questions_end_in_the_best_answer;
mod runs_killed_at_every_commit_lose_and_repeat_nothing;
mod searches_speak_the_forms_of_their_services;
mod several_runs_vote_on_an_answer;
mod sheets_and_documents_are_read_or_refused;
mod submissions_are_made_once;
mod tools_are_offered_as_the_settings_say;
mod twenty_questions_are_answered_over_http;
mod verdicts_are_those_of_the_rule_in_python;
