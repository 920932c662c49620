//! Blocks of a message, in both directions.

use agentgraph_llm::message::{Media, MediaSource, RedactedThinking, Thinking, ToolUse};
use agentgraph_llm::{Block, Extra, RawJson};
use serde_json::{Map, Value, json};

use super::extra_from;

/// The content of a message: a string if it is one text, and a list of blocks otherwise.
pub(super) fn content_to<'a>(mut blocks: impl Iterator<Item = &'a Block> + Clone) -> Value {
    let all = blocks.clone();
    match (blocks.next(), blocks.next()) {
        (None, _) => "".into(),
        (Some(Block::Text(text)), None) if text.extra.is_empty() && !text.text.is_empty() => {
            text.text.clone().into()
        }
        _ => all.map(block_to).collect(),
    }
}

pub(super) fn block_to(block: &Block) -> Value {
    let (mut fields, extra) = match block {
        Block::Text(text) => (json!({ "type": "text", "text": text.text }), &text.extra),
        Block::Thinking(block) => {
            let thought = json!({
                "type": "thinking", "thinking": block.thinking, "signature": block.signature,
            });
            (thought, &block.extra)
        }
        Block::RedactedThinking(block) => {
            (json!({ "type": "redacted_thinking", "data": block.data }), &block.extra)
        }
        Block::ToolUse(call) => match call.input.json() {
            Some(input) => {
                let input = input.parse::<Value>().unwrap_or_default();
                let call_id = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input });
                (call_id, &call.extra)
            }
            None => {
                let args = call.input.text();
                let shown = json!({
                    "type": "invalid_tool_call", "id": call.id, "name": call.name, "args": args,
                });
                (shown, &call.extra)
            }
        },
        Block::Image(media) => (media_to("image", media), &media.extra),
        Block::Audio(media) => (media_to("audio", media), &media.extra),
        Block::Video(media) => (media_to("video", media), &media.extra),
        Block::Document(media) => (media_to("file", media), &media.extra),
        other => return json!({ "type": "non_standard", "value": other }),
    };
    if let Value::Object(known) = &mut fields {
        for (name, value) in extra_to(extra) {
            known.entry(name).or_insert(value);
        }
    }
    fields
}

fn media_to(kind: &str, media: &Media) -> Value {
    match &media.source {
        MediaSource::Base64 { media_type, data } => {
            json!({ "type": kind, "source_type": "base64", "mime_type": media_type, "data": data })
        }
        MediaSource::Url { url } => json!({ "type": kind, "source_type": "url", "url": url }),
        MediaSource::File { id } => json!({ "type": kind, "source_type": "id", "id": id }),
        other => json!({ "type": kind, "source_type": "other", "value": other }),
    }
}

pub(super) fn tool_call_to(call: &ToolUse) -> Value {
    match call.input.json().and_then(|input| input.parse::<Value>().ok()) {
        Some(input) => json!({ "type": "tool_call", "id": call.id, "name": call.name, "args": input }),
        None => json!({
            "type": "invalid_tool_call", "id": call.id, "name": call.name, "args": call.input.text(),
            "error": null,
        }),
    }
}

pub(super) fn extra_to(extra: &Extra) -> Map<String, Value> {
    let value = |value: &RawJson| value.parse::<Value>().unwrap_or_default();
    extra.iter().map(|(name, raw)| (name.to_owned(), value(raw))).collect()
}

/// Blocks from the content of a message: a string or a list of blocks and strings.
pub(super) fn content_from(content: &Value) -> Option<Vec<Block>> {
    Some(match content {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Block::text(text)],
        Value::Array(blocks) => blocks.iter().map(block_from).collect(),
        _ => return None,
    })
}

fn block_from(block: &Value) -> Block {
    if let Value::String(text) = block {
        return Block::text(text);
    }
    let known = block.as_object().and_then(|fields| known_from(block, fields));
    known.unwrap_or_else(|| Block::Unknown(block.clone().into()))
}

fn known_from(block: &Value, fields: &Map<String, Value>) -> Option<Block> {
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    Some(match block["type"].as_str()? {
        "text" => {
            let mut made = agentgraph_llm::message::TextBlock::new(text("text")?);
            made.extra = extra_from(fields, &["type", "text"]);
            made.into()
        }
        "thinking" => {
            let mut made = Thinking::new(text("thinking")?, text("signature"));
            made.extra = extra_from(fields, &["type", "thinking", "signature"]);
            made.into()
        }
        "redacted_thinking" => {
            let mut made = RedactedThinking::new(text("data")?);
            made.extra = extra_from(fields, &["type", "data"]);
            made.into()
        }
        "tool_use" => {
            let mut made = ToolUse::new(text("id")?, text("name")?, block.get("input")?.clone());
            made.extra = extra_from(fields, &["type", "id", "name", "input"]);
            made.into()
        }
        "invalid_tool_call" => {
            let mut made = ToolUse::new(text("id")?, text("name")?, RawJson::empty_object());
            made.input = agentgraph_llm::message::ToolInput::from_text(text("args")?);
            made.extra = extra_from(fields, &["type", "id", "name", "args"]);
            made.into()
        }
        "image" => Block::Image(media_from(block, fields)?),
        "audio" => Block::Audio(media_from(block, fields)?),
        "video" => Block::Video(media_from(block, fields)?),
        "file" => Block::Document(media_from(block, fields)?),
        "image_url" => {
            let url = block["image_url"].as_str().or_else(|| block["image_url"]["url"].as_str())?;
            Block::Image(url_media(url))
        }
        "non_standard" => serde_json::from_value(block.get("value")?.clone()).ok()?,
        _ => return None,
    })
}

fn media_from(block: &Value, fields: &Map<String, Value>) -> Option<Media> {
    let text = |name: &str| block[name].as_str();
    let mime = text("mime_type").or_else(|| text("mimeType"));
    let data = text("data").or_else(|| text("base64"));
    let id = text("id").or_else(|| text("file_id"));
    let mut media = match (text("source_type"), data, text("url"), id) {
        (Some("other"), ..) => {
            let source: MediaSource = serde_json::from_value(block.get("value")?.clone()).ok()?;
            return Some(source.into());
        }
        (_, Some(data), ..) => Media::base64(mime?, data),
        (_, _, Some(url), _) => url_media(url),
        (_, _, _, Some(id)) => Media::file(id),
        _ => return None,
    };
    let known = ["type", "source_type", "mime_type", "mimeType", "data", "base64", "url", "id", "file_id"];
    media.extra = extra_from(fields, &known);
    Some(media)
}

/// A picture behind a URL, or in a `data:` URL.
fn url_media(url: &str) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((mime, data)) => Media::base64(mime, data),
        None => Media::url(url),
    }
}
