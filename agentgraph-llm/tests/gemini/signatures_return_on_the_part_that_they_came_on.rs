//! A response sent back has the same parts, each with its signature and no other.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Origin, gemini};
use serde_json::{Value, json};

use super::{answer, finish, parts, stream};

const MODEL: &str = "gemini-test";

/// The parts of the only content of a request with this message.
fn sent(message: Message) -> Value {
    let body: Value = gemini::encode(MODEL, &ChatRequest::new([message])).parse().unwrap();
    assert_eq!(body["contents"].as_array().unwrap().len(), 1, "{body}");
    body["contents"][0]["parts"].clone()
}

#[test]
fn parts_return_as_they_came() {
    let all = json!([
        {"text": "Hm.", "thought": true},
        {"text": "", "thought": true, "thoughtSignature": "c2ln+/=="},
        {"text": "Good", "thoughtSignature": "QQ=="},
        {"text": " day."},
        {"text": "", "thoughtSignature": "Qg=="},
        {"functionCall": {"id": "f1", "name": "find", "args": {"q": "a"}}, "thoughtSignature": "Qw=="},
        {"functionCall": {"id": "f2", "name": "find", "args": {"q": "b"}}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "x"}, "thoughtSignature": "RA=="},
        {"fileData": {"mimeType": "audio/wav", "fileUri": "https://host/a"}},
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "RQ=="},
        {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH"}},
    ]);
    assert_eq!(sent(answer(all.clone()).message), all);
}

#[test]
fn a_signature_in_a_later_chunk_stays_on_its_own_empty_part() {
    let response = stream(&[
        parts(json!([{"text": "Good"}])),
        parts(json!([{"text": " day."}])),
        parts(json!([{"text": "", "thoughtSignature": "QQ=="}])),
        finish("STOP"),
    ])
    .unwrap();
    assert_eq!(response.message.text(), "Good day.");
    assert_eq!(
        sent(response.message),
        json!([{"text": "Good day."}, {"text": "", "thoughtSignature": "QQ=="}])
    );
}

#[test]
fn signatures_survive_a_checkpoint() {
    let message = answer(
        json!([{"functionCall": {"id": "f1", "name": "find", "args": {}}, "thoughtSignature": "Qw=="}]),
    )
    .message;
    let stored = rmp_serde::to_vec_named(&message).unwrap();
    let read: Message = rmp_serde::from_slice(&stored).unwrap();
    assert_eq!(sent(read), sent(message));
}

#[test]
fn made_ids_are_not_sent_with_call_or_result() {
    let response = answer(json!([{"functionCall": {"name": "find", "args": {}}}]));
    let id = response.message.tool_uses().next().unwrap().id.clone();
    let results = Message::tool_results([ToolResult::text(id, "4")]);
    let body: Value = gemini::encode(MODEL, &ChatRequest::new([response.message, results])).parse().unwrap();
    assert_eq!(body["contents"][0]["parts"][0], json!({"functionCall": {"name": "find", "args": {}}}));
    assert_eq!(
        body["contents"][1]["parts"][0],
        json!({"functionResponse": {"name": "find", "response": {"output": "4"}}})
    );
}

#[test]
fn signatures_and_thoughts_of_another_model_are_not_sent() {
    let mut message = answer(json!([
        {"text": "Hm.", "thought": true, "thoughtSignature": "QQ=="},
        {"text": "Yes.", "thoughtSignature": "Qg=="},
        {"executableCode": {"code": "1"}},
    ]))
    .message;
    message.origin = Some(Origin::new("gcp.gemini", "another"));
    assert_eq!(sent(message.clone()), json!([{"text": "Yes."}]));
    message.origin = Some(Origin::new("gcp.gemini", MODEL));
    assert_eq!(sent(message).as_array().unwrap().len(), 3);
}

#[test]
fn a_paused_turn_is_continued_by_its_token() {
    let piece = |text: &str, token: &str| {
        stream(&[
            parts(json!([{"text": text}])),
            json!({"candidates": [{"finishReason": "CONTINUATION", "continuationToken": token, "index": 0}]}),
        ])
        .unwrap()
    };
    let (first, second) = (piece("Once ", "QQ=="), piece("upon ", "Qg=="));
    assert_eq!(first.stop, agentgraph_llm::StopReason::PauseTurn);
    let messages = [Message::user("Tell."), first.message, second.message];
    let body =
        |messages: Vec<Message>| gemini::encode(MODEL, &ChatRequest::new(messages)).parse::<Value>().unwrap();
    let user = json!({"role": "user", "parts": [{"text": "Tell."}]});
    assert_eq!(
        body(messages.to_vec()),
        json!({"contents": [user], "continuationToken": "Qg=="}),
        "the server has the pieces of the turn"
    );
    let rest = answer(json!([{"text": "a time."}])).message;
    let all: Vec<_> = messages.into_iter().chain([rest, Message::user("More.")]).collect();
    let model =
        json!({"role": "model", "parts": [{"text": "Once "}, {"text": "upon "}, {"text": "a time."}]});
    assert_eq!(body(all), json!({"contents": [user, model, {"role": "user", "parts": [{"text": "More."}]}]}));
}
