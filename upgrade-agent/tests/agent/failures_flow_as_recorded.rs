//! A failing server or model ends a turn with a message, and never with half an action.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::transcript::check;

#[tokio::test]
async fn a_refused_token_is_reported_and_ends_the_action() {
    check("server_says_401").await;
}

#[tokio::test]
async fn unknown_names_are_reported() {
    check("server_says_404").await;
}

#[tokio::test]
async fn after_a_server_failure_the_effect_is_checked_before_the_reply() {
    check("server_says_500").await;
}

#[tokio::test]
async fn an_effect_whose_response_was_lost_is_detected() {
    check("lost_answers").await;
}

#[tokio::test]
async fn a_model_that_fails_changes_nothing() {
    check("model_fails").await;
}
