//! Replies to requests that are incomplete, unclear or wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::transcript::check;

#[tokio::test]
async fn a_question_in_between_keeps_the_missing_parameters_open() {
    check("create_question_in_between").await;
}

#[tokio::test]
async fn another_action_replaces_an_incomplete_one() {
    check("create_left_for_another_action").await;
}

#[tokio::test]
async fn parameters_wait_for_their_action() {
    check("create_parameters_before_the_action").await;
}

#[tokio::test]
async fn an_error_of_the_gatherer_abandons_the_action() {
    check("invalid_request").await;
}

#[tokio::test]
async fn impossible_and_unusual_moves_are_refused() {
    check("stop_twice").await;
}

#[tokio::test]
async fn unclear_messages_get_a_clarification() {
    check("ambiguous_status").await;
}

#[tokio::test]
async fn students_are_initialized_queried_and_marked() {
    check("students").await;
}

#[tokio::test]
async fn invalid_parameters_are_reported() {
    check("wrong_parameters").await;
}

#[tokio::test]
async fn a_warning_reports_an_experiment_without_participants() {
    check("warned").await;
}

#[tokio::test]
async fn an_error_ends_a_pending_action() {
    check("create_goes_wrong").await;
}
