//! The contents of MCP as blocks, and back.

use rmcp::model::{ContentBlock, ResourceContents};
#[cfg(feature = "mcp")]
use serde_json::Value;

use crate::message::{Block, Media, MediaSource};
#[cfg(feature = "mcp")]
use crate::tool::{ToolError, ToolOutput};

#[cfg(feature = "mcp")]
pub(super) fn to_block(content: ContentBlock) -> Block {
    match content {
        ContentBlock::Text(text) => Block::text(text.text),
        ContentBlock::Image(image) => Block::Image(Media::base64(image.mime_type, image.data)),
        ContentBlock::Audio(audio) => Block::Audio(Media::base64(audio.mime_type, audio.data)),
        ContentBlock::Resource(resource) => resource_block(resource.resource),
        // A link, or a kind of content that is newer than this code: the model reads its fields.
        other => Block::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

#[cfg(feature = "mcp")]
pub(super) fn resource_block(resource: ResourceContents) -> Block {
    match resource {
        ResourceContents::TextResourceContents { text, .. } => Block::text(text),
        ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
            media_block(Media::base64(mime_type.as_deref().unwrap_or("application/octet-stream"), blob))
        }
        other => Block::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// The block for data of their media type.
#[cfg(feature = "mcp")]
fn media_block(media: Media) -> Block {
    let kind = match &media.source {
        MediaSource::Base64 { media_type, .. } => media_type.split('/').next().unwrap_or_default(),
        _ => "",
    };
    match kind {
        "image" => Block::Image(media),
        "audio" => Block::Audio(media),
        "video" => Block::Video(media),
        _ => Block::Document(media),
    }
}

/// The output of a call, or the error that the model reads.
#[cfg(feature = "mcp")]
pub(super) fn output(
    content: Vec<Block>,
    structured: Option<Value>,
    is_error: bool,
) -> Result<ToolOutput, ToolError> {
    if is_error {
        return Err(ToolError::failed(error_text(&content, structured.as_ref())));
    }
    let mut output = ToolOutput::new(content);
    if let Some(value) = structured {
        // A server of the newest era need not repeat its structured output as text.
        if output.content.is_empty() {
            output.content.push(Block::text(value.to_string()));
        }
        output.artifact = Some(value);
    }
    Ok(output)
}

#[cfg(feature = "mcp")]
fn error_text(content: &[Block], structured: Option<&Value>) -> String {
    let mut lines: Vec<String> = content.iter().map(text_of).collect();
    if lines.is_empty() {
        lines.extend(structured.map(Value::to_string));
    }
    if lines.is_empty() { "the tool failed and did not say why".to_owned() } else { lines.join("\n") }
}

#[cfg(feature = "mcp")]
fn text_of(block: &Block) -> String {
    let kind = match block {
        Block::Text(text) => return text.text.clone(),
        Block::Image(_) => "an image",
        Block::Audio(_) => "a recording",
        Block::Video(_) => "a film",
        _ => "a document",
    };
    format!("[{kind}]")
}

/// The output of a call with content that has no name here. It is shown to the model as JSON.
#[cfg(feature = "mcp")]
pub(super) fn unknown_result(mut result: Value) -> Result<ToolOutput, ToolError> {
    let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
    let structured = result.get_mut("structuredContent").map(Value::take);
    let content = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().map(known_or_text).collect(),
        _ => Vec::new(),
    };
    output(content, structured, is_error)
}

#[cfg(feature = "mcp")]
fn known_or_text(item: Value) -> Block {
    match serde_json::from_value::<ContentBlock>(item.clone()) {
        Ok(content) => to_block(content),
        Err(_) => Block::text(item.to_string()),
    }
}

/// The block of a tool's output for a client.
#[cfg(feature = "mcp-server")]
pub(super) fn from_block(block: &Block) -> ContentBlock {
    match block {
        Block::Text(text) => ContentBlock::text(&text.text),
        Block::Image(Media { source: MediaSource::Base64 { media_type, data }, .. }) => {
            ContentBlock::image(data, media_type)
        }
        Block::Audio(Media { source: MediaSource::Base64 { media_type, data }, .. }) => {
            ContentBlock::audio(data, media_type)
        }
        Block::Video(Media { source: MediaSource::Base64 { media_type, data }, .. })
        | Block::Document(Media { source: MediaSource::Base64 { media_type, data }, .. }) => {
            let resource = ResourceContents::blob(data, "data:").with_mime_type(media_type);
            ContentBlock::resource(resource)
        }
        other => ContentBlock::text(serde_json::to_string(other).unwrap_or_default()),
    }
}
