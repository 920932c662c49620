//! A streamed turn equals the awaited turn: its nodes in order, its reply in pieces, its end last.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use agentgraph_llm::{Code, Error, Reply};
use common::World;
use common::proxy::Fault;
use common::script::{Script, request, wants};
use futures_util::StreamExt;
use serde_json::json;
use upgrade_agent::agent::{Turn, TurnEvent, UpgradeAgent};
use upgrade_agent::client::ExperimentState;

/// Streams a turn to its end, and asserts that its nodes and pieces are its path and its reply.
async fn streamed(agent: &UpgradeAgent, text: &str) -> (Turn, Vec<String>) {
    let mut events = agent.turn_stream("t", text);
    let mut nodes = Vec::new();
    let mut pieces = Vec::new();
    let mut done = None;
    while let Some(event) = events.next().await {
        assert!(done.is_none(), "{event:?} after the end");
        match event {
            TurnEvent::Node(node) => nodes.push(node),
            TurnEvent::Text(piece) => pieces.push(piece),
            TurnEvent::Done(turn) => done = Some(turn.unwrap()),
            other => panic!("{other:?}"),
        }
    }
    let turn = done.unwrap();
    assert_eq!(nodes, turn.path);
    assert_eq!(pieces.concat(), turn.reply);
    (turn, pieces)
}

#[tokio::test]
async fn a_models_reply_is_streamed_in_pieces_with_its_rounds_separated() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let looks = Reply::text("Let me look.").and_tool_call("get_errors", json!({}));
    script.add([wants("greeting", 1.0), looks, Reply::text("All is well here.")]);
    let (turn, pieces) = streamed(&agent, "hi").await;
    assert_eq!(turn.reply, "Let me look.\n\nAll is well here.");
    assert!(pieces.len() >= 5, "{pieces:?}");
}

#[tokio::test]
async fn awaited_and_streamed_turns_are_equal() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let replies = || {
        let looks = Reply::text("Let me look.").and_tool_call("get_errors", json!({}));
        [wants("greeting", 1.0), looks, Reply::text("All is well here.")]
    };
    script.add(replies());
    let awaited = agent.turn("other", "hi").await.unwrap();
    script.add(replies());
    assert_eq!(streamed(&agent, "hi").await.0, awaited);
}

#[tokio::test]
async fn notes_and_preset_texts_are_streamed_too() {
    let world = World::new().await;
    let script = Script::new();
    let id = world.experiment("Foo", ExperimentState::Inactive).await;
    let agent = world.agent(&script).await;
    script.add(request("update_experiment_status", json!({ "experiment_id": id, "status": "enrolling" })));
    streamed(&agent, "start Foo").await;
    script.add([wants("greeting", 0.9), Reply::text("It is a test.")]);
    let (turn, pieces) = streamed(&agent, "what is an experiment?").await;
    assert!(turn.reply.starts_with("I have set aside") && turn.reply.ends_with("\n\nIt is a test."));
    assert!(pieces.len() > 2);
}

#[tokio::test]
async fn a_model_that_fails_while_it_writes_leaves_a_complete_reply() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let looks = Reply::text("Let me look.").and_tool_call("get_errors", json!({}));
    script.add([wants("greeting", 1.0), looks, Reply::error(Error::new(Code::Overloaded, "too much to do"))]);
    let (turn, _) = streamed(&agent, "hi").await;
    let expected = "Let me look.\n\nThe language model did not answer. E_LLM_OVERLOADED: too much to do";
    assert_eq!(turn.reply, expected);
    assert_eq!(turn.errors.len(), 1);
}

#[tokio::test]
async fn a_stream_that_is_dropped_stops_the_turn_and_the_next_one_ends_it() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    script.add(request("init_experiment_user", json!({ "user_id": "ada" })));
    agent.turn("t", "initialize ada").await.unwrap();
    world.proxy.fail("POST /v6/init", Fault::Hang, 1);
    let mut events = agent.turn_stream("t", "yes");
    loop {
        tokio::select! {
            biased;
            event = events.next() => assert!(matches!(event, Some(TurnEvent::Node(_))), "{event:?}"),
            () = world.proxy.hangs() => break,
        }
    }
    drop(events);
    let ended = agent.recover("t").await.unwrap().unwrap();
    assert_eq!(ended.reply, "User 'ada' is initialized.");
    assert!(agent.recover("t").await.unwrap().is_none());
}

#[tokio::test]
async fn a_turn_that_cannot_begin_is_one_event() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    let events: Vec<_> = agent.turn_stream("t", " ").collect().await;
    assert!(matches!(events.as_slice(), [TurnEvent::Done(Err(error))] if error.code() == "E_AGENT_EMPTY"));
}
