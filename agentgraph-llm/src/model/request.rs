//! What a model is asked.

use crate::json::{Extra, RawJson};
use crate::message::Message;
use crate::tool::ToolSpec;

/// What a model is asked: the conversation, the tools, and a few settings. What is not set is the model's
/// choice.
///
/// ```
/// use agentgraph_llm::{ChatRequest, Message};
///
/// let request = ChatRequest::new([Message::user("Hello")]).with_system("Be brief.").with_temperature(0.2);
/// assert_eq!(request.system.as_deref(), Some("Be brief."));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// Instructions. System messages of the conversation come after them.
    pub system: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools the model may ask for.
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must or must not use them.
    pub tool_choice: ToolChoice,
    /// The most tokens to write.
    pub max_tokens: Option<u32>,
    /// 0 for the likeliest answer, higher for more variety.
    pub temperature: Option<f32>,
    /// Texts at which the model stops.
    pub stop: Vec<String>,
    /// Fields for the provider's request body, such as Anthropic's `thinking`. They replace fields of the
    /// same name.
    pub extra: Extra,
}

impl ChatRequest {
    /// Asks for the next message of a conversation.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        ChatRequest { messages: messages.into_iter().collect(), ..ChatRequest::default() }
    }

    /// Asks for the answer to one text.
    pub fn user(text: impl Into<String>) -> Self {
        ChatRequest::new([Message::user(text)])
    }

    /// Sets the instructions.
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Adds a message at the end.
    pub fn with_message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds tools.
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolSpec>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets whether the model may, must or must not use tools.
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Sets the most tokens to write.
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the temperature.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Adds a text at which the model stops.
    pub fn with_stop(mut self, stop: impl Into<String>) -> Self {
        self.stop.push(stop.into());
        self
    }

    /// Sets a field of the provider's request body.
    pub fn with_extra(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.extra.insert(name, value);
        self
    }
}

/// Whether the model may, must or must not use tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must use one, whichever.
    Any,
    /// It must use this one.
    Tool(String),
    /// It must not use any.
    None,
}
