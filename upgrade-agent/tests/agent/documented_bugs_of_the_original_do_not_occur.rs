//! The bugs of the two documents that the agent follows, each with the test that would fail if the agent
//! had it. Bugs that other tests cover are only listed; the first test checks the names against the
//! files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::PathBuf;

use agentgraph_llm::Reply;
use common::World;
use common::script::{Script, acts, request, wants};
use serde_json::json;
use upgrade_agent::client::ExperimentState;
use upgrade_agent::state::{PendingSummary, ResponseKind};

/// The bug, the file of the test and the test. `G` numbers the bugs of the graph document, `S` those of the
/// streamlined one.
const SHOWN: &[(&str, &str, &str)] = &[
    ("G1 the executor is never reached", FLOWS, "a_status_changes_after_a_yes_and_once"),
    ("G2 an action is executed again and again", FLOWS, "a_status_changes_after_a_yes_and_once"),
    (
        "G3 a route to a node that does not exist",
        GRAPH,
        "the_graph_has_no_warnings_and_its_turns_can_be_spawned",
    ),
    ("G4 an edge waits for the person", GRAPH, "the_drawing_shows_five_nodes_and_the_routes_between_them"),
    ("G5 no node ends the turn", GRAPH, "the_drawing_shows_five_nodes_and_the_routes_between_them"),
    ("G6 no node reads the yes", REPLIES, "answers_are_judged_as_in_the_table_of_yes_and_no"),
    (
        "G7 fields of a turn are never reset",
        APART,
        "fields_of_a_turn_are_reset_and_fields_of_the_thread_stay",
    ),
    ("G8 no rule for a no", CONFIRMATIONS, "a_no_changes_nothing"),
    ("G8 no rule for another topic", CONFIRMATIONS, "another_topic_drops_the_question_and_says_so"),
    ("G8 no rule for a change", CONFIRMATIONS, "a_changed_parameter_is_asked_about_again"),
    (
        "G9 confidence is used nowhere",
        GRAPH,
        "only_a_clear_request_reaches_the_gatherer_and_the_limit_itself_is_clear",
    ),
    ("G9 no intent for an unclear message", REQUESTS, "unclear_messages_get_a_clarification"),
    ("G10 an error leaves the action armed", REQUESTS, "an_error_of_the_gatherer_abandons_the_action"),
    ("G11 parameters without an action are lost", REQUESTS, "parameters_wait_for_their_action"),
    (
        "G12 a missing name ends the program",
        THIS,
        "a_missing_parameter_is_requested_and_nothing_is_confirmed",
    ),
    ("G13 a read-only action needs a yes", THIS, "read_only_actions_run_without_a_confirmation"),
    (
        "G14 a node returns more than it changed",
        APART,
        "fields_of_a_turn_are_reset_and_fields_of_the_thread_stay",
    ),
    ("G14 an unknown action loops for ever", THIS, "an_action_that_does_not_exist_ends_the_turn"),
    ("G15 only one error of each kind", THIS, "all_errors_of_one_kind_are_reported"),
    (
        "G16 one name for two tools",
        "src/tools/tests.rs",
        "gatherer_and_responder_have_no_tool_name_in_common",
    ),
    ("G17 fetched data is never refreshed", OFFLINE, "changes_made_elsewhere_are_seen_at_once"),
    ("G18 conversations share one state", APART, "conversations_at_once_in_one_process_do_not_mix"),
    ("G19 parameters are never checked", REQUESTS, "invalid_parameters_are_reported"),
    ("G20 the question hides the present status", FLOWS, "a_status_changes_after_a_yes_and_once"),
    ("S1 a no executes", CONFIRMATIONS, "a_no_changes_nothing"),
    ("S1 a no to a plan executes", THIS, "a_no_to_a_plan_simulates_no_student"),
    ("S2 the answer is read as a request", FLOWS, "missing_parameters_are_asked_for_over_three_turns"),
    (
        "S3 question and answer are mixed up",
        CONFIRMATIONS,
        "two_conversations_do_not_see_each_others_questions",
    ),
    (
        "S4 yes and no are looked for inside words",
        REPLIES,
        "answers_are_judged_as_in_the_table_of_yes_and_no",
    ),
    ("S4 a delete cannot be cancelled", CONFIRMATIONS, "cancel_ends_a_delete"),
    (
        "S5 the reply of a turn is sent again",
        APART,
        "fields_of_a_turn_are_reset_and_fields_of_the_thread_stay",
    ),
    (
        "S6 an answer without confidence is sent",
        GRAPH,
        "only_a_clear_request_reaches_the_gatherer_and_the_limit_itself_is_clear",
    ),
    ("S7 the list of experiments is none", FLOWS, "a_simple_question_is_answered_without_the_server"),
    (
        "S8 a model's odd output ends the turn",
        THIS,
        "a_model_that_writes_instead_of_calling_gets_a_clarification",
    ),
    ("S9 a model plans for ever", THIS, "a_model_that_never_ends_is_stopped_and_nothing_runs"),
    (
        "S10 a model is asked for each student",
        SIMULATIONS,
        "a_live_balance_test_is_one_plan_and_restores_the_status",
    ),
    ("S11 a journey has no plan", SIMULATIONS, "a_journey_takes_its_steps_one_by_one"),
    ("S12 a list of experiments needs a yes", FLOWS, "information_is_fetched_and_reported"),
    (
        "S13 a step that failed counts as done",
        SIMULATIONS,
        "a_step_that_fails_ends_the_plan_and_the_status_is_restored",
    ),
    ("S14 nothing handles Modify", CONFIRMATIONS, "modify_asks_what_to_change_and_asks_again"),
    (
        "S14 suggestions of the turn before stay",
        APART,
        "fields_of_a_turn_are_reset_and_fields_of_the_thread_stay",
    ),
    ("S15 stop means two things", FLOWS, "stop_means_enrollment_complete"),
    ("S16 nodes change the state they were given", APART, "conversations_at_once_in_one_process_do_not_mix"),
];

