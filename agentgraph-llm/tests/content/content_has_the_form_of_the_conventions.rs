//! Captured content, compared with the schemas of the OpenTelemetry GenAI conventions.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{
    ContentCapture, Extra, Media, RawJson, RedactedThinking, StopReason, TextBlock, Thinking, ToolInput,
};
use serde_json::{Value, json};

use crate::spans::Spans;
use crate::wires::server::{Reply as Bytes, Server};
use crate::wires::wire::{Settings, WIRES, quoted, text};

/// The parts of the conventions that have a fixed form. A part of another type may have any fields.
fn parts_schema() -> Value {
    let modality = json!({"type": "string"});
    let part = |kind: &str, fields: Value, required: &[&str]| {
        json!({
            "if": {"properties": {"type": {"const": kind}}},
            "then": {"properties": fields, "required": required},
        })
    };
    json!({"type": "array", "items": {
        "type": "object",
        "properties": {"type": {"type": "string"}},
        "required": ["type"],
        "allOf": [
            part("text", json!({"content": {"type": "string"}}), &["content"]),
            part("reasoning", json!({"content": {"type": "string"}}), &["content"]),
            part("tool_call", json!({"id": {"type": ["string", "null"]}, "name": {"type": "string"}}), &["name"]),
            part("tool_call_response", json!({"id": {"type": ["string", "null"]}}), &["response"]),
            part("blob", json!({"mime_type": {"type": ["string", "null"]}, "modality": modality,
                "content": {"type": "string"}}), &["modality", "content"]),
            part("uri", json!({"modality": modality, "uri": {"type": "string"}}), &["modality", "uri"]),
            part("file", json!({"modality": modality, "file_id": {"type": "string"}}), &["modality", "file_id"]),
        ],
    }})
}

fn messages_schema(required: &[&str]) -> Value {
    json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "role": {"enum": ["system", "user", "assistant", "tool"]},
            "parts": parts_schema(),
            "finish_reason": {"type": "string"},
        },
        "required": required,
    }})
}

fn conforms(schema: &Value, value: &Value) {
    let errors: Vec<_> = jsonschema::validator_for(schema)
        .unwrap()
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?} in {value:#}");
}

/// The attributes with content of one call of a model.
fn chat(spans: &Spans) -> [Value; 3] {
    let one = |field: &str| spans.json(field).pop().unwrap();
    let content = ["gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"].map(one);
    conforms(&parts_schema(), &content[0]);
    conforms(&messages_schema(&["role", "parts"]), &content[1]);
    conforms(&messages_schema(&["role", "parts", "finish_reason"]), &content[2]);
    content
}

