//! Messages survive the way to LangChain's shape and back.

use agentgraph_llm::message::{Media, MediaSource, RedactedThinking, TextBlock, Thinking, ToolInput};
use agentgraph_llm::{Block, Message, Origin, Role, ToolResult, ToolUse};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{messages_from, messages_to, shown};

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,6}", Just("\u{0}\"~1\n".to_owned()), Just("ü🦀".to_owned())]
}

fn extra() -> impl Strategy<Value = agentgraph_llm::Extra> {
    prop_oneof![
        Just(agentgraph_llm::Extra::new()),
        text().prop_map(|value| agentgraph_llm::Extra::new().with("cache", json!({ "x": value }))),
    ]
}

fn media() -> impl Strategy<Value = Media> {
    let source = prop_oneof![
        text().prop_map(|data| MediaSource::Base64 { media_type: "image/png".to_owned(), data }),
        "[a-z]{1,6}".prop_map(|path| MediaSource::Url { url: format!("https://x.example/{path}") }),
        "[a-z]{1,6}".prop_map(|id| MediaSource::File { id }),
        Just(MediaSource::Other(json!({ "bucket": 1 }).into())),
    ];
    source.prop_map(Media::from)
}

fn plain_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        (text(), extra()).prop_map(|(text, extra)| {
            let mut block = TextBlock::new(text);
            block.extra = extra;
            block.into()
        }),
        media().prop_map(Block::Image),
        media().prop_map(Block::Audio),
        media().prop_map(Block::Video),
        media().prop_map(Block::Document),
    ]
}

fn models_block(at: usize) -> impl Strategy<Value = Block> {
    let id = format!("call-{at}");
    let input = prop_oneof![
        text().prop_map(|text| ToolInput::Json(json!({ "q": text }).into())),
        Just(ToolInput::Json(json!([1]).into())),
        Just(ToolInput::Malformed("{\"q\":".to_owned())),
    ];
    let call = (input, extra()).prop_map(move |(input, extra)| {
        let mut call = ToolUse::new(id.clone(), "look", json!({}));
        (call.input, call.extra) = (input, extra);
        Block::from(call)
    });
    prop_oneof![
        3 => plain_block(),
        3 => call,
        1 => (text(), proptest::option::of(text())).prop_map(|(text, by)| Thinking::new(text, by).into()),
        1 => text().prop_map(|data| RedactedThinking::new(data).into()),
        1 => Just(Block::Unknown(json!({ "server": "block" }).into())),
    ]
}

fn result(at: usize) -> impl Strategy<Value = Block> {
    let parts = (proptest::collection::vec(plain_block(), 0..3), any::<bool>(), extra(), any::<bool>());
    parts.prop_map(move |(content, is_error, extra, has_artifact)| {
        let mut result = ToolResult::new(format!("call-{at}"), content);
        (result.is_error, result.extra) = (is_error, extra);
        result.artifact = has_artifact.then(|| json!({ "rows": [1] }).into());
        result.into()
    })
}

fn message(at: usize) -> impl Strategy<Value = Message> {
    let models = (0..4_usize).prop_flat_map(|count| (0..count).map(models_block).collect::<Vec<_>>());
    let results = (1..4_usize).prop_flat_map(|count| (0..count).map(result).collect::<Vec<_>>());
    // Results come before what the person says beside them.
    let answers = (results, proptest::collection::vec(plain_block(), 0..2))
        .prop_map(|(results, said)| results.into_iter().chain(said).collect::<Vec<Block>>());
    let plain = || proptest::collection::vec(plain_block(), 0..3);
    let spoken = prop_oneof![
        plain().prop_map(|content| (Role::System, content)),
        plain().prop_map(|content| (Role::User, content)),
        answers.prop_map(|content| (Role::User, content)),
        models.prop_map(|content| (Role::Assistant, content)),
    ];
    let tail = prop_oneof![Just(""), Just("~x"), Just("-1")];
    (spoken, tail, any::<bool>(), any::<bool>()).prop_map(
        move |((role, content), tail, has_origin, incomplete)| {
            let mut message = Message::new(role, content).with_id(format!("m-{at}{tail}"));
            if role == Role::Assistant {
                message.is_incomplete = incomplete;
                message.origin = has_origin.then(|| Origin::new("anthropic", "claude"));
            }
            message
        },
    )
}

proptest! {
    #[test]
    fn a_conversation_is_the_same_after_both_ways(
        messages in (0..5_usize).prop_flat_map(|count| (0..count).map(message).collect::<Vec<_>>())
    ) {
        let wire: Vec<Value> = messages.iter().flat_map(messages_to).collect();
        let back = messages_from(&wire).expect("each is a message");
        let back: Vec<Message> = back.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect();
        prop_assert_eq!(&back, &messages, "{}", json!(wire));
        // What a graph shows is the same table, wherever the messages are.
        prop_assert_eq!(shown(json!({ "a": { "messages": messages } })), json!({ "a": { "messages": wire } }));
    }
}

#[test]
fn values_that_look_like_messages_stay_as_they_are() {
    for value in [
        json!({ "id": "1", "role": "owner", "content": [] }),
        json!({ "id": "1", "role": "user", "content": "a text" }),
        json!({ "id": "1", "role": "user", "content": [], "email": "a@x.example" }),
    ] {
        assert_eq!(shown(value.clone()), value);
    }
}
