//! What the offline model understands, and how splits are judged.

#[path = "../common/mod.rs"]
mod common;

mod offline_model_answers_by_rules;
mod offline_model_completes_whole_flows;
mod offline_model_ignores_no_part_of_a_message;
mod offline_model_understands_paraphrases;
mod offline_model_understands_whole_conversations;
mod splits_are_judged_by_a_chi_square_test;
