//! A message that was stored in a checkpoint, as MessagePack with named fields or as JSON, is equal
//! afterwards and is sent to the provider as the same bytes.

use agentgraph_llm::*;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

fn through_msgpack<T: Serialize + DeserializeOwned>(value: &T) -> T {
    rmp_serde::from_slice(&rmp_serde::to_vec_named(value).unwrap()).unwrap()
}

fn through_json<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// Converts to a value and back, like a state that holds JSON. Only the order of our own keys is lost.
fn through_value<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_value(serde_json::to_value(value).unwrap()).unwrap()
}

fn sent(message: &Message) -> String {
    anthropic::encode("m", &ChatRequest::new([message.clone()]), false).get().to_owned()
}

fn check(message: &Message) {
    for back in [through_msgpack(message), through_json(message), through_value(message)] {
        assert_eq!(back, *message);
        assert_eq!(sent(&back), sent(message));
    }
}

/// JSON texts that a parsed value does not preserve: order, spelling of numbers, escapes, repeated keys,
/// spaces.
const ODD: &[&str] = &[
    r#"{"z":1,"a":2,"m":{"y":0,"b":0}}"#,
    r#"{"n":1.0,"e":1e400,"f":-0.0,"g":1E+2,"big":123456789012345678901234567890,"tiny":0.1000000000000000055511151231257827}"#,
    r#"{"escapes":"\u00e6\/\ud83e\udd80\u0000\n","raw":"æ/🦀"}"#,
    r#"{"lonely":"\ud800"}"#,
    r#"{"a":1,"a":2}"#,
    "{ \"spaced\" :\t[ 1 ,\n 2 ] }",
    r#"[[[[[[[[[[]]]]]]]]]]"#,
    r#""text""#,
    "null",
    "-0",
];

#[test]
fn odd_json_is_kept_in_arguments_unknown_blocks_and_unknown_fields() {
    for text in ODD {
        let raw = RawJson::parse_text(*text).unwrap();
        assert_eq!(raw.get(), *text);
        let mut said = TextBlock::new("see there");
        said.extra.insert("citations", raw.clone());
        let message = Message::new(
            Role::Assistant,
            [ToolUse::new("call-1", "search", raw.clone()).into(), Block::Unknown(raw.clone()), said.into()],
        );
        check(&message);
        assert!(sent(&message).contains(text), "{}", sent(&message));
    }
}

#[test]
fn json_deeper_than_the_limit_of_the_parser_is_kept() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let message =
        Message::new(Role::Assistant, [Block::Unknown(RawJson::parse_text(deep.as_str()).unwrap())]);
    check(&message);
}

#[test]
fn arguments_that_are_no_json_are_kept_and_never_become_an_empty_object() {
    for text in ["{\"city\": \"Os", "", "{'a': 1}", "{\"a\":1}}", "\u{0}", "nul"] {
        let mut call = ToolUse::new("call-1", "weather", json!({}));
        call.input = ToolInput::from_text(text);
        assert_eq!(call.input, ToolInput::Malformed(text.to_owned()));
        let message = Message::new(Role::Assistant, [call]);
        check(&message);
        let expected = json!({ "INVALID_JSON": text }).to_string();
        assert!(sent(&message).contains(&expected), "{}", sent(&message));
    }
}

