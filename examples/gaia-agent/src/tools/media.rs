//! The tools that see and hear, by a model that does.

use agentgraph::CallContext;
use agentgraph_llm::{AskExt, Block, ChatRequest, Media, Message, Role, ToolError, ToolOutput, tool};
use serde_json::json;

use super::desk::Desk;
use super::{kinds, youtube};

/// The longest file that is sent, since it is sent within the request.
const LONGEST: u64 = 14 << 20;

const SYSTEM: &str = "You describe media for another program. Say exactly what is seen and heard, with all names, numbers and positions \
that the question is about. Do not guess.";

/// Looks at an image, or at the pages of a PDF, and answers a question about it: what it shows, the text in
/// it, a diagram, a chess position.
#[tool]
pub(super) async fn analyze_image(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The question about it.
    question: String,
) -> Result<ToolOutput, ToolError> {
    let (media, media_type) = file(&desk, &path, &["image", "application/pdf"]).await?;
    let block = if media_type.starts_with("image") { Block::Image(media) } else { Block::Document(media) };
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
    let block = Block::Audio(file(&desk, &path, &["audio"]).await?.0);
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
        None => file(&desk, &video, &["video"]).await?.0,
    };
    ask(&desk, Block::Video(media), &question).await
}

async fn file(desk: &Desk, path: &str, kinds: &[&str]) -> Result<(Media, &'static str), ToolError> {
    let (path, bytes) = desk.read(path, LONGEST).await?;
    let media_type = kinds::media_type(&path, &bytes).unwrap_or_default();
    if !kinds.iter().any(|kind| media_type.starts_with(kind)) {
        let (kind, _) = kinds::identify(&path, &bytes);
        let what = kind.sentence(&|tool| desk.services.offers(tool));
        return Err(ToolError::failed(format!("`{path}` is no {}. {what}", kinds[0])));
    }
    Ok((Media::bytes(media_type, bytes), media_type))
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