const THIS: &str = "tests/agent/documented_bugs_of_the_original_do_not_occur.rs";
const APART: &str = "tests/agent/conversation_turns_do_not_mix.rs";
const CONFIRMATIONS: &str = "tests/agent/confirmations_flow_as_recorded.rs";
const FLOWS: &str = "tests/agent/flows_of_the_graph_document_are_reproduced.rs";
const GRAPH: &str = "tests/agent/flows_run_on_the_graph_as_specified.rs";
const OFFLINE: &str = "tests/offline_model/offline_model_completes_whole_flows.rs";
const REPLIES: &str = "tests/agent/conversation_answers_count_as_whole_messages.rs";
const REQUESTS: &str = "tests/agent/requests_flow_as_recorded.rs";
const SIMULATIONS: &str = "tests/agent/simulations_flow_as_recorded.rs";

#[test]
fn every_bug_has_a_test_that_exists() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for (bug, file, test) in SHOWN {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}()")), "{bug}: {file} has no {test}");
    }
    for (letter, count) in [("G", 20), ("S", 16)] {
        for number in 1..=count {
            let bug = format!("{letter}{number} ");
            assert!(SHOWN.iter().any(|(title, ..)| title.starts_with(&bug)), "{bug} has no test");
        }
    }
}

#[tokio::test]
async fn a_missing_parameter_is_requested_and_nothing_is_confirmed() {
    let world = World::new().await;
    let script = Script::new();
    world.experiment("Foo", ExperimentState::Inactive).await;
    let agent = world.agent(&script).await;
    for action in ["create_experiment", "update_experiment", "delete_experiment", "test_condition_balance"] {
        script.add([wants("needs_info", 0.95), acts(action, json!({})), Reply::text("ready")]);
        let turn = agent.turn(action, "do it somehow").await.unwrap();
        assert_eq!(turn.kind, ResponseKind::Question, "{action}: {}", turn.reply);
        assert!(matches!(turn.pending, Some(PendingSummary::Parameters { .. })), "{action}");
    }
}

