//! Blocks as the content parts of Chat Completions.

use crate::json::{Extra, Object, RawJson};
use crate::message::{Block, Media, MediaSource, TextBlock};

use super::messages::{is_refusal, refusal};
use crate::openai::media;
use crate::openai::wire::{filled, object};

/// The parts of those blocks that have one.
pub(super) fn of(blocks: &[Block]) -> Vec<RawJson> {
    blocks.iter().filter_map(part).collect()
}

/// The content of a message: one plain text as a string, which every server reads.
pub(super) fn content(parts: &[RawJson]) -> Option<RawJson> {
    match parts {
        [] => None,
        [part] => Some(plain_text(part).map_or_else(|| RawJson::array(parts), |text| RawJson::string(&text))),
        _ => Some(RawJson::array(parts)),
    }
}

/// The content of a message of the model, whose plain texts are pieces of one.
pub(super) fn joined_content(parts: &[RawJson]) -> Option<RawJson> {
    let texts: Option<Vec<_>> = parts.iter().map(plain_text).collect();
    match texts {
        Some(texts) if !texts.is_empty() => Some(RawJson::string(&texts.concat())),
        _ => content(parts),
    }
}

fn plain_text(part: &RawJson) -> Option<String> {
    let fields = Object::parse(part.get()).ok()?;
    let is_plain = fields.iter().count() == 2 && filled(&fields, "type")? == "text";
    fields.get_as("text").filter(|_| is_plain)
}

fn part(block: &Block) -> Option<RawJson> {
    let (fields, extra) = match block {
        Block::Text(text) if is_refusal(text) => return Some(refusal(text).to_json()),
        Block::Text(text) => return text_part(text),
        Block::Image(media) => (image(media), &media.extra),
        Block::Audio(media) => (audio(media), &media.extra),
        Block::Video(media) => (by_url("video_url", media), &media.extra),
        Block::Document(media) => (file(media), &media.extra),
        Block::Unknown(raw) => return Some(raw.clone()),
        _ => return None,
    };
    Some(with_rest(fields, extra).to_json())
}

/// Blank texts say nothing, and some servers refuse them.
fn text_part(text: &TextBlock) -> Option<RawJson> {
    let rest = text.extra.iter().filter(|(name, _)| *name != "annotations");
    let fields = object("text").with("text", RawJson::string(&text.text));
    let fields = rest.fold(fields, |fields, (name, value)| fields.with(name, value.clone()));
    (fields.iter().count() > 2 || !text.text.trim().is_empty()).then(|| fields.to_json())
}

/// Further fields that are inside of a part, not beside its type.
const INNER: [&str; 3] = ["detail", "filename", "title"];

fn with_rest(fields: Object, extra: &Extra) -> Object {
    let rest = extra.iter().filter(|(name, _)| !INNER.contains(name));
    rest.fold(fields, |fields, (name, value)| fields.with(name, value.clone()))
}

fn image(media: &Media) -> Object {
    match &media.source {
        MediaSource::File { .. } => file(media),
        _ => by_url("image_url", media),
    }
}

/// `{"type": kind, kind: {"url": ..}}`
fn by_url(kind: &str, media: &Media) -> Object {
    let value = match (&media.source, media::url(media)) {
        (MediaSource::Other(raw), _) => raw.clone(),
        (MediaSource::File { id }, _) => Object::default().with("file_id", RawJson::string(id)).to_json(),
        (_, url) => {
            let fields = Object::default().with("url", url.unwrap_or_else(|| RawJson::string("")));
            match media.extra.get("detail") {
                Some(detail) => fields.with("detail", detail.clone()).to_json(),
                None => fields.to_json(),
            }
        }
    };
    object(kind).with(kind, value)
}

fn audio(media: &Media) -> Object {
    let value = match &media.source {
        MediaSource::Base64 { media_type, data } => Object::default()
            .with("data", RawJson::string(data))
            .with("format", RawJson::string(media::audio_format(media_type)))
            .to_json(),
        MediaSource::Other(raw) => raw.clone(),
        _ => return by_url("audio_url", media),
    };
    object("input_audio").with("input_audio", value)
}

fn file(media: &Media) -> Object {
    let value = match (&media.source, media::url(media)) {
        (MediaSource::File { id }, _) => Object::default().with("file_id", RawJson::string(id)).to_json(),
        (MediaSource::Other(raw), _) => raw.clone(),
        (_, url) => Object::default()
            .with("filename", RawJson::string(&media::file_name(media)))
            .with("file_data", url.unwrap_or_else(|| RawJson::string("")))
            .to_json(),
    };
    object("file").with("file", value)
}
