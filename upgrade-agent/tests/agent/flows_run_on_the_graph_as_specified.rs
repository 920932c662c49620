//! The graph is the specified one: five nodes, every turn from START to END, and no other routes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::World;
use common::script::{Script, wants};
use upgrade_agent::agent::mermaid;
use upgrade_agent::graph::{AfterAnalysis, after_analysis};
use upgrade_agent::state::{Analysis, ConversationState, Intent};

#[test]
fn the_drawing_shows_five_nodes_and_the_routes_between_them() {
    let expected = r#"flowchart TD
    start([START])
    n0["conversation_analyzer"]
    n1["information_gatherer"]
    n2["confirmation_handler"]
    n3["tool_executor"]
    n4["response_generator"]
    finish([END])
    n4 --> finish
    start -.-> n3
    start -.-> n2
    start -.-> n1
    start -.-> n0
    n0 -.-> n1
    n0 -.-> n4
    n0 -.-> n3
    n1 -.-> n2
    n1 -.-> n4
    n2 -.-> n3
    n2 -.-> n0
    n2 -.-> n4
    n3 -.-> n0
    n3 -.-> n2
    n3 -.-> n1
    n3 -.-> n4
"#;
    assert_eq!(mermaid(), expected);
}

#[tokio::test]
async fn the_graph_has_no_warnings_and_its_turns_can_be_spawned() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    assert!(agent.graph().warnings().is_empty(), "{:?}", agent.graph().warnings());
    script.add([wants("greeting", 1.0), agentgraph_llm::Reply::text("Hello!")]);
    let turn = tokio::spawn(async move { agent.turn("t", "hi").await }).await.unwrap();
    assert_eq!(turn.unwrap().reply, "Hello!");
}

#[test]
fn only_a_clear_request_reaches_the_gatherer_and_the_limit_itself_is_clear() {
    use Intent::*;
    for intent in [Greeting, DirectAnswer, NeedsInfo, Unclear, ConfirmReply, Cancel] {
        for (confidence, clear) in [(0.0, false), (0.69, false), (0.7, true), (1.0, true)] {
            let analysis = Some(Analysis { intent, confidence, summary: String::new() });
            let state = ConversationState { analysis, ..ConversationState::default() };
            let expected = if intent == NeedsInfo && clear {
                AfterAnalysis::InformationGatherer
            } else {
                AfterAnalysis::ResponseGenerator
            };
            assert_eq!(after_analysis(&state, 0.7), expected, "{intent:?} {confidence}");
        }
    }
}
