//! Blocks as parts.

use super::with_extra;
use crate::gemini::MADE_ID;
use crate::gemini::content::continuation;
use crate::json::{Object, RawJson};
use crate::message::{Block, Media, MediaSource, Thinking, ToolInput, ToolResult, ToolUse};

/// The call that a result belongs to.
pub(super) struct CalledTool<'a> {
    pub(super) name: &'a str,
    /// Its position among all calls.
    pub(super) order: usize,
}

/// `None` for a block that the API rejects or does not know. Results have a function of their own.
pub(super) fn part(block: &Block) -> Option<RawJson> {
    let (fields, extra) = match block {
        Block::Text(block) if block.extra.is_empty() && block.text.trim().is_empty() => return None,
        Block::Text(block) => (Object::default().with("text", RawJson::string(&block.text)), &block.extra),
        Block::Thinking(block) => (thinking(block), &block.extra),
        Block::ToolUse(call) => (function_call(call), &call.extra),
        Block::Image(media) | Block::Audio(media) | Block::Video(media) | Block::Document(media) => {
            (data(media)?, &media.extra)
        }
        Block::Unknown(_) if continuation(block).is_some() => return None,
        Block::Unknown(raw) => return Some(raw.clone()),
        Block::ToolResult(_) | Block::RedactedThinking(_) => return None,
    };
    Some(with_extra(fields, &["functionCall", "inlineData", "fileData"], extra).to_json())
}

fn thinking(block: &Thinking) -> Object {
    let fields = Object::default()
        .with("text", RawJson::string(&block.thinking))
        .with("thought", serde_json::Value::Bool(true));
    match &block.signature {
        Some(signature) => fields.with("thoughtSignature", RawJson::string(signature)),
        None => fields,
    }
}

/// Arguments that are not a JSON object cannot be sent; they become `{"INVALID_JSON": "..."}`.
fn function_call(call: &ToolUse) -> Object {
    let args = match &call.input {
        ToolInput::Json(json) if json.is_object() => json.clone(),
        input => Object::default().with("INVALID_JSON", RawJson::string(input.text())).to_json(),
    };
    let fields = with_id(&call.id).with("name", RawJson::string(&call.name)).with("args", args);
    Object::default().with("functionCall", fields.to_json())
}

fn with_id(id: &str) -> Object {
    match id.starts_with(MADE_ID) {
        true => Object::default(),
        false => Object::default().with("id", RawJson::string(id)),
    }
}

/// The result of a call. The name is required; a result without its call has the id in its place.
pub(super) fn result(result: &ToolResult, call: Option<&CalledTool<'_>>) -> RawJson {
    let texts: Vec<_> = result.content.iter().filter_map(Block::as_text).collect();
    let key = if result.is_error { "error" } else { "output" };
    let response = Object::default().with(key, RawJson::string(&texts.join("\n")));
    let mut fields = with_id(&result.tool_use_id)
        .with("name", RawJson::string(call.map_or(&result.tool_use_id, |call| call.name)))
        .with("response", response.to_json());
    let others = result.content.iter().filter(|block| block.as_text().is_none());
    let parts: Vec<_> = others.filter_map(part).collect();
    if !parts.is_empty() {
        fields.set("parts", RawJson::array(&parts));
    }
    let part = Object::default().with("functionResponse", fields.to_json());
    with_extra(part, &["functionResponse"], &result.extra).to_json()
}

fn data(media: &Media) -> Option<Object> {
    let file = |uri: &str| {
        let data = Object::default().with("fileUri", RawJson::string(uri));
        Object::default().with("fileData", data.to_json())
    };
    match &media.source {
        MediaSource::Base64 { media_type, data } => {
            let data = Object::default()
                .with("mimeType", RawJson::string(media_type))
                .with("data", RawJson::string(data));
            Some(Object::default().with("inlineData", data.to_json()))
        }
        MediaSource::Url { url } => Some(file(url)),
        // Uploaded files are named by their address.
        MediaSource::File { id } if id.starts_with("files/") => {
            Some(file(&format!("https://generativelanguage.googleapis.com/v1beta/{id}")))
        }
        MediaSource::File { id } => Some(file(id)),
        MediaSource::Other(raw) => Object::parse(raw.get()).ok(),
    }
}
