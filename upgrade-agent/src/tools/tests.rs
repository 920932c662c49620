//! Tests that the tools have the documented names.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentgraph_llm::{FnTool, Tool, ToolCall};

use super::*;
use crate::client::UpgradeClient;

fn desk() -> Arc<Desk> {
    // No server listens there; these tests call none.
    let client = UpgradeClient::builder("http://127.0.0.1:9/api").build().unwrap();
    Arc::new(Desk::new(client, Draft::default()))
}

fn names(tools: &[FnTool]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

const FETCH: &[&str] = &[
    "check_upgrade_health",
    "get_context_metadata",
    "get_experiment_names",
    "get_all_experiments",
    "get_experiment_details",
    "get_enrollment_details",
    "get_core_terms",
    "get_assignment_terms",
    "get_available_contexts",
    "get_conditions_for_context",
    "get_decision_points_for_context",
    "get_group_types_for_context",
];

const STATE: &[&str] =
    &["set_action_needed", "set_action_params", "set_missing_params", "update_action_params", "add_error"];

const RESPONSE: &[&str] = &[
    "get_stored_context_metadata",
    "get_stored_experiment_names",
    "get_stored_experiments",
    "get_all_gathered_info",
    "get_execution_log",
    "get_errors",
    "get_current_state",
    "get_user_request_summary",
    "get_action_status",
    "get_conversation_history",
];

#[test]
fn the_gatherer_has_the_documented_tools_and_a_schema_tool_for_each_action() {
    let schemas = crate::actions::ActionKind::ALL.iter().map(|kind| format!("get_{kind}_schema"));
    let expected: BTreeSet<String> = set(FETCH).into_iter().chain(set(STATE)).chain(schemas).collect();
    assert_eq!(names(&gathering(&desk())), expected);
}

#[test]
fn the_responder_has_the_documented_tools() {
    let stored = StoredData::new(Arc::new(crate::state::ConversationState::default()));
    assert_eq!(names(&stored.tools()), set(RESPONSE));
}

#[test]
fn gatherer_and_responder_have_no_tool_name_in_common() {
    let stored = StoredData::new(Arc::new(crate::state::ConversationState::default()));
    let both = names(&gathering(&desk())).intersection(&names(&stored.tools())).cloned().collect::<Vec<_>>();
    assert_eq!(both, Vec::<String>::new());
}

#[tokio::test]
async fn long_texts_in_tool_results_are_cut() {
    let said = agentgraph_llm::Message::user("x".repeat(1_000_000));
    let state = crate::state::ConversationState { history: vec![said], ..Default::default() };
    let tools = StoredData::new(Arc::new(state)).tools();
    let tool = tools.iter().find(|tool| tool.spec().name == "get_conversation_history").unwrap();
    let call = ToolCall::detached("call-1", "get_conversation_history");
    let answer = tool.call(call.input(), &call).await.unwrap();
    let answer = format!("{answer:?}");
    assert!(answer.contains("998000 more characters") && answer.len() < 5_000, "{} bytes", answer.len());
}
