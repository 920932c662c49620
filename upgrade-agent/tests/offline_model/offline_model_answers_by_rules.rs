//! The offline model alone: it answers every request, always in the same way, and calls only tools of the
//! request.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentgraph_llm::{
    AskExt, ChatEvent, ChatModel, ChatRequest, ChatResponse, Message, MessageIds, Role, ToolResult, ToolSpec,
    ToolUse,
};
use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use upgrade_agent::offline::OfflineModel;

const NODES: [&str; 4] =
    ["conversation_analyzer", "information_gatherer", "response_generator", "somebody_else"];
const TOOLS: &[&str] = &[
    "analyze_user_request",
    "check_upgrade_health",
    "get_context_metadata",
    "get_experiment_names",
    "get_all_experiments",
    "get_experiment_details",
    "get_enrollment_details",
    "get_core_terms",
    "get_create_experiment_schema",
    "get_available_contexts",
    "get_conditions_for_context",
    "set_action_needed",
    "set_action_params",
    "set_missing_params",
    "update_action_params",
    "add_error",
    "get_all_gathered_info",
    "get_execution_log",
    "get_errors",
];

fn model() -> OfflineModel {
    OfflineModel::new().message_ids(MessageIds::sequence("m"))
}

fn request(node: &str, text: &str, situation: &str) -> ChatRequest {
    let tools = TOOLS.iter().map(|name| ToolSpec::new(*name, "", json!({ "type": "object" })));
    ChatRequest::user(text)
        .with_system(format!("Node: {node}\n\nSituation\n```json\n{situation}\n```"))
        .with_tools(tools)
}

fn answer(request: ChatRequest) -> ChatResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(model().chat(request)).unwrap()
}

/// Answers the calls of a response with this text, like a tool loop.
fn with_answers(mut request: ChatRequest, response: &ChatResponse, text: &str) -> ChatRequest {
    let results: Vec<ToolResult> =
        response.message.tool_uses().map(|call| ToolResult::text(&call.id, text)).collect();
    request.messages.push(response.message.clone());
    request.messages.push(Message::tool_results(results));
    request
}

#[test]
fn the_analyzer_makes_one_valid_call() {
    for (text, intent) in [
        ("hello", "greeting"),
        ("What is A/B testing?", "direct_answer"),
        ("start Foo", "needs_info"),
        ("list experiments", "needs_info"),
        ("yes", "confirm_reply"),
        ("never mind", "cancel"),
        ("gibberish blorp", "unclear"),
    ] {
        let response = answer(request("conversation_analyzer", text, "{}"));
        let calls: Vec<&ToolUse> = response.message.tool_uses().collect();
        assert_eq!((calls.len(), calls[0].name.as_str()), (1, "analyze_user_request"), "{text}");
        let input: Value = calls[0].input.json().unwrap().parse().unwrap();
        assert_eq!(input["intent"], intent, "{text}");
        let confidence = input["confidence"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&confidence), "{text}");
    }
}

#[test]
fn a_question_about_the_status_is_unclear_until_an_experiment_was_mentioned() {
    let confidence = |situation| {
        let response = answer(request("conversation_analyzer", "what's the status?", situation));
        let input: Value =
            response.message.tool_uses().next().unwrap().input.json().unwrap().parse().unwrap();
        input["confidence"].as_f64().unwrap()
    };
    assert!(confidence("{}") < 0.7);
    assert!(confidence(r#"{"that_experiment": {"id": "1", "name": "Foo"}}"#) >= 0.7);
}

/// The model knows the agent only from its requests, so its names of actions are constants of its own.
#[test]
fn its_actions_are_those_of_the_agent() {
    let own: std::collections::BTreeSet<&str> = upgrade_agent::offline::actions().collect();
    let known = upgrade_agent::actions::ActionKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(own, known);
}

#[tokio::test]
async fn it_streams_the_text_in_pieces() {
    let mut stream = model().stream(ChatRequest::user("What is a condition?")).await.unwrap();
    let mut pieces = Vec::new();
    let mut whole = None;
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ChatEvent::TextDelta { text, .. } => pieces.push(text),
            ChatEvent::Finished(response) => whole = Some(response.message.text()),
            other => panic!("{other:?}"),
        }
    }
    assert!(pieces.len() > 10);
    assert_eq!(Some(pieces.concat()), whole);
}

