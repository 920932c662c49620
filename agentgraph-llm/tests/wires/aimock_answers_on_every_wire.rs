//! The client and a mock that others wrote understand each other.

use agentgraph::store::Embedder as _;
use agentgraph_llm::openai::OpenAiEmbedder;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, OutputSpec, StopReason};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::wires::aimock::{Aimock, find, fixture, in_pieces};
use crate::wires::wire::{Failure, KEY, WIRES, Wire};

const TEXT: &str = "a🦀b 👩‍👩‍👧 Grüße";

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn text_comes_in_deltas_with_its_usage() {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "input_tokens": 3, "output_tokens": 2,
        "promptTokenCount": 3, "candidatesTokenCount": 2});
    let aimock = Aimock::start("text", &[in_pieces("Greet me", json!({"content": TEXT, "usage": usage}))]);
    for wire in WIRES {
        let mut stream = aimock.model(*wire).stream(ChatRequest::user("Greet me")).await.unwrap();
        let (mut deltas, mut response) = (Vec::new(), None);
        while let Some(event) = stream.next().await {
            match event.unwrap() {
                ChatEvent::TextDelta { text, .. } => deltas.push(text),
                ChatEvent::Finished(finished) => response = Some(finished),
                other => panic!("{}: {other:?}", wire.name()),
            }
        }
        assert_eq!(deltas.concat(), TEXT, "{}", wire.name());
        assert!(deltas.len() > 9, "{}: {deltas:?}", wire.name());
        let response = response.unwrap();
        assert_eq!(response.message.text(), TEXT, "{}", wire.name());
        assert_eq!(response.stop, StopReason::EndTurn, "{}", wire.name());
        assert_eq!(response.usage, Usage::new(3, 2), "{}", wire.name());
    }
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn parallel_calls_are_answered() {
    let calls = json!([{"id": "call_1", "name": "find", "arguments": "{\"path\":\"/tmp/🦀\"}"},
        {"id": "call_2", "name": "find", "arguments": "{}"}]);
    let mut ask = in_pieces("Look", json!({"content": "I look", "toolCalls": calls}));
    ask["match"]["hasToolResult"] = json!(false);
    let mut end = fixture("Look", json!({"content": "Sorry"}));
    end["match"]["toolResultContains"] = json!("out of paper");
    let aimock = Aimock::start("calls", &[ask, end]);
    for wire in WIRES {
        let model = aimock.model(*wire);
        let request = ChatRequest::user("Look").with_tools([find()]);
        let response = model.chat(request.clone()).await.unwrap();
        let calls: Vec<_> = response.message.tool_uses().collect();
        let seen: Vec<_> = calls.iter().map(|call| (call.id.as_str(), call.input.text())).collect();
        assert_eq!(seen, [("call_1", "{\"path\":\"/tmp/🦀\"}"), ("call_2", "{}")], "{}", wire.name());
        assert_eq!(response.message.text(), "I look", "{}", wire.name());
        assert_eq!(response.stop, StopReason::ToolUse, "{}", wire.name());

        let results = [ToolResult::text("call_1", "none"), ToolResult::error("call_2", "out of paper")];
        let request = request.with_message(response.message).with_message(Message::tool_results(results));
        let response = model.chat(request).await.unwrap();
        assert_eq!(response.message.text(), "Sorry", "{}", wire.name());
    }
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn thinking_comes_before_the_text() {
    let answer = in_pieces("Think", json!({"content": "done", "reasoning": "hm 🦀"}));
    let aimock = Aimock::start("thinking", &[answer]);
    for wire in WIRES {
        let response = aimock.model(*wire).chat(ChatRequest::user("Think")).await.unwrap();
        match &response.message.content[0] {
            Block::Thinking(thinking) => assert_eq!(thinking.thinking, "hm 🦀", "{}", wire.name()),
            other => panic!("{}: {other:?}", wire.name()),
        }
        assert_eq!(response.message.text(), "done", "{}", wire.name());
    }
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn answers_have_the_form_that_was_asked_for() {
    let aimock = Aimock::start("form", &[fixture("Where", json!({"content": "{\"city\":\"Oslo\"}"}))]);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    for wire in WIRES {
        let request = ChatRequest::user("Where").with_output(OutputSpec::new("place", schema.clone()));
        let response = aimock.model(*wire).chat(request).await.unwrap();
        let value: Value = serde_json::from_str(&response.message.text()).unwrap();
        assert_eq!(value, json!({"city": "Oslo"}), "{}", wire.name());
    }
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn each_failure_has_its_code() {
    let cases = |wire: &dyn Wire| {
        [
            (400, Failure::BadRequest, Code::BadRequest),
            (401, Failure::Auth, Code::Auth),
            (403, Failure::Permission, Code::Permission),
            (404, Failure::NotFound, Code::NotFound),
            (413, Failure::TooLarge, Code::TooLarge),
            (429, Failure::RateLimited, Code::RateLimited),
            (500, Failure::Server, Code::Server),
            (wire.overloaded_status(), Failure::Overloaded, Code::Overloaded),
        ]
    };
    let name = |wire: &dyn Wire, failure: Failure| format!("<{}: {failure:?}>", wire.name());
    let fixtures: Vec<_> = WIRES
        .iter()
        .flat_map(|wire| {
            cases(*wire).map(|(status, failure, _)| {
                fixture(&name(*wire, failure), error(*wire, status, failure, "it failed"))
            })
        })
        .collect();
    let aimock = Aimock::start("failures", &fixtures);
    for wire in WIRES {
        let settings = crate::wires::wire::Settings { max_retries: 0, ..aimock.settings(*wire) };
        let model = wire.model(&settings).unwrap();
        for (status, failure, code) in cases(*wire) {
            let error = model.chat(ChatRequest::user(name(*wire, failure))).await.unwrap_err();
            assert_eq!(error.code(), code, "{} {failure:?}: {error}", wire.name());
            assert_eq!(error.status(), Some(status), "{} {failure:?}", wire.name());
            assert!(error.to_string().contains("it failed"), "{error}");
        }
    }
}

/// The error in the words of the wire.
fn error(wire: &dyn Wire, status: u16, failure: Failure, message: &str) -> Value {
    let body: Value = serde_json::from_str(&wire.error_body(failure, message)).unwrap();
    let kind = body["error"]["status"].as_str().or(body["error"]["type"].as_str()).unwrap();
    let mut error = json!({"message": message, "type": kind});
    if body["error"]["code"].is_string() {
        error["code"] = body["error"]["code"].clone();
    }
    json!({"error": error, "status": status})
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn a_call_is_repeated_after_the_wait_that_the_server_asks_for() {
    let kinds = json!({"message": "too fast", "type": "rate_limit_error"});
    let mut busy = fixture("Hello", json!({"error": kinds, "status": 429, "retryAfter": 7}));
    busy["match"]["sequenceIndex"] = json!(0);
    let aimock = Aimock::start("busy", &[busy, fixture("Hello", json!({"content": "now"}))]);
    for wire in WIRES {
        let settings = aimock.settings(*wire);
        let response = wire.model(&settings).unwrap().chat(ChatRequest::user("Hello")).await.unwrap();
        assert_eq!(response.message.text(), "now", "{}", wire.name());
        assert_eq!(settings.waits.millis(), [7000], "{}", wire.name());
    }
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn a_stream_that_is_cut_is_no_answer() {
    let mut cut = in_pieces("Tell", json!({"content": "a long text that is cut"}));
    cut["truncateAfterChunks"] = json!(6);
    let aimock = Aimock::start("cut", &[cut]);
    for wire in WIRES {
        let error = aimock.model(*wire).chat(ChatRequest::user("Tell")).await.unwrap_err();
        assert!(matches!(error.code(), Code::Connection | Code::Truncated), "{}: {error}", wire.name());
    }
}

#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn texts_become_vectors() {
    let vector =
        |text: &str, vector: Value| json!({"match": {"inputText": text}, "response": {"embedding": vector}});
    let aimock = Aimock::start("vectors", &[vector("cat", json!([0.25, -1, 0.5]))]);
    let embedder = OpenAiEmbedder::builder().api_key(KEY).model("m").dimensions(3).base_url(&aimock.url);
    let vectors = embedder.build().unwrap().embed(&["cat".to_owned()]).await.unwrap();
    assert_eq!(vectors, [[0.25, -1.0, 0.5]]);
}
