//! Calls whose arguments are streamed as values at JSON paths.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, StopReason, ToolInput};
use serde_json::{Value, json};

use super::{events, finish, parts, stream};

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

/// Such arguments would end the process: by its stack, or by its memory.
#[test]
fn places_that_are_too_deep_or_too_far_are_errors() {
    let deep = |levels: usize| piece(&format!("$.a{}", "[0]".repeat(levels)), json!({"boolValue": true}));
    let far: Vec<_> = (0..3).map(|n| piece(&format!("$.a{n}[5000]"), json!({"boolValue": true}))).collect();
    for (pieces, is_read) in [
        (vec![deep(126)], true),
        (vec![deep(127)], false),
        (vec![deep(200_000)], false),
        (far[..2].to_vec(), true),
        (far, false),
    ] {
        let chunks = [call(json!({"name": "a", "partialArgs": pieces})), finish("STOP")];
        match stream(&chunks) {
            Ok(response) => {
                assert!(is_read);
                let input = response.message.tool_uses().next().unwrap().input.clone();
                assert!(input.json().unwrap().parse::<Value>().is_ok(), "a tool can read it");
            }
            Err(error) => assert_eq!((error.code(), is_read), (Code::Decode, false)),
        }
    }
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