#[test]
fn the_model_names_itself_offline() {
    assert_eq!(model().info().model, "offline");
    assert!(answer(ChatRequest::user("help")).message.text().contains("offline model"));
}

/// Generates texts that resemble messages of people, and texts that do not.
fn texts() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "start",
        "don't",
        "delete",
        "Foo",
        "\"",
        "'",
        "70/30",
        "%",
        "experiment",
        "that",
        "?",
        "what",
        "is",
        "the",
        "of",
        "weights",
        "50",
        "called",
        "in",
        "assign-prog",
        "not",
        "how",
        "do",
        "I",
        "yes",
        "DELETE",
        "…",
        "ß",
        "İ",
        "👩‍🔬",
        "create",
        "status",
        "to",
        "control",
        "=",
        ":",
        "condition",
        "force",
        "it",
    ]);
    prop_oneof![
        ".{0,60}",
        "\\PC{0,200}",
        prop::collection::vec(words, 0..14).prop_map(|words| words.join(" "))
    ]
}

fn jsons() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "{}",
        "[]",
        "null",
        "7",
        "\"x\"",
        "{",
        r#"[{"id":"1","name":"Foo"},{"id":2},{"name":""}]"#,
        r#"{"assign-prog":{"conditions":["control","variant"],"group_types":[],"sites":["a"],"targets":["b"]}}"#,
        r#"{"pending":{"action":"create_experiment","params":{"name":"x"},"missing":["context"]}}"#,
        r#"{"pending":{"action":"nonsense","params":7,"missing":{}}}"#,
        r#"{"dropped":{"action":"update_experiment","params":{"experiment_id":"1"}}}"#,
        r#"{"that_experiment":{"id":"1","name":"Foo"},"gathered":["x"],"errors":[{"message":"no"}]}"#,
        r#"{"reply_kind":"clarification"}"#,
        r#"{"experiment_details":{"1":{"id":"1","name":"Foo","conditions":[{"code":"control"}],"context":7}}}"#,
    ]);
    prop_oneof![known.prop_map(str::to_owned), "\\PC{0,40}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_makes_it_panic_or_change_its_mind(
        text in texts(), node in prop::sample::select(&NODES[..]), situation in jsons(), told in jsons(),
    ) {
        let mut asked = request(node, &text, &situation);
        for _ in 0..12 {
            let one = answer(asked.clone());
            let two = answer(asked.clone());
            prop_assert_eq!(&one.message, &two.message);
            prop_assert_eq!(one.message.role, Role::Assistant);
            prop_assert!(one.message.tool_uses().all(|call| TOOLS.contains(&call.name.as_str())));
            if one.message.tool_uses().next().is_none() {
                prop_assert!(!one.message.text().is_empty());
                return Ok(());
            }
            if node == "conversation_analyzer" {
                return Ok(());
            }
            asked = with_answers(asked, &one, &told);
        }
        prop_assert!(false, "it went on for ever");
    }

    #[test]
    fn a_negated_order_is_never_prepared(
        negation in prop::sample::select(vec!["don't", "do not", "please don't", "never", "I don't want to", "you should not"]),
        verb in prop::sample::select(vec!["start", "stop", "delete", "pause", "cancel", "archive", "remove", "launch", "erase"]),
        object in prop::sample::select(vec!["it", "Foo", "that experiment", "the Foo experiment", "\"Foo\""]),
    ) {
        let text = format!("{negation} {verb} {object}");
        let response = answer(request("conversation_analyzer", &text, "{}"));
        let input: Value = response.message.tool_uses().next().unwrap().input.json().unwrap().parse().unwrap();
        prop_assert_ne!(&input["intent"], "needs_info", "{}", text);
    }
}
