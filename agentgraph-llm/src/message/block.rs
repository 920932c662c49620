//! The blocks of a message.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::json::{Extra, RawJson};
use crate::message::Media;

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text(TextBlock),
    /// A tool call of the model.
    ToolUse(ToolUse),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// The model's thinking, signed by the provider.
    Thinking(Thinking),
    /// The model's thinking, encrypted by the provider.
    RedactedThinking(RedactedThinking),
    /// An image.
    Image(Media),
    /// A recording.
    Audio(Media),
    /// A film.
    Video(Media),
    /// A document.
    Document(Media),
    /// An unknown block, unchanged.
    Unknown(RawJson),
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        TextBlock::new(text).into()
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Block::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The call of a call block.
    pub fn as_tool_use(&self) -> Option<&ToolUse> {
        match self {
            Block::ToolUse(block) => Some(block),
            _ => None,
        }
    }

    pub(crate) fn as_tool_use_mut(&mut self) -> Option<&mut ToolUse> {
        match self {
            Block::ToolUse(block) => Some(block),
            _ => None,
        }
    }

    /// The result of a result block.
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

/// A text.
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

/// The request of the model to call a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// The provider's id of the call, which the result refers to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, exactly as the model wrote them.
    #[serde(with = "StoredInput")]
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
///
/// It serialises as the JSON it is, for example as part of a question to a person. A message stores its text
/// instead, so that not a byte changes. Text that is not JSON serialises as a string.
///
/// ```
/// use agentgraph_llm::ToolUse;
/// use serde_json::json;
///
/// let call = ToolUse::new("call-1", "weather", json!({ "city": "Oslo" }));
/// let question = json!({ "run": call.name, "with": call.input });
/// assert_eq!(question, json!({ "run": "weather", "with": { "city": "Oslo" } }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// JSON.
    Json(RawJson),
    /// Text that is not JSON, for example because the output was cut. It is never run; the model gets an
    /// error instead.
    Malformed(String),
}

impl ToolInput {
    /// Keeps a text that is not JSON as [`Malformed`](ToolInput::Malformed).
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

/// A [`ToolInput`] in a stored message: its text, in a form that never changes.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolInput", rename_all = "snake_case")]
enum StoredInput {
    Json(RawJson),
    Malformed(String),
}

impl Serialize for ToolInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.json().and_then(|json| json.parse::<Value>().ok()) {
            // A string is the text of the input, so a JSON string keeps its quotes.
            Some(Value::String(_)) | None => serializer.serialize_str(self.text()),
            Some(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ToolInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => ToolInput::from_text(text),
            value => ToolInput::Json(value.into()),
        })
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// The content for the model.
    pub content: Vec<Block>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// What the tool gives to the program. It is stored, and never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<RawJson>,
}

impl ToolResult {
    /// A result of these blocks.
    pub fn new(tool_use_id: impl Into<String>, content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        ToolResult {
            tool_use_id: tool_use_id.into(),
            content: content.into_iter().map(Into::into).collect(),
            is_error: false,
            extra: Extra::new(),
            artifact: None,
        }
    }

    /// A result of one text.
    pub fn text(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        ToolResult::new(tool_use_id, [TextBlock::new(text)])
    }

    /// An error that the model reads.
    pub fn error(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        ToolResult { is_error: true, ..ToolResult::text(tool_use_id, text) }
    }

    /// The text blocks of the result, joined.
    pub fn as_text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }
}

/// The model's thinking. It is sent back with its signature; otherwise the provider rejects the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Thinking {
    /// The text; empty if the provider hides it.
    pub thinking: String,
    /// The provider's signature, opaque to the client.
    pub signature: Option<String>,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Thinking {
    /// A signed block of thinking.
    pub fn new(thinking: impl Into<String>, signature: Option<String>) -> Self {
        Thinking { thinking: thinking.into(), signature, extra: Extra::new() }
    }
}

/// The model's thinking, encrypted by the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RedactedThinking {
    /// The encrypted content.
    pub data: String,
    /// Further fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl RedactedThinking {
    /// A block of encrypted thinking.
    pub fn new(data: impl Into<String>) -> Self {
        RedactedThinking { data: data.into(), extra: Extra::new() }
    }
}
