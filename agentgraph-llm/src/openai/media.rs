//! Media as URLs and file names, and the order of a conversation, for both wires.

use crate::json::RawJson;
use crate::message::{Block, Media, MediaSource, ToolResult};

use super::wire::text_of;

/// The address of a medium, or its data as one; `None` for the other sources.
pub(super) fn url(media: &Media) -> Option<RawJson> {
    match &media.source {
        MediaSource::Url { url } => Some(RawJson::string(url)),
        MediaSource::Base64 { media_type, data } => {
            Some(RawJson::string(&format!("data:{media_type};base64,{data}")))
        }
        _ => None,
    }
}

/// An image from the address that a server gave it.
pub(super) fn from_url(url: String) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => Media::base64(media_type, data),
        None => Media::url(url),
    }
}

/// The name of a file, which the API requires: from the further fields, or made of the media type.
pub(super) fn file_name(media: &Media) -> String {
    let given = text_of(&media.extra, "filename").or_else(|| text_of(&media.extra, "title"));
    given.unwrap_or_else(|| match &media.source {
        MediaSource::Base64 { media_type, .. } => {
            let ending = media_type.rsplit(['/', '+']).next().unwrap_or_default();
            format!("document.{}", if ending == "plain" { "txt" } else { ending })
        }
        _ => "document".to_owned(),
    })
}

/// The format of a recording: `wav`, `mp3`, or the subtype of its media type.
pub(super) fn audio_format(media_type: &str) -> &str {
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    match kind.rsplit('/').next().unwrap_or_default() {
        "x-wav" | "wave" | "vnd.wave" => "wav",
        "mpeg" => "mp3",
        other => other,
    }
}

/// The text of a tool's result. Neither wire has a field for a failure, so the text says it.
pub(super) fn result_text(result: &ToolResult) -> String {
    let texts: Vec<_> = result.content.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n");
    if result.is_error && !text.to_lowercase().starts_with("error") { format!("Error: {text}") } else { text }
}
