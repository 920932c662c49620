//! The request to a chat model.

use crate::error::{Code, Error, Result};
use crate::json::{Extra, RawJson};
use crate::message::{Message, Messages};
use crate::model::{Effort, OutputSpec, ToolChoice};
use crate::tool::ToolSpec;

/// The request to a chat model: the conversation, the tools, and a few settings. The model chooses what is
/// not set.
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
    /// Instructions, before the system messages of the conversation.
    pub system: Option<String>,
    /// The conversation.
    pub messages: Messages,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether the model may or must call tools, and how many at once.
    pub tool_choice: ToolChoice,
    /// The limit of output tokens.
    pub max_tokens: Option<u32>,
    /// The temperature: 0 for the likeliest answer, higher for more variety.
    pub temperature: Option<f32>,
    /// The share of the likeliest words among which the model chooses, from 0 to 1.
    pub top_p: Option<f32>,
    /// Stop sequences, at which the model stops.
    pub stop: Vec<String>,
    /// The JSON Schema that the answer has to follow. For models with [structured
    /// output](crate::Capabilities::structured_output); [`ask`](crate::AskExt::ask) works with all.
    pub output: Option<OutputSpec>,
    /// How long the model thinks.
    pub effort: Option<Effort>,
    /// Fields for the body of the provider's request, such as Anthropic's `thinking`. They replace fields of
    /// the same name.
    pub extra: Extra,
}

/// The settings of a model for requests that have none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defaults {
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
}

impl Defaults {
    pub(crate) fn add_to(self, request: &mut ChatRequest) {
        request.temperature = request.temperature.or(self.temperature);
        request.max_tokens = request.max_tokens.or(self.max_tokens);
    }

    pub(crate) fn check(self) -> Result<()> {
        match self.temperature.is_some_and(|temperature| !temperature.is_finite() || temperature < 0.0) {
            true => {
                let message =
                    "the temperature is not a number from 0 up: set one with `.temperature(..)`, or none";
                Err(Error::new(Code::Config, message))
            }
            false => Ok(()),
        }
    }
}

impl ChatRequest {
    /// A request for the next message of a conversation.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        ChatRequest { messages: messages.into_iter().collect(), ..ChatRequest::default() }
    }

    /// A request with one message of the user.
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

    /// Sets whether the model may or must call tools.
    pub fn with_tool_choice(mut self, choice: impl Into<ToolChoice>) -> Self {
        self.tool_choice = choice.into();
        self
    }

    /// Sets the limit of output tokens.
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the temperature.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the share of the likeliest words among which the model chooses, from 0 to 1.
    pub fn with_top_p(mut self, share: f32) -> Self {
        self.top_p = Some(share);
        self
    }

    /// Sets the JSON Schema that the answer has to follow.
    pub fn with_output(mut self, output: OutputSpec) -> Self {
        self.output = Some(output);
        self
    }

    /// Sets how long the model thinks.
    pub fn with_effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort);
        self
    }

    /// Adds a stop sequence.
    pub fn with_stop(mut self, stop: impl Into<String>) -> Self {
        self.stop.push(stop.into());
        self
    }

    /// Sets a field of the body of the provider's request.
    pub fn with_extra(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.extra.insert(name, value);
        self
    }
}
