//! Only the next message can answer an open question.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::transcript::check;

#[tokio::test]
async fn a_no_changes_nothing() {
    check("status_change_refused").await;
}

#[tokio::test]
async fn cancel_is_a_no() {
    check("status_change_cancelled").await;
}

#[tokio::test]
async fn another_topic_drops_the_question_and_says_so() {
    check("status_change_other_topic").await;
}

#[tokio::test]
async fn modify_asks_what_to_change_and_asks_again() {
    check("status_change_modified").await;
}

#[tokio::test]
async fn a_changed_parameter_is_asked_about_again() {
    check("status_change_changed_in_passing").await;
}

#[tokio::test]
async fn cancel_ends_a_delete() {
    check("delete_cancelled").await;
}

#[tokio::test]
async fn do_not_delete_it_deletes_nothing() {
    check("delete_negated").await;
}

#[tokio::test]
async fn two_conversations_do_not_see_each_others_questions() {
    check("two_conversations").await;
}

#[tokio::test]
async fn changes_by_others_since_the_question_are_kept() {
    check("changed_meanwhile").await;
}

#[tokio::test]
async fn a_model_cannot_confirm_for_the_person() {
    check("model_claims_approval").await;
}

#[tokio::test]
async fn a_model_cannot_claim_an_action_that_did_not_run() {
    check("model_claims_a_deed").await;
}
