//! Content in the form of the OpenTelemetry GenAI conventions: messages of parts, each part with its `type`.

use serde_json::{Map, Value, json};

use crate::json::RawJson;
use crate::mask::{masked, without_keys};
use crate::message::{Block, Media, MediaSource, Message, Role, ToolInput, ToolResult, ToolUse};
use crate::model::{ChatRequest, ChatResponse, StopReason};
use crate::tool::ToolOutput;

/// Writes content without its secrets.
pub(super) struct Content {
    pub(super) secrets: Vec<String>,
    pub(super) has_media: bool,
}

impl Content {
    /// `gen_ai.system_instructions`: a list of parts.
    pub(super) fn system(&self, system: &str) -> Value {
        json!([self.text_part(system)])
    }

    /// `gen_ai.input.messages`
    pub(super) fn input(&self, request: &ChatRequest) -> Value {
        request.messages.iter().map(|message| self.message(message)).collect()
    }

    /// `gen_ai.output.messages`: one message, since there is one choice.
    pub(super) fn output(&self, response: &ChatResponse) -> Value {
        let mut message = self.message(&response.message);
        message["finish_reason"] = finish_reason(&response.stop).into();
        json!([message])
    }

    /// `gen_ai.tool.call.arguments`, which is an object. Other arguments are never run.
    pub(super) fn arguments(&self, call: &ToolUse) -> Option<Value> {
        Some(self.arguments_value(&call.input)).filter(Value::is_object)
    }

    /// `gen_ai.tool.call.result`, which is an object: the one that the tool returned, or one around its
    /// output.
    pub(super) fn result(&self, output: &ToolOutput) -> Value {
        match self.blocks_value(&output.content) {
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(fields)) => Value::Object(fields),
                _ => json!({ "output": text }),
            },
            parts => json!({ "output": parts }),
        }
    }

    fn message(&self, message: &Message) -> Value {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({ "role": role, "parts": self.parts(&message.content) })
    }

    fn parts(&self, blocks: &[Block]) -> Value {
        blocks.iter().map(|block| self.part(block)).collect()
    }

    fn part(&self, block: &Block) -> Value {
        match block {
            Block::Text(block) => self.text_part(&block.text),
            Block::ToolUse(call) => json!({
                "type": "tool_call",
                "id": call.id,
                "name": call.name,
                "arguments": self.arguments_value(&call.input),
            }),
            Block::ToolResult(result) => self.result_part(result),
            Block::Thinking(block) => json!({ "type": "reasoning", "content": self.text(&block.thinking) }),
            Block::RedactedThinking(block) => {
                json!({ "type": "redacted_thinking", "data": self.text(&block.data) })
            }
            Block::Image(media) => self.media_part("image", media),
            Block::Audio(media) => self.media_part("audio", media),
            Block::Video(media) => self.media_part("video", media),
            Block::Document(media) => self.media_part("document", media),
            Block::Unknown(raw) => self.unknown_part(raw),
        }
    }

    fn text_part(&self, text: &str) -> Value {
        json!({ "type": "text", "content": self.text(text) })
    }

    fn result_part(&self, result: &ToolResult) -> Value {
        json!({
            "type": "tool_call_response",
            "id": result.tool_use_id,
            "response": self.blocks_value(&result.content),
        })
    }

    fn media_part(&self, modality: &str, media: &Media) -> Value {
        match &media.source {
            MediaSource::Base64 { media_type, data } => self.blob_part(modality, media_type, data),
            MediaSource::Url { url } => match data_url(url) {
                Some((media_type, data)) => self.blob_part(modality, media_type, data),
                None => json!({ "type": "uri", "modality": modality, "uri": self.text(url) }),
            },
            MediaSource::File { id } => json!({ "type": "file", "modality": modality, "file_id": id }),
            MediaSource::Other(raw) => json!({ "type": modality, "source": self.raw(raw) }),
        }
    }

    fn blob_part(&self, modality: &str, media_type: &str, data: &str) -> Value {
        let data = if self.has_media { data } else { "" };
        json!({ "type": "blob", "modality": modality, "mime_type": media_type, "content": data })
    }

    /// A part of a type of its own. The conventions allow any, but want one.
    fn unknown_part(&self, raw: &RawJson) -> Value {
        let value = self.raw(raw);
        if value.get("type").is_some_and(Value::is_string) {
            return value;
        }
        json!({ "type": "unknown", "content": value })
    }

    /// A text if the blocks are texts, their parts otherwise.
    fn blocks_value(&self, blocks: &[Block]) -> Value {
        let texts: Option<String> = blocks.iter().map(Block::as_text).collect();
        texts.map_or_else(|| self.parts(blocks), |text| self.text(&text).into())
    }

    fn arguments_value(&self, input: &ToolInput) -> Value {
        input.json().map_or_else(|| self.text(input.text()).into(), |json| self.raw(json))
    }

    fn raw(&self, raw: &RawJson) -> Value {
        raw.parse().map_or_else(|_| self.text(raw.get()).into(), |value| self.value(value))
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (self.text(&name), self.value(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            other => other,
        }
    }

    fn text(&self, text: &str) -> String {
        without_keys(&masked(text, &self.secrets))
    }
}

/// The type and the data of a URL that has them inside.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// The conventions have no word for a paused turn.
fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::MaxTokens | StopReason::ContextWindowExceeded => "length",
        StopReason::ToolUse => "tool_call",
        StopReason::Refusal => "content_filter",
        StopReason::PauseTurn => stop.as_str(),
    }
}
