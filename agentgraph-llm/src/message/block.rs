//! The blocks a message is made of.

use serde::{Deserialize, Serialize};

use crate::json::{Extra, RawJson};

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text(TextBlock),
    /// The model asks for a call.
    ToolUse(ToolUse),
    /// What a call gave.
    ToolResult(ToolResult),
    /// What the model thought, signed by the provider.
    Thinking(Thinking),
    /// What the model thought, readable by the provider only.
    RedactedThinking(RedactedThinking),
    /// A picture.
    Image(Image),
    /// A block this crate has no name for, as it came.
    Unknown(RawJson),
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        TextBlock::new(text).into()
    }

    /// The text, of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Block::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The call, of a call block.
    pub fn as_tool_use(&self) -> Option<&ToolUse> {
        match self {
            Block::ToolUse(block) => Some(block),
            _ => None,
        }
    }

    /// The result, of a result block.
    pub fn as_tool_result(&self) -> Option<&ToolResult> {
        match self {
            Block::ToolResult(block) => Some(block),
            _ => None,
        }
    }
}

macro_rules! block_from {
    ($($variant:ident($type:ty),)*) => {
        $(impl From<$type> for Block {
            fn from(block: $type) -> Self {
                Block::$variant(block)
            }
        })*
    };
}

block_from! {
    Text(TextBlock),
    ToolUse(ToolUse),
    ToolResult(ToolResult),
    Thinking(Thinking),
    RedactedThinking(RedactedThinking),
    Image(Image),
}

impl From<&str> for Block {
    fn from(text: &str) -> Self {
        Block::text(text)
    }
}

impl From<String> for Block {
    fn from(text: String) -> Self {
        Block::text(text)
    }
}

/// Text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Further fields, such as `citations`.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl TextBlock {
    /// A text without further fields.
    pub fn new(text: impl Into<String>) -> Self {
        TextBlock { text: text.into(), extra: Extra::new() }
    }
}

/// The model asks for the call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// The provider's id of the call; the result names it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub input: ToolInput,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ToolUse {
    /// A call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: impl Into<RawJson>) -> Self {
        ToolUse {
            id: id.into(),
            name: name.into(),
            input: ToolInput::Json(input.into()),
            extra: Extra::new(),
        }
    }
}

/// The arguments of a call, exactly as the model wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInput {
    /// JSON.
    Json(RawJson),
    /// Text that is not JSON, for example because the output was cut. It is never run: the model is told
    /// instead.
    Malformed(String),
}

impl ToolInput {
    /// What the model wrote: kept as [`Malformed`](ToolInput::Malformed) when it is not JSON.
    ///
    /// ```
    /// use agentgraph_llm::ToolInput;
    ///
    /// let cut = ToolInput::from_text(r#"{"city": "Os"#);
    /// assert_eq!(cut, ToolInput::Malformed(r#"{"city": "Os"#.into()));
    /// assert_eq!(cut.text(), r#"{"city": "Os"#);
    /// ```
    pub fn from_text(text: impl Into<String>) -> Self {
        let text = text.into();
        match RawJson::parse_text(text.clone()) {
            Ok(json) => ToolInput::Json(json),
            Err(_) => ToolInput::Malformed(text),
        }
    }

    /// The text, JSON or not.
    pub fn text(&self) -> &str {
        match self {
            ToolInput::Json(json) => json.get(),
            ToolInput::Malformed(text) => text,
        }
    }

    /// The arguments, if they are JSON.
    pub fn json(&self) -> Option<&RawJson> {
        match self {
            ToolInput::Json(json) => Some(json),
            ToolInput::Malformed(_) => None,
        }
    }
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// What the model gets to read.
    pub content: Vec<Block>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ToolResult {
    /// A result of these blocks.
    pub fn new(tool_use_id: impl Into<String>, content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        ToolResult {
            tool_use_id: tool_use_id.into(),
            content: content.into_iter().map(Into::into).collect(),
            is_error: false,
            extra: Extra::new(),
        }
    }

    /// A result of one text.
    pub fn text(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        ToolResult::new(tool_use_id, [TextBlock::new(text)])
    }

    /// A failure the model is told of.
    pub fn error(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        ToolResult { is_error: true, ..ToolResult::text(tool_use_id, text) }
    }

    /// All text of the result.
    pub fn as_text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }
}

/// What the model thought. It goes back to the provider with its signature, or the provider refuses the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Thinking {
    /// The thought; empty when the provider shows none.
    pub thinking: String,
    /// The provider's signature, opaque.
    pub signature: Option<String>,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Thinking {
    /// A signed thought.
    pub fn new(thinking: impl Into<String>, signature: Option<String>) -> Self {
        Thinking { thinking: thinking.into(), signature, extra: Extra::new() }
    }
}

/// What the model thought, readable by the provider only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RedactedThinking {
    /// The provider's state, opaque.
    pub data: String,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl RedactedThinking {
    /// A redacted thought.
    pub fn new(data: impl Into<String>) -> Self {
        RedactedThinking { data: data.into(), extra: Extra::new() }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Image {
    /// Where the picture is.
    pub source: ImageSource,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Image {
    /// A picture in base64.
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        ImageSource::Base64 { media_type: media_type.into(), data: data.into() }.into()
    }

    /// A picture the provider fetches.
    pub fn url(url: impl Into<String>) -> Self {
        ImageSource::Url { url: url.into() }.into()
    }
}

impl From<ImageSource> for Image {
    fn from(source: ImageSource) -> Self {
        Image { source, extra: Extra::new() }
    }
}

/// Where a picture is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ImageSource {
    /// Here.
    Base64 {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
    },
    /// On the web.
    Url {
        /// The address.
        url: String,
    },
    /// A source this crate has no name for, as it came.
    Other(RawJson),
}