/// Outside a message the arguments are the JSON that they are, for a question to a person, say. Only what a
/// parsed value cannot hold remains text, and nothing changes on the way back but the spelling.
#[test]
fn arguments_alone_serialise_as_the_json_they_are() {
    let call = ToolUse::new("call-1", "add", RawJson::parse_text(r#"{ "b": 1.0, "a": [null] }"#).unwrap());
    assert_eq!(json!({ "with": call.input }), json!({ "with": { "a": [null], "b": 1.0 } }));
    let packed = rmp_serde::to_vec_named(&call.input).unwrap();
    assert_eq!(packed, rmp_serde::to_vec_named(&json!({ "a": [null], "b": 1.0 })).unwrap());

    let texts = ["{\"city\": \"Os", "", "nul", r#""quoted""#, r#"{"e":1e400}"#];
    for input in texts.map(ToolInput::from_text) {
        assert_eq!(serde_json::to_value(&input).unwrap(), json!(input.text()));
        for back in [through_msgpack(&input), through_json(&input), through_value(&input)] {
            assert_eq!(back, input);
        }
    }
    for text in ODD {
        let input = ToolInput::from_text(*text);
        let value = input.json().unwrap().parse::<serde_json::Value>().ok();
        for back in [through_msgpack(&input), through_json(&input), through_value(&input)] {
            assert_eq!(back.json().unwrap().parse::<serde_json::Value>().ok(), value, "{text}");
        }
    }
}

#[test]
fn thoughts_keep_their_signatures() {
    let signature = "ErUBCkYIBxgCIkD+/==\u{7f}é\"\\";
    let message = Message::new(
        Role::Assistant,
        [
            Thinking::new("first this, then that\n", Some(signature.to_owned())).into(),
            Thinking::new("", Some(String::new())).into(),
            RedactedThinking::new("EmwKAhgBEgy3va3pzix/LafPsn4a").into(),
            Block::text("Done."),
        ],
    );
    check(&message);
    assert!(sent(&message).contains(&serde_json::to_string(signature).unwrap()));
}

/// Existing checkpoints hold this form, so it must not change.
#[test]
fn the_stored_form_does_not_change() {
    let mut image = Media::base64("image/png", "iVBOR");
    image.extra.insert("cache_control", json!({"type": "ephemeral"}));
    let mut cut = ToolUse::new("c2", "add", json!({}));
    cut.input = ToolInput::from_text("{\"a\"");
    let message = Message::new(
        Role::Assistant,
        [
            Block::text("hi"),
            ToolUse::new("c1", "add", RawJson::parse_text("{\"b\": 1.0}").unwrap()).into(),
            cut.into(),
            ToolResult::error("c1", "no").into(),
            Thinking::new("hm", Some("sig".into())).into(),
            RedactedThinking::new("data").into(),
            Block::Image(image),
            Block::Image(Media::url("https://example.org/a.png")),
            Block::Unknown(RawJson::parse_text("{\"type\": \"new\"}").unwrap()),
        ],
    )
    .with_id("m-1");
    let stored = concat!(
        r#"{"id":"m-1","role":"assistant","content":[{"text":{"text":"hi"}},"#,
        r#"{"tool_use":{"id":"c1","name":"add","input":{"json":"{\"b\": 1.0}"}}},"#,
        r#"{"tool_use":{"id":"c2","name":"add","input":{"malformed":"{\"a\""}}},"#,
        r#"{"tool_result":{"tool_use_id":"c1","content":[{"text":{"text":"no"}}],"is_error":true}},"#,
        r#"{"thinking":{"thinking":"hm","signature":"sig"}},"#,
        r#"{"redacted_thinking":{"data":"data"}},"#,
        r#"{"image":{"source":{"base64":{"media_type":"image/png","data":"iVBOR"}},"#,
        r#""extra":[["cache_control","{\"type\":\"ephemeral\"}"]]}},"#,
        r#"{"image":{"source":{"url":{"url":"https://example.org/a.png"}}}},"#,
        r#"{"unknown":"{\"type\": \"new\"}"}]}"#,
    );
    assert_eq!(serde_json::to_string(&message).unwrap(), stored);
    assert_eq!(serde_json::from_str::<Message>(stored).unwrap(), message);
    check(&message);
}

#[test]
fn stored_text_that_is_no_json_is_refused() {
    let stored = r#"{"id":"m","role":"user","content":[{"unknown":"{\"a\""}]}"#;
    assert!(serde_json::from_str::<Message>(stored).is_err());
}

#[test]
fn ids_are_kept_and_two_messages_never_share_one() {
    let first = Message::user("hi");
    let second = Message::user("hi");
    assert_ne!(first.id, second.id);
    assert_eq!(through_msgpack(&first).id, first.id);
    assert_eq!(agentgraph::Keyed::key(&first), first.id.as_str());
}

fn json_text() -> impl Strategy<Value = String> + Clone {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.0".to_owned()),
        Just("1e999".to_owned()),
        "-?[1-9][0-9]{0,30}(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\u00E6\ud800\/""#.to_owned()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let key = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec((key, inner), 0..5).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

fn raw() -> impl Strategy<Value = RawJson> + Clone {
    json_text().prop_map(|text| RawJson::parse_text(text).unwrap())
}

fn extra() -> impl Strategy<Value = Extra> + Clone {
    prop::collection::vec(("x_[a-z]{1,8}", raw()), 0..3).prop_map(|fields| {
        fields.into_iter().fold(Extra::new(), |extra, (name, value)| extra.with(name, value))
    })
}

fn block() -> impl Strategy<Value = Block> {
    let text = (any::<String>(), extra()).prop_map(|(text, extra)| {
        let mut block = TextBlock::new(text);
        block.extra = extra;
        block
    });
    prop_oneof![
        text.clone().prop_map(Block::from),
        (any::<String>(), any::<String>(), raw(), extra()).prop_map(|(id, name, input, extra)| {
            let mut call = ToolUse::new(id, name, input);
            call.extra = extra;
            call.into()
        }),
        (any::<String>(), any::<String>()).prop_map(|(id, input)| {
            let mut call = ToolUse::new(id, "tool", json!({}));
            call.input = ToolInput::from_text(input);
            call.into()
        }),
        (any::<String>(), prop::collection::vec(text, 0..3), any::<bool>()).prop_map(
            |(id, content, is_error)| {
                let mut result = ToolResult::new(id, content);
                result.is_error = is_error;
                result.into()
            }
        ),
        (any::<String>(), any::<Option<String>>())
            .prop_map(|(text, signature)| Thinking::new(text, signature).into()),
        any::<String>().prop_map(|data| RedactedThinking::new(data).into()),
        (any::<String>(), any::<String>()).prop_map(|(kind, data)| Block::Image(Media::base64(kind, data))),
        raw().prop_map(|raw| Block::Image(MediaSource::Other(raw).into())),
        raw().prop_map(Block::Unknown),
    ]
}

proptest! {
    #[test]
    fn any_message_survives(
        role in prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)],
        content in prop::collection::vec(block(), 0..6),
        id in any::<String>(),
    ) {
        check(&Message::new(role, content).with_id(id));
    }
}
