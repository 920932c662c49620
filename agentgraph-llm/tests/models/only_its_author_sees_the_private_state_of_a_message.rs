//! Thinking, signatures and unknown blocks go back to the model that wrote them, and to no other.

use agentgraph_llm::*;
use serde_json::json;

fn message() -> Message {
    let mut call = ToolUse::new("c1", "add", json!({"a": 1}));
    call.extra.insert("thoughtSignature", json!("s1"));
    let mut text = TextBlock::new("hi");
    text.extra.insert("citations", json!([]));
    let blocks = [
        Block::from(Thinking::new("hm", Some("s2".to_owned()))),
        RedactedThinking::new("data").into(),
        text.into(),
        Block::Unknown(json!({"type": "new"}).into()),
        call.into(),
    ];
    Message::new(Role::Assistant, blocks)
}

#[test]
fn the_author_gets_its_message_unchanged() {
    let author = ModelInfo::new("anthropic", "one");
    let message = message().with_origin(&author);
    assert_eq!(*message.for_model(&author), message);
}

#[test]
fn a_message_without_an_author_is_unchanged() {
    let message = message();
    assert_eq!(*message.for_model(&ModelInfo::new("openai", "other")), message);
}

#[test]
fn another_model_or_provider_gets_texts_and_calls_only() {
    let message = message().with_origin(&ModelInfo::new("anthropic", "one"));
    for other in [ModelInfo::new("anthropic", "two"), ModelInfo::new("openai", "one")] {
        let seen = message.for_model(&other);
        let expected = [Block::text("hi"), ToolUse::new("c1", "add", json!({"a": 1})).into()];
        assert_eq!((&seen.content[..], &seen.id), (&expected[..], &message.id));
    }
}
