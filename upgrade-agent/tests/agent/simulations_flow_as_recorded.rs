//! Simulated students: one visit, a balance test, a journey.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::transcript::check;

#[tokio::test]
async fn a_visit_reports_the_condition_or_why_there_is_none() {
    check("visit").await;
}

#[tokio::test]
async fn a_live_balance_test_is_one_plan_and_restores_the_status() {
    check("balance_live").await;
}

#[tokio::test]
async fn an_experiment_with_real_students_is_tested_offline_first() {
    check("balance_offline").await;
}

#[tokio::test]
async fn a_step_that_fails_ends_the_plan_and_the_status_is_restored() {
    check("balance_fails").await;
}

#[tokio::test]
async fn an_impossible_simulation_is_refused_and_changed_experiments_are_left_alone() {
    check("balance_refused").await;
}

#[tokio::test]
async fn a_journey_takes_its_steps_one_by_one() {
    check("journey").await;
}

#[tokio::test]
async fn a_journey_without_steps_visits_the_existing_points() {
    check("journey_by_itself").await;
}

#[tokio::test]
async fn a_step_that_affects_real_students_needs_its_own_yes() {
    check("journey_asks_again").await;
}
