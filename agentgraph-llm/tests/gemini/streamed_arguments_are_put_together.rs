//! Calls whose arguments are streamed as values at JSON paths.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, StopReason, ToolInput};
use serde_json::{Value, json};

use crate::{events, finish, parts, stream};

fn call(fields: Value) -> Value {
    parts(json!([{ "functionCall": fields }]))
}

fn piece(path: &str, value: Value) -> Value {
    let mut piece = value;
    piece["jsonPath"] = json!(path);
    piece
}

#[test]
fn values_of_all_kinds_are_put_at_their_places() {
    let chunks = [
        parts(
            json!([{"functionCall": {"name": "book", "id": "f1", "willContinue": true}, "thoughtSignature": "QQ=="}]),
        ),
        call(
            json!({"partialArgs": [piece("$.city", json!({"stringValue": "Os", "willContinue": true}))], "willContinue": true}),
        ),
        call(json!({"partialArgs": [piece("$.city", json!({"stringValue": "lo"}))], "willContinue": true})),
        call(json!({"partialArgs": [
            piece("$.people[0].name", json!({"stringValue": "Ada"})),
            piece("$.people[1].name", json!({"stringValue": "Bob"})),
            piece("$.days", json!({"numberValue": 3})),
            piece("$.paid", json!({"boolValue": true})),
            piece("$['it\\'s']", json!({"nullValue": "NULL_VALUE"})),
        ], "willContinue": true})),
        call(json!({})),
        parts(json!([{"functionCall": {"name": "now", "args": {}}}])),
        finish("STOP"),
    ];
    let response = stream(&chunks).unwrap();
    let calls: Vec<_> = response.message.tool_uses().collect();
    assert_eq!(
        calls[0].input.json().unwrap().parse::<Value>().unwrap(),
        json!({"city": "Oslo", "people": [{"name": "Ada"}, {"name": "Bob"}], "days": 3, "paid": true, "it's": null})
    );
    assert_eq!((calls[0].id.as_str(), calls[1].name.as_str()), ("f1", "now"));
    assert_eq!(calls[0].extra.get("thoughtSignature").unwrap().get(), "\"QQ==\"");
    assert_eq!(response.stop, StopReason::ToolUse);
    let events: Vec<_> = events(&chunks).into_iter().map(Result::unwrap).collect();
    let deltas = events.iter().filter(|event| matches!(event, ChatEvent::ToolInputDelta { .. }));
    assert_eq!(deltas.count(), 2, "pieces at paths are not pieces of a text, so a call is one delta");
}

#[test]
fn halves_of_characters_are_joined() {
    let half = |text: &str| {
        let json = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"partialArgs":[{{"jsonPath":"$.p","stringValue":{text},"willContinue":true}}],"willContinue":true}}}}]}}}}]}}"#
        );
        format!("data: {json}\n\n")
    };
    let mut decoder = agentgraph_llm::gemini::StreamDecoder::new();
    let start = call(json!({"name": "a", "willContinue": true}));
    decoder.push(format!("data: {start}\n\n").as_bytes());
    decoder.push(half(r#""/\ud83e""#).as_bytes());
    decoder.push(half(r#""\udd80""#).as_bytes());
    decoder.push(format!("data: {}\n\ndata: {}\n\n", call(json!({})), finish("STOP")).as_bytes());
    decoder.end();
    let last = std::iter::from_fn(|| decoder.next_event()).last().unwrap().unwrap();
    let ChatEvent::Finished(response) = last else { panic!("{last:?}") };
    assert_eq!(response.message.tool_uses().next().unwrap().input.text(), r#"{"p":"/🦀"}"#);
}

#[test]
fn a_call_that_is_cut_is_malformed_and_never_run() {
    let response = stream(&[
        call(json!({"name": "delete", "willContinue": true})),
        call(json!({"partialArgs": [piece("$.path", json!({"stringValue": "/tm", "willContinue": true}))], "willContinue": true})),
        finish("MAX_TOKENS"),
    ])
    .unwrap();
    let call = response.message.tool_uses().next().unwrap();
    assert_eq!(call.input, ToolInput::Malformed(r#"{"path":"/tm"}"#.to_owned()));
    assert_eq!(response.stop, StopReason::MaxTokens);
}

#[test]
fn pieces_that_fit_nowhere_are_errors() {
    for bad in [
        json!(7),
        json!({"stringValue": "a"}),
        piece("city", json!({"stringValue": "a"})),
        piece("$", json!({"stringValue": "a"})),
        piece("$.a[999999999]", json!({"stringValue": "a"})),
        piece("$.a", json!({"stringValue": 7})),
    ] {
        let chunks = [call(json!({"name": "a", "partialArgs": [bad], "willContinue": true})), finish("STOP")];
        assert_eq!(stream(&chunks).unwrap_err().code(), Code::Decode, "{bad}");
    }
    let twice = json!([piece("$.a", json!({"boolValue": true})), piece("$.a.b", json!({"boolValue": true}))]);
    let chunks = [call(json!({"name": "a", "partialArgs": twice})), finish("STOP")];
    assert_eq!(stream(&chunks).unwrap_err().code(), Code::Decode);
    assert_eq!(
        stream(&[call(json!({"partialArgs": []}))]).unwrap_err().code(),
        Code::Decode,
        "without a name"
    );
}

#[test]
fn a_place_that_is_too_deep_is_an_error() {
    let deep = |depth: usize| {
        let path = format!("$.a{}", "[0]".repeat(depth - 1));
        let call = json!({"name": "t", "partialArgs": [{"jsonPath": path, "numberValue": 1}]});
        crate::stream(&[crate::parts(json!([{ "functionCall": call }])), crate::finish("STOP")])
    };
    let response = deep(127).unwrap();
    let call = response.message.tool_uses().next().unwrap();
    assert!(call.input.json().unwrap().parse::<serde_json::Value>().is_ok(), "what is made can be read");
    // Writing or dropping a value of this depth would overflow the stack.
    assert_eq!(deep(100_000).unwrap_err().code().as_str(), "E_LLM_DECODE");
}
