//! A conversation as the input items of the Responses API.

use std::borrow::Cow;

use crate::json::{Object, RawJson};
use crate::message::{Block, Media, MediaSource, Message, Role, TextBlock, ToolResult, ToolUse};
use crate::model::ModelInfo;

use super::items::{ITEM, PART};
use crate::openai::media;
use crate::openai::wire::{array, filled, object, text_of};

pub(super) fn encode(messages: &[Message], info: &ModelInfo) -> Vec<RawJson> {
    let messages: Vec<Cow<'_, Message>> = messages.iter().map(|message| message.for_model(info)).collect();
    let mut items = Vec::new();
    for turn in messages.chunk_by(|a, b| a.role == Role::User && b.role == Role::User) {
        match turn[0].role {
            Role::User => {
                items.extend(turn.iter().flat_map(|message| message.results()).map(call_output));
                items.extend(turn.iter().flat_map(|message| spoken("user", &message.content)));
            }
            Role::System => items.extend(spoken("developer", &turn[0].content)),
            Role::Assistant => items.extend(assistant(&turn[0].content)),
        }
    }
    items
}

fn message(role: &str, content: RawJson) -> RawJson {
    object("message").with("role", RawJson::string(role)).with("content", content).to_json()
}

/// A message of the user or the developer, and between its parts the items that are no parts, such as answers
/// to approval requests.
fn spoken(role: &str, content: &[Block]) -> Vec<RawJson> {
    let mut items = Vec::new();
    let mut parts = Vec::new();
    let flush = |parts: &mut Vec<RawJson>, items: &mut Vec<RawJson>| {
        if !parts.is_empty() {
            items.push(message(role, array(std::mem::take(parts))));
        }
    };
    for block in content {
        match block {
            Block::Unknown(raw) if !is_part(raw) => {
                flush(&mut parts, &mut items);
                items.push(raw.clone());
            }
            block => parts.extend(input_part(block)),
        }
    }
    flush(&mut parts, &mut items);
    items
}

fn is_part(raw: &RawJson) -> bool {
    let kind = Object::parse(raw.get()).ok().and_then(|fields| filled(&fields, "type"));
    kind.is_some_and(|kind| kind.starts_with("input_"))
}

fn call_output(result: &ToolResult) -> RawJson {
    let has_media = result.content.iter().any(|block| block.as_text().is_none());
    let output = if has_media {
        let mut parts: Vec<_> = result.content.iter().filter_map(input_part).collect();
        if result.is_error {
            parts.insert(0, text_part("Error:"));
        }
        array(parts)
    } else {
        RawJson::string(&media::result_text(result))
    };
    object("function_call_output")
        .with("call_id", RawJson::string(&result.tool_use_id))
        .with("output", output)
        .with_all(&result.extra)
        .to_json()
}

fn text_part(text: &str) -> RawJson {
    object("input_text").with("text", RawJson::string(text)).to_json()
}

/// `None` for a block that is no part, and for a blank text.
fn input_part(block: &Block) -> Option<RawJson> {
    let (fields, extra) = match block {
        Block::Text(text) if text.text.trim().is_empty() => return None,
        Block::Text(text) => (object("input_text").with("text", RawJson::string(&text.text)), &text.extra),
        Block::Image(media) => (image(media), &media.extra),
        Block::Document(media) => (file(media), &media.extra),
        Block::Audio(media) => (audio(media), &media.extra),
        Block::Video(media) => (by_url("input_video", "video_url", media), &media.extra),
        Block::Unknown(raw) => return Some(raw.clone()),
        _ => return None,
    };
    // The type stays, and a title is the name of a file.
    let rest = extra.iter().filter(|(name, _)| !matches!(*name, "type" | "title" | "annotations" | ITEM));
    Some(rest.fold(fields, |fields, (name, value)| fields.with(name, value.clone())).to_json())
}

fn by_url(kind: &str, field: &str, media: &Media) -> Object {
    let fields = object(kind);
    match (&media.source, media::url(media)) {
        (MediaSource::File { id }, _) => fields.with("file_id", RawJson::string(id)),
        (MediaSource::Other(raw), _) => fields.with(field, raw.clone()),
        (_, url) => fields.with(field, url.unwrap_or_else(|| RawJson::string(""))),
    }
}

