//! A model that chooses tools can leave tools out, and nothing else: what it invents, repeats or adds beyond
//! the limit does not reach the other model.

use std::sync::Arc;

use agentgraph_llm::middleware::{OnFailure, ToolSelector};
use agentgraph_llm::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{block_on, events, stored};

fn tools(count: usize) -> Vec<ToolSpec> {
    (0..count).map(|n| ToolSpec::new(format!("t{n}"), "", json!({"type": "object"}))).collect()
}

fn choosing(names: impl IntoIterator<Item = impl Into<String>>) -> ScriptedModel {
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    ScriptedModel::from_fn(move |_| Reply::tool_call("Selection", json!({ "tools": names })))
}

/// The names of the tools that the other model sees.
async fn seen(selector: &ToolSelector, request: ChatRequest) -> Vec<String> {
    let large = ScriptedModel::new(["ok"]);
    let events = events(selector, Arc::new(large.clone()), request).await;
    assert_eq!(stored(&events).as_deref(), Some("ok"), "{events:?}");
    large.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect()
}

fn asking(tools: impl IntoIterator<Item = ToolSpec>) -> ChatRequest {
    ChatRequest::user("go").with_tools(tools)
}

proptest! {
    #[test]
    fn the_first_different_ones_that_exist_in_their_old_order(
        count in 0_usize..8,
        max in 0_usize..5,
        chosen in prop::collection::vec(0_usize..10, 0..8),
    ) {
        let small = choosing(chosen.iter().map(|n| format!("t{n}")));
        let seen = block_on(seen(&ToolSelector::new(Arc::new(small.clone()), max), asking(tools(count))));
        let mut expected: Vec<usize> = Vec::new();
        for n in chosen {
            if n < count && !expected.contains(&n) && expected.len() < max {
                expected.push(n);
            }
        }
        if count <= max {
            expected = (0..count).collect();
        }
        expected.sort_unstable();
        prop_assert_eq!(seen, expected.iter().map(|n| format!("t{n}")).collect::<Vec<_>>());
        prop_assert_eq!(small.requests().len(), usize::from(count > max), "no choice, no request");
    }
}

#[tokio::test]
async fn tools_that_are_always_shown_are_beside_the_limit_and_not_offered() {
    let small = choosing(["t0", "t3", "t1"]);
    let selector = ToolSelector::new(Arc::new(small.clone()), 1).always_include(["t3", "absent"]);
    assert_eq!(seen(&selector, asking(tools(4))).await, ["t0", "t3"]);
    let offered = small.requests()[0].system.clone().unwrap();
    assert!(offered.contains("- t0: ") && !offered.contains("- t3: "), "{offered}");
    assert!(offered.contains("at most 1"), "{offered}");
}

#[tokio::test]
async fn server_tools_and_a_demanded_tool_stay() {
    let mut server = ToolSpec::new("web_search", "", json!({}));
    server.raw = Some(json!({"type": "web_search"}).into());
    let request = asking(tools(3).into_iter().chain([server])).with_tool_choice(ToolChoice::tool("t2"));
    let selector = ToolSelector::new(Arc::new(choosing(["t1"])), 1);
    assert_eq!(seen(&selector, request).await, ["t1", "t2", "web_search"]);
}

#[tokio::test]
async fn a_choice_of_nothing_shows_nothing() {
    let selector = ToolSelector::new(Arc::new(choosing(["invented"])), 1);
    assert!(seen(&selector, asking(tools(3))).await.is_empty());
}

#[tokio::test]
async fn the_last_text_of_the_user_is_what_is_chosen_for() {
    let small = choosing(["t0"]);
    let messages = [
        Message::user("first"),
        Message::user("second"),
        Message::new(Role::Assistant, [ToolUse::new("c", "t0", json!({}))]),
        Message::tool_results([ToolResult::text("c", "found")]),
    ];
    seen(&ToolSelector::new(Arc::new(small.clone()), 1), ChatRequest::new(messages).with_tools(tools(2)))
        .await;
    assert_eq!(small.requests()[0].messages[0].text(), "second");
}

/// Two ways to fail: the model cannot be asked, or it never chooses.
fn failing() -> [(Code, ScriptedModel); 2] {
    let busy = ScriptedModel::from_fn(|_| Reply::error(Error::new(Code::Overloaded, "busy")));
    [(Code::Overloaded, busy), (Code::AnswerRejected, ScriptedModel::from_fn(|_| Reply::text("no idea")))]
}

#[tokio::test]
async fn a_choice_that_fails_is_its_own_error() {
    for (code, small) in failing() {
        let large = ScriptedModel::new(["ok"]);
        let selector = ToolSelector::new(Arc::new(small), 1);
        let events = events(&selector, Arc::new(large.clone()), asking(tools(3))).await;
        assert_eq!(events[0].as_ref().unwrap_err().code(), code);
        assert!(large.requests().is_empty());
    }
}

#[tokio::test]
async fn or_shows_all_tools() {
    for (_, small) in failing() {
        let selector = ToolSelector::new(Arc::new(small), 1).on_failure(OnFailure::Continue);
        assert_eq!(seen(&selector, asking(tools(3))).await, ["t0", "t1", "t2"]);
    }
}
