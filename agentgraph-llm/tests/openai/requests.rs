//! Requests that use all of a wire.

use agentgraph_llm::*;
use serde_json::json;

pub fn weather() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    ToolSpec::new("weather", "The weather of today.", schema)
}

pub fn verdict() -> OutputSpec {
    let schema = json!({"type": "object", "properties": {"is_spam": {"type": "boolean"}}, "required": ["is_spam"],
        "additionalProperties": false});
    OutputSpec::new("verdict", schema)
}

/// A conversation with two calls, their results, and every kind of part that both wires have.
pub fn long_talk() -> ChatRequest {
    let calls = Message::new(
        Role::Assistant,
        [
            Block::text("Let me look."),
            ToolUse::new("call_1", "weather", json!({"city": "Oslo"})).into(),
            ToolUse::new("call_2", "weather", json!({"city": "Rome"})).into(),
        ],
    );
    let picture = Block::Image(Media::base64("image/png", "aGk="));
    let results = Message::tool_results([
        ToolResult::text("call_1", "4 degrees"),
        ToolResult::new("call_2", [Block::text("See the picture."), picture.clone()]),
    ]);
    let parts = Message::new(
        Role::User,
        [
            Block::text("Compare these."),
            picture,
            Block::Image(Media::url("https://example.com/a.png").with_extra("detail", json!("low"))),
            Block::Document(Media::base64("application/pdf", "aGk=").with_extra("filename", json!("a.pdf"))),
            Block::Document(Media::file("file-1")),
        ],
    );
    ChatRequest::new([Message::user("Hello"), calls, results, Message::system("Be kind."), parts])
        .with_system("Be brief.")
        .with_tools([weather()])
        .with_max_tokens(100)
        .with_temperature(0.2)
        .with_top_p(0.9)
        .with_effort(Effort::Low)
        .with_output(verdict())
}