fn image(media: &Media) -> Object {
    by_url("input_image", "image_url", media).with("detail", RawJson::string("auto"))
}

fn file(media: &Media) -> Object {
    let name = RawJson::string(&media::file_name(media));
    match &media.source {
        MediaSource::Url { url } => object("input_file").with("file_url", RawJson::string(url)),
        MediaSource::Base64 { .. } => by_url("input_file", "file_data", media).with("filename", name),
        _ => by_url("input_file", "file_data", media),
    }
}

fn audio(media: &Media) -> Object {
    match &media.source {
        MediaSource::Base64 { media_type, data } => {
            let sound = Object::default()
                .with("data", RawJson::string(data))
                .with("format", RawJson::string(media::audio_format(media_type)));
            object("input_audio").with("input_audio", sound.to_json())
        }
        _ => by_url("input_audio", "audio_url", media),
    }
}

/// The items of a message of the model.
fn assistant(content: &[Block]) -> Vec<RawJson> {
    let mut items = Vec::new();
    let mut said = Said::default();
    for block in content {
        match block {
            Block::Text(text) => {
                if text.extra.get(ITEM).is_some() {
                    items.extend(said.take());
                }
                said.add(text);
                continue;
            }
            Block::Unknown(raw) => {
                if let Some(part) = Object::parse(raw.get()).ok().and_then(|mut fields| fields.take(PART)) {
                    said.parts.push(part);
                    said.has_more = true;
                    continue;
                }
                items.extend(said.take());
                items.push(raw.clone());
            }
            block => {
                items.extend(said.take());
                items.extend(item(block));
            }
        }
    }
    items.extend(said.take());
    while items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    items
}

fn item(block: &Block) -> Option<RawJson> {
    match block {
        Block::ToolUse(call) => Some(function_call(call)),
        // Thinking goes back only as the item that it was.
        Block::Thinking(thinking) => thinking.extra.get(ITEM).cloned(),
        // The model's messages have no media, so those of another model are shown to it.
        Block::Image(_) | Block::Audio(_) | Block::Video(_) | Block::Document(_) => {
            Some(message("user", array(input_part(block))))
        }
        _ => None,
    }
}

fn function_call(call: &ToolUse) -> RawJson {
    object("function_call")
        .with("call_id", RawJson::string(&call.id))
        .with("name", RawJson::string(&call.name))
        .with("arguments", RawJson::string(call.input.text()))
        .with_all(&call.extra)
        .to_json()
}

fn is_reasoning(item: &RawJson) -> bool {
    Object::parse(item.get()).is_ok_and(|fields| filled(&fields, "type").as_deref() == Some("reasoning"))
}

/// A message item in progress.
#[derive(Default)]
struct Said {
    item: Option<Object>,
    parts: Vec<RawJson>,
    text: String,
    /// The parts have more than the text.
    has_more: bool,
}

impl Said {
    fn add(&mut self, block: &TextBlock) {
        if let Some(item) = block.extra.get(ITEM) {
            self.item = Object::parse(item.get()).ok();
        }
        let (kind, field) = match text_of(&block.extra, "type").as_deref() {
            Some("refusal") => ("refusal", "refusal"),
            _ => ("output_text", "text"),
        };
        let mut part = object(kind).with(field, RawJson::string(&block.text));
        if kind == "output_text" {
            part.set("annotations", array([]));
        }
        let rest = block.extra.iter().filter(|(name, _)| !matches!(*name, "type" | ITEM));
        let part = rest.fold(part, |part, (name, value)| part.with(name, value.clone()));
        self.parts.push(part.to_json());
        self.text += &block.text;
        self.has_more |= block.extra.iter().any(|(name, _)| name != ITEM);
    }

    /// An item of this API has an id. A message without one is a plain text, unless it has more than that.
    fn take(&mut self) -> Option<RawJson> {
        let Said { item, parts, text, has_more } = std::mem::take(self);
        match item {
            Some(item) => Some(
                object("message")
                    .with("role", RawJson::string("assistant"))
                    .with_all(&item.into_extra())
                    .with("content", array(parts))
                    .to_json(),
            ),
            None if has_more => Some(message("assistant", array(parts))),
            None if text.trim().is_empty() => None,
            None => Some(message("assistant", RawJson::string(&text))),
        }
    }
}
