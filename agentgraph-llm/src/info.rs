//! What a model says about itself.

use std::borrow::Cow;

/// The provider and the name of a model, and what it can do.
///
/// ```
/// use agentgraph_llm::{Capabilities, ModelInfo};
///
/// let info = ModelInfo::new("ollama", "qwen3:8b").with(Capabilities::new().structured_output());
/// assert!(info.capabilities.structured_output);
/// assert_eq!(info.to_string(), "ollama/qwen3:8b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider by its OpenTelemetry name, such as `anthropic`, `openai` or `gcp.gemini`.
    pub provider: Cow<'static, str>,
    /// The name that requests ask for.
    pub model: String,
    /// What the model can do.
    pub capabilities: Capabilities,
}

impl ModelInfo {
    /// A model without special capabilities.
    pub fn new(provider: impl Into<Cow<'static, str>>, model: impl Into<String>) -> Self {
        let capabilities = Capabilities::default();
        ModelInfo { provider: provider.into(), model: model.into(), capabilities }
    }

    /// Sets the capabilities.
    pub fn with(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }
}

impl std::fmt::Display for ModelInfo {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.provider, self.model)
    }
}

/// What a model can do beyond text and tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The server makes answers follow a JSON Schema: see
    /// [`ChatRequest::output`](crate::ChatRequest::output).
    pub structured_output: bool,
    /// [`count_tokens`](crate::ChatModel::count_tokens) asks the server, so its numbers are exact.
    pub token_count: bool,
    /// The size of the context window in tokens, if it is known.
    pub max_input_tokens: Option<u64>,
}

impl Capabilities {
    /// No capabilities.
    pub fn new() -> Self {
        Capabilities::default()
    }

    /// Answers can be made to follow a JSON Schema.
    pub fn structured_output(mut self) -> Self {
        self.structured_output = true;
        self
    }

    /// The server counts tokens.
    pub fn token_count(mut self) -> Self {
        self.token_count = true;
        self
    }

    /// Sets the size of the context window, in tokens.
    pub fn max_input_tokens(mut self, tokens: u64) -> Self {
        self.max_input_tokens = Some(tokens);
        self
    }
}
