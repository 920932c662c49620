//! Nodes that ask and run again: questions, answers, durable steps.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod a_refused_answer_is_asked_for_again;
mod an_answer_belongs_to_its_question;
mod answers_fit_their_schemas;
mod answers_match_a_model;
mod durable_steps_are_done_once;
mod durable_steps_cost_the_same_however_many;
mod interrupts_wait_for_their_own_answers;
mod static_interrupts_are_reported_before_they_are_passed;
