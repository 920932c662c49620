//! The flows of the graph document as transcripts: the messages, the nodes, the calls to the server and the
//! replies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::transcript::check;

#[tokio::test]
async fn a_simple_question_is_answered_without_the_server() {
    check("simple_question").await;
}

#[tokio::test]
async fn information_is_fetched_and_reported() {
    check("information").await;
}

#[tokio::test]
async fn the_parameters_of_an_action_are_explained() {
    check("schema").await;
}

#[tokio::test]
async fn a_status_changes_after_a_yes_and_once() {
    check("status_change").await;
}

#[tokio::test]
async fn missing_parameters_are_asked_for_over_three_turns() {
    check("create_over_three_turns").await;
}

#[tokio::test]
async fn a_delete_takes_the_word_delete() {
    check("delete").await;
}

#[tokio::test]
async fn an_unknown_context_is_refused_with_a_hint() {
    check("unknown_context").await;
}

#[tokio::test]
async fn a_session_of_several_actions_ends_with_a_report_from_the_log() {
    check("multi_action_session").await;
}

#[tokio::test]
async fn stop_means_enrollment_complete() {
    check("stop").await;
}
