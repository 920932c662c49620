//! By default no attribute has content, whatever the wire and whatever happens.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{ContentCapture, ToolSpec};
use serde_json::json;

use crate::spans::Spans;
use crate::wires::server::{Reply, Server};
use crate::wires::wire::{Failure, Settings, WIRES, Wire, quoted, text};

const SECRETS: [&str; 6] = ["swordfish", "mellon", "abracadabra", "xyzzy", "sesame", "hunter2"];

/// A call of a tool, a text, and a failure, with content in all places where there can be some.
async fn talk(wire: &dyn Wire) {
    let replies = [
        Reply::stream(wire.call(&quoted(["{\"for\":\"", "xyzzy\"}"])).concat()),
        Reply::stream(text(wire, "It is swordfish .").concat()),
        Reply::json(400, "", &wire.error_body(Failure::BadRequest, "sesame")),
    ];
    let server = Server::start(replies).await;
    let model = wire.model(&Settings::of(&server)).unwrap();
    let find = FnTool::new("find", "Finds it.", async |_: Anything| Ok::<_, ToolError>("mellon"));
    let tools = ToolLoop::new(&model).tool(find);
    let outcome = tools.run(ChatRequest::user("mellon").with_system("abracadabra")).await.unwrap();
    assert_eq!(outcome.response.message.text(), "It is swordfish .", "{}", wire.name());
    let tool = ToolSpec::new("find", "abracadabra", json!({"type": "object"}));
    model.chat(ChatRequest::user("xyzzy").with_tools([tool])).await.unwrap_err();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

#[tokio::test]
async fn no_span_has_content_by_default() {
    for wire in WIRES {
        let spans = Spans::listen(None).await;
        talk(*wire).await;
        let seen = spans.text();
        assert!(seen.contains("execute_tool find") && seen.contains("chat model-of-tests"), "{seen}");
        for secret in SECRETS {
            assert!(!seen.contains(secret), "{}: {secret} in {seen}", wire.name());
        }
        for attribute in ["messages", "instructions", "arguments", "call.result"] {
            assert!(!seen.contains(&format!("{attribute}\":")), "{}: {attribute} in {seen}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_capture_that_was_removed_captures_nothing() {
    for wire in WIRES {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        ContentCapture::remove();
        talk(*wire).await;
        let seen = spans.text();
        assert!(!SECRETS.iter().any(|secret| seen.contains(secret)), "{}: {seen}", wire.name());
    }
}

#[test]
fn a_capture_does_not_print_its_secrets() {
    let capture = ContentCapture::new().mask("hunter2");
    assert!(!format!("{capture:?}").contains("hunter2"));
}
