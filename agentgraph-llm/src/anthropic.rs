//! Anthropic's Messages API.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::error::Result;
use crate::model::{ChatModel, ChatRequest, ChatResponse};

/// A model behind Anthropic's Messages API, or a server that speaks it.
#[derive(Clone, Debug)]
pub struct AnthropicModel {
    model: String,
}

impl AnthropicModel {
    /// Settings of a model.
    pub fn builder() -> AnthropicModelBuilder {
        AnthropicModelBuilder::default()
    }

    /// Settings of a model with the key of `ANTHROPIC_API_KEY` and, if set, the address of `ANTHROPIC_BASE_URL`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` when there is no key.
    pub fn from_env() -> Result<AnthropicModelBuilder> {
        todo!("in work")
    }
}

/// Settings of an [`AnthropicModel`].
#[derive(Clone, Default)]
#[must_use]
pub struct AnthropicModelBuilder {
    api_key: Option<SecretString>,
    model: Option<String>,
}

impl AnthropicModelBuilder {
    /// The key. Needed.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The model's name. Needed.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The server's address.
    pub fn base_url(self, _url: impl Into<String>) -> Self {
        self
    }

    /// The longest one try may take, a stream included: 600 s if not set.
    pub fn timeout(self, _total: Duration) -> Self {
        self
    }

    /// The longest silence of a stream: 120 s if not set.
    pub fn idle_timeout(self, _idle: Duration) -> Self {
        self
    }

    /// How often a failed call is tried again: 2 if not set.
    pub fn max_retries(self, _retries: u32) -> Self {
        self
    }

    /// The temperature of requests that set none.
    pub fn temperature(self, _temperature: f32) -> Self {
        self
    }

    /// The most tokens to write, for requests that set none: 4096 if not set.
    pub fn max_tokens(self, _tokens: u32) -> Self {
        self
    }

    /// Builds the model.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` when key or model are missing or a setting cannot work.
    pub fn build(self) -> Result<AnthropicModel> {
        Ok(AnthropicModel { model: self.model.unwrap_or_default() })
    }
}

impl fmt::Debug for AnthropicModelBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AnthropicModelBuilder").field("model", &self.model).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for AnthropicModel {
    fn name(&self) -> &str {
        &self.model
    }

    async fn chat(&self, _request: ChatRequest) -> Result<ChatResponse> {
        todo!("in work")
    }
}
