//! Kills at every write and wherever a node waits, and every order of tasks.

use agentgraph::testing::{Probe, TestGraph};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, StopReason, ToolUse};
use serde_json::json;

use crate::teams::support::{Nothing, agent};

/// An answer whose ids follow from the conversation, so that asking again gives the same.
fn answer(of: &str, request: &ChatRequest, calls: &[(&str, serde_json::Value)], text: &str) -> Reply {
    let at = request.messages.len();
    let call = |(nth, (name, input)): (usize, &(&str, serde_json::Value))| -> Block {
        ToolUse::new(format!("{of}-{at}-{nth}"), *name, input.clone()).into()
    };
    let mut blocks: Vec<Block> = calls.iter().enumerate().map(call).collect();
    if !text.is_empty() {
        blocks.push(Block::text(text));
    }
    let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    ChatResponse::new(Message::new(Role::Assistant, blocks).with_id(format!("{of}-{at}")), stop).into()
}

fn rounds(request: &ChatRequest) -> usize {
    request.messages.iter().filter(|message| message.role == Role::Assistant).count()
}

/// A bank that ignores a second call with the same key.
fn pay() -> FnTool {
    FnTool::with_call("pay", "Pays.", async |_: Nothing, call: ToolCall| {
        tokio::task::yield_now().await;
        Probe::new().idempotent("pay", call.id());
        Ok::<_, ToolError>("paid")
    })
}

fn input() -> Message {
    Message::user("pay").with_id("input")
}

#[tokio::test]
async fn of_a_supervisor_and_two_workers() {
    let payer = |of: &'static str| {
        let model = ScriptedModel::from_fn(move |request| match rounds(request) {
            0 => answer(of, request, &[("pay", json!({}))], ""),
            _ => answer(of, request, &[], "done"),
        });
        agent(of, &model).tool(pay()).compile().unwrap()
    };
    let model = ScriptedModel::from_fn(|request| match rounds(request) {
        0 => {
            let calls =
                [("left", json!({ "task": "pay" })), ("right", json!({ "task": "pay" })), ("pay", json!({}))];
            answer("lead", request, &calls, "")
        }
        _ => answer("lead", request, &[], "all paid"),
    });
    let lead = supervisor(agent("lead", &model).tool(pay()), [payer("left"), payer("right")]).unwrap();
    let test = TestGraph::of(lead.into_graph());
    test.every_kill(input()).await.assert_none();
    test.every_order(input()).await.assert_none();
}

#[tokio::test]
async fn of_agents_that_hand_over() {
    let alice = ScriptedModel::from_fn(|request| match rounds(request) {
        0 => answer("alice", request, &[("pay", json!({})), ("transfer_to_bob", json!({}))], ""),
        _ => answer("alice", request, &[], "thank you"),
    });
    let bob = ScriptedModel::from_fn(|request| match rounds(request) {
        1 => answer("bob", request, &[("pay", json!({}))], ""),
        _ => answer("bob", request, &[("transfer_to_alice", json!({}))], "paid"),
    });
    let both = hand_off([agent("alice", &alice).tool(pay()), agent("bob", &bob).tool(pay())]).unwrap();
    let test = TestGraph::of(both.into_graph());
    test.every_kill(input()).await.assert_none();
    test.every_order(input()).await.assert_none();
}