#[tokio::test]
async fn read_only_actions_run_without_a_confirmation() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let lists =
        Reply::tool_call("get_all_experiments", json!({})).and_tool_call("check_upgrade_health", json!({}));
    script.add([wants("needs_info", 0.95), lists, Reply::text("done"), Reply::text("None, and it is up.")]);
    let turn = agent.turn("t", "is it up, and what is there?").await.unwrap();
    assert_eq!((turn.reply.as_str(), turn.pending), ("None, and it is up.", None));
}

#[tokio::test]
async fn an_action_that_does_not_exist_ends_the_turn() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let refused = || Reply::text("That is no action.");
    script.add([wants("needs_info", 0.95), acts("drop_database", json!({})), refused(), refused()]);
    let turn = agent.turn("t", "drop the database").await.unwrap();
    assert_eq!(turn.path.last().map(String::as_str), Some("response_generator"));
    assert!(world.proxy.heard().iter().all(|call| call.starts_with("GET ")));
    assert!(!matches!(turn.pending, Some(PendingSummary::Confirmation { .. })), "{}", turn.reply);
}

#[tokio::test]
async fn all_errors_of_one_kind_are_reported() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let error = |message| json!({ "error_type": "not_found", "message": message });
    let errors = Reply::tool_call("add_error", error("no Foo")).and_tool_call("add_error", error("no Bar"));
    script.add([wants("needs_info", 0.95), errors, Reply::text("done")]);
    let turn = agent.turn("t", "compare Foo and Bar").await.unwrap();
    assert_eq!(turn.errors.len(), 2);
    assert!(turn.reply.contains("no Foo") && turn.reply.contains("no Bar"), "{}", turn.reply);
}

#[tokio::test]
async fn a_no_to_a_plan_simulates_no_student() {
    let world = World::new().await;
    let script = Script::new();
    let id = world.experiment("Foo", ExperimentState::Inactive).await;
    let agent = world.agent(&script).await;
    script.add(request("test_condition_balance", json!({ "experiment_id": id, "num_users": 5 })));
    let asked = agent.turn("t", "test the balance of Foo").await.unwrap();
    assert_eq!(asked.kind, ResponseKind::Confirmation);
    world.proxy.heard();
    let refused = agent.turn("t", "no").await.unwrap();
    assert!(refused.pending.is_none() && refused.reply.contains("Nothing was changed"), "{}", refused.reply);
    assert!(world.proxy.heard().is_empty());
    assert_eq!(world.experiments().await, ["Foo: inactive"]);
}

#[tokio::test]
async fn a_model_that_writes_instead_of_calling_gets_a_clarification() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let fenced = "```json\n{\"intent\": \"needs_info\", \"confidence\": 1, \"approved\": true}\n```";
    script.add([Reply::text(fenced), Reply::text("What do you mean?")]);
    let turn = agent.turn("t", "hm").await.unwrap();
    assert_eq!((turn.kind, turn.reply.as_str()), (ResponseKind::Clarification, "What do you mean?"));
}

#[tokio::test]
async fn a_model_that_never_ends_is_stopped_and_nothing_runs() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let again = || Reply::tool_call("get_all_experiments", json!({}));
    script.add(std::iter::once(wants("needs_info", 0.95)).chain((0..60).map(|_| again())));
    let turn = agent.turn("t", "go on for ever").await.unwrap();
    assert!(script.left() > 30, "{} replies are left", script.left());
    assert_eq!(turn.path.last().map(String::as_str), Some("response_generator"));
    assert!(turn.pending.is_none() && !turn.reply.is_empty());
}
