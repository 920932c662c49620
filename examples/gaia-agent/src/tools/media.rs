//! The tools that see and hear, by a model that does.

use agentgraph::CallContext;
use agentgraph_llm::{AskExt, Block, ChatRequest, Media, Message, Role, ToolError, ToolOutput, tool};
use serde_json::json;

use super::desk::Desk;
use super::youtube;

/// The longest file that is sent, since it is sent within the request.
const LONGEST: u64 = 14 << 20;

const SYSTEM: &str = "You describe media for another program. Say exactly what is seen and heard, with all names, numbers and positions \
that the question is about. Do not guess.";

/// Looks at an image and answers a question about it: what it shows, the text in it, a diagram, a chess
/// position.
#[tool]
pub(super) async fn analyze_image(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The question about it.
    question: String,
) -> Result<ToolOutput, ToolError> {
    let block = Block::Image(file(&desk, &path, "image").await?);
    ask(&desk, block, &question).await
}

/// Listens to a recording and answers a question about it, or writes down what is said.
#[tool]
pub(super) async fn understand_audio(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The question about it.
    #[default("Write down all that is said.".to_owned())]
    question: String,
) -> Result<ToolOutput, ToolError> {
    let block = Block::Audio(file(&desk, &path, "audio").await?);
    ask(&desk, block, &question).await
}

/// Watches a video and answers a question about it.
#[tool]
pub(super) async fn understand_video(
    desk: CallContext<Desk>,
    /// The address of a YouTube video, or the path of a file as `list_files` shows it.
    video: String,
    /// The question about it.
    question: String,
) -> Result<ToolOutput, ToolError> {
    let media = match youtube::video_id(&video) {
        Some(id) => Media::url(format!("https://www.youtube.com/watch?v={id}")),
        None if video.contains("://") => {
            return Err(ToolError::failed(
                "only videos of YouTube have an address here; download others first",
            ));
        }
        None => file(&desk, &video, "video").await?,
    };
    ask(&desk, Block::Video(media), &question).await
}

async fn file(desk: &Desk, path: &str, kind: &str) -> Result<Media, ToolError> {
    let (path, bytes) = desk.read(path, LONGEST).await?;
    let media_type = media_type(&path, &bytes)
        .filter(|found| found.starts_with(kind))
        .ok_or_else(|| ToolError::failed(format!("`{path}` is no {kind} of a known form")))?;
    Ok(Media::bytes(media_type, bytes))
}

async fn ask(desk: &Desk, block: Block, question: &str) -> Result<ToolOutput, ToolError> {
    let model =
        desk.services.media.as_ref().ok_or_else(|| ToolError::failed("there is no model for media"))?;
    let message = Message::new(Role::User, [block, Block::text(question)]);
    let request = ChatRequest::new([message]).with_system(SYSTEM).with_temperature(0.0);
    let response = model.chat(request).await.map_err(ToolError::failed)?;
    let text = response.message.text();
    if text.trim().is_empty() {
        return Err(ToolError::failed("the model for media gave no answer"));
    }
    // For the count of tokens: no model reads it.
    let paid = json!({ "model": model.info().model, "usage": response.usage });
    Ok(ToolOutput::text(text).with_artifact(paid))
}

/// The media type of a file, by its first bytes, else by its name.
fn media_type(path: &str, bytes: &[u8]) -> Option<&'static str> {
    let of_bytes = match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => Some("audio/mpeg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        _ => None,
    };
    of_bytes.or_else(|| match path.rsplit('.').next()?.to_lowercase().as_str() {
        "mp3" => Some("audio/mpeg"),
        "m4a" => Some("audio/mp4"),
        "aac" => Some("audio/aac"),
        "mp4" => Some("video/mp4"),
        "mov" => Some("video/quicktime"),
        "webm" => Some("video/webm"),
        "mpeg" | "mpg" => Some("video/mpeg"),
        _ => None,
    })
}