#[tokio::test]
async fn every_wire_gives_instructions_input_and_output() {
    for wire in WIRES {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        let replies = [
            Bytes::stream(text(*wire, "Snow , all day").concat()),
            Bytes::stream(wire.call(&quoted(["{\"for\":\"", "Oslo\"}"])).concat()),
        ];
        let server = Server::start(replies).await;
        let model = wire.model(&Settings::of(&server)).unwrap();
        let request = ChatRequest::user("Weather in Oslo?").with_system("Be brief.");
        model.chat(request.clone()).await.unwrap();
        let [system, input, output] = chat(&spans);
        assert_eq!(system, json!([{"type": "text", "content": "Be brief."}]), "{}", wire.name());
        let asked = json!({"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]});
        assert_eq!(input, json!([asked]), "{}", wire.name());
        assert_eq!(
            output,
            json!([{"role": "assistant", "parts": [{"type": "text", "content": "Snow , all day"}], "finish_reason": "stop"}]),
            "{}",
            wire.name()
        );

        let response = model.chat(request).await.unwrap();
        let [_, _, output] = chat(&spans);
        let id = &response.message.tool_uses().next().unwrap().id;
        let call = json!({"type": "tool_call", "id": id, "name": "find", "arguments": {"for": "Oslo"}});
        assert_eq!(
            output,
            json!([{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]),
            "{}",
            wire.name()
        );
    }
}

#[tokio::test]
async fn a_request_is_recorded_once_although_it_is_tried_again() {
    for wire in WIRES {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        let replies = [Bytes::json(500, "", "{}"), Bytes::stream(text(*wire, "done").concat())];
        let server = Server::start(replies).await;
        wire.model(&Settings::of(&server)).unwrap().chat(ChatRequest::user("hi")).await.unwrap();
        assert_eq!(spans.json("gen_ai.input.messages").len(), 1, "{}", wire.name());
        assert_eq!(spans.json("gen_ai.output.messages").len(), 1, "{}", wire.name());
    }
}

#[tokio::test]
async fn a_failed_call_has_its_input_and_no_output() {
    for wire in WIRES {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        let server = Server::start([Bytes::json(400, "", "{}")]).await;
        wire.model(&Settings::of(&server)).unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
        assert_eq!(spans.json("gen_ai.input.messages").len(), 1, "{}", wire.name());
        assert!(spans.json("gen_ai.output.messages").is_empty(), "{}", wire.name());
    }
}

fn everything() -> Vec<Message> {
    let call = ToolUse::new("c1", "find", json!({"for": "Oslo", "days": [1, 2]}));
    let mut cut = ToolUse::new("c2", "find", json!({}));
    cut.input = ToolInput::from_text("{\"for\":");
    let picture = Block::Image(Media::base64("image/png", "AAAA"));
    vec![
        Message::system("Later instructions."),
        Message::new(
            Role::User,
            [
                Block::text("Look:"),
                picture.clone(),
                Block::Image(Media::url("data:image/gif;base64,BBBB")),
                Block::Document(Media::url("https://example.com/a.pdf")),
                Block::Audio(Media::file("file-1")),
            ],
        ),
        Message::new(
            Role::Assistant,
            [
                Block::Thinking(Thinking::new("Hm.", Some("signature".to_owned()))),
                Block::RedactedThinking(RedactedThinking::new("ciphertext")),
                Block::ToolUse(call),
                Block::ToolUse(cut),
                Block::Unknown(RawJson::from(json!({"type": "web_search_call", "status": "completed"}))),
                Block::Unknown(RawJson::from(json!({"executableCode": {"code": "1"}}))),
            ],
        ),
        Message::tool_results([
            ToolResult::text("c1", "snow"),
            ToolResult::new("c2", [Block::text("see"), picture]),
        ]),
    ]
}

#[tokio::test]
async fn every_block_is_a_part() {
    let spans = Spans::listen(Some(ContentCapture::new())).await;
    let model = ScriptedModel::new(["done"]);
    let request = ChatRequest::new(everything()).with_system("Be brief.");
    model.chat(request).await.unwrap();
    let [_, input, _] = chat(&spans);
    let blob = |media: &str| json!({"type": "blob", "modality": "image", "mime_type": media, "content": ""});
    let expected = json!([
        {"role": "system", "parts": [{"type": "text", "content": "Later instructions."}]},
        {"role": "user", "parts": [
            {"type": "text", "content": "Look:"},
            blob("image/png"),
            blob("image/gif"),
            {"type": "uri", "modality": "document", "uri": "https://example.com/a.pdf"},
            {"type": "file", "modality": "audio", "file_id": "file-1"},
        ]},
        {"role": "assistant", "parts": [
            {"type": "reasoning", "content": "Hm."},
            {"type": "redacted_thinking", "data": "ciphertext"},
            {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"for": "Oslo", "days": [1, 2]}},
            {"type": "tool_call", "id": "c2", "name": "find", "arguments": "{\"for\":"},
            {"type": "web_search_call", "status": "completed"},
            {"type": "unknown", "content": {"executableCode": {"code": "1"}}},
        ]},
        {"role": "user", "parts": [
            {"type": "tool_call_response", "id": "c1", "response": "snow"},
            {"type": "tool_call_response", "id": "c2", "response": [{"type": "text", "content": "see"}, blob("image/png")]},
        ]},
    ]);
    assert_eq!(input, expected);
}

#[tokio::test]
async fn the_data_of_media_are_captured_on_request() {
    let spans = Spans::listen(Some(ContentCapture::new().with_media())).await;
    ScriptedModel::new(["done"]).chat(ChatRequest::new(everything()).with_system("")).await.unwrap();
    let [_, input, _] = chat(&spans);
    assert_eq!(
        (&input[1]["parts"][1]["content"], &input[1]["parts"][2]["content"]),
        (&json!("AAAA"), &json!("BBBB"))
    );
}

#[tokio::test]
async fn reasons_for_the_end_have_the_words_of_the_conventions() {
    for (stop, word) in [
        (StopReason::EndTurn, "stop"),
        (StopReason::StopSequence, "stop"),
        (StopReason::MaxTokens, "length"),
        (StopReason::ContextWindowExceeded, "length"),
        (StopReason::ToolUse, "tool_call"),
        (StopReason::Refusal, "content_filter"),
        (StopReason::PauseTurn, "pause_turn"),
    ] {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        let model = ScriptedModel::new([Reply::text("x").with_stop(stop)]);
        model.chat(ChatRequest::user("hi").with_system("")).await.unwrap();
        assert_eq!(chat(&spans)[2][0]["finish_reason"], word);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    place: String,
}

#[tokio::test]
async fn calls_of_tools_have_arguments_and_results_that_are_objects() {
    let spans = Spans::listen(Some(ContentCapture::new())).await;
    let object = FnTool::new("object", "Gives an object.", async |place: Place| {
        Ok::<_, ToolError>(json!({"in": place.place}))
    });
    let line = FnTool::new("line", "Gives a text.", async |_: Place| Ok::<_, ToolError>("snow"));
    let picture = FnTool::new("picture", "Gives a picture.", async |_: Place| {
        Ok::<_, ToolError>(ToolOutput::new([
            Block::Image(Media::base64("image/png", "AAAA")),
            Block::text("a map"),
        ]))
    });
    let failing = FnTool::new("failing", "Fails.", async |_: Place| Err::<&str, _>(ToolError::failed("no")));
    let calls = Reply::tool_call("object", json!({"place": "Oslo"}))
        .and_tool_call("line", json!({"place": "Oslo"}))
        .and_tool_call("picture", json!({"place": "Oslo"}))
        .and_tool_call("failing", json!({"place": "Oslo"}));
    let model = ScriptedModel::new([calls, Reply::text("done")]);
    let tools = ToolLoop::new(&model).tool(object).tool(line).tool(picture).tool(failing);
    tools.run(ChatRequest::user("hi")).await.unwrap();

    assert_eq!(spans.json("gen_ai.tool.call.arguments"), vec![json!({"place": "Oslo"}); 4]);
    let blob = json!({"type": "blob", "modality": "image", "mime_type": "image/png", "content": ""});
    assert_eq!(
        spans.json("gen_ai.tool.call.result"),
        [
            json!({"in": "Oslo"}),
            json!({"output": "snow"}),
            json!({"output": [blob, {"type": "text", "content": "a map"}]}),
        ]
    );
}

#[tokio::test]
async fn further_fields_of_blocks_stay_at_home() {
    let spans = Spans::listen(Some(ContentCapture::new())).await;
    let mut text = TextBlock::new("hi");
    text.extra = Extra::new().with("citations", json!(["xyzzy"]));
    let request = ChatRequest::new([Message::new(Role::User, [text])]).with_extra("user", json!("xyzzy"));
    ScriptedModel::new(["done"]).chat(request).await.unwrap();
    assert!(!spans.text().contains("xyzzy"));
}
