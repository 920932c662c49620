//! A model behind Chat Completions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::Profile;
use super::chat::{StreamDecoder, encode};
use super::connection::{self, BASE_URL};
use super::responses::decode_count;
use crate::error::{Code, Result};
use crate::http::{Call, Connection, Endpoint, connection_settings};
use crate::model::{Capabilities, ChatModel, ChatRequest, ChatStream, ModelInfo, TokenCount};

/// A model behind Chat Completions: of OpenAI, or of a compatible server such as Ollama, llama.cpp or vLLM.
/// Cheap to clone.
///
/// A failed call is retried (twice by default) after the statuses 408, 409, 429 and 5xx and after connection
/// failures, as [`AnthropicModel`](crate::AnthropicModel) is. An account without credit, which OpenAI says
/// with the status 429, is not retried.
///
/// ```no_run
/// use agentgraph_llm::openai::{OpenAiChatModel, Profile};
/// use agentgraph_llm::prelude::*;
///
/// # async fn run() -> agentgraph_llm::Result<()> {
/// let model = OpenAiChatModel::builder().profile(Profile::ollama()).model("qwen3:8b").build()?;
/// println!("{}", model.chat(ChatRequest::user("Hello")).await?.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAiChatModel {
    info: ModelInfo,
    profile: Arc<Profile>,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    endpoint: Arc<Endpoint>,
}

impl OpenAiChatModel {
    /// The settings of a model.
    pub fn builder() -> OpenAiChatModelBuilder {
        OpenAiChatModelBuilder::new(connection::connection())
    }

    /// The settings of a model with the key in `OPENAI_API_KEY` and, if set, the address in `OPENAI_BASE_URL`
    /// and the names in `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is no key.
    pub fn from_env() -> Result<OpenAiChatModelBuilder> {
        let connection = connection::from_vars(|name| std::env::var(name).ok())?;
        Ok(OpenAiChatModelBuilder::new(connection))
    }
}

#[async_trait]
impl ChatModel for OpenAiChatModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn stream(&self, mut request: ChatRequest) -> Result<ChatStream> {
        request.temperature = request.temperature.or(self.temperature);
        request.max_tokens = request.max_tokens.or(self.max_tokens);
        let body = encode(&self.info.model, &request, &self.profile, true).get().to_owned();
        let url = self.endpoint.url("chat/completions");
        let call = Call { url, body, info: self.info(), request };
        let profile = Arc::clone(&self.profile);
        self.endpoint.stream(call, move || StreamDecoder::new(&profile)).await
    }

    /// The number that the server counts, if the profile has a path for it and the server knows the path.
    /// Otherwise an estimate.
    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        let Some(path) = &self.profile.count_path else {
            return Ok(TokenCount::estimate(request));
        };
        let body = encode(&self.info.model, request, &self.profile, false);
        match self.endpoint.send(&self.endpoint.url(path), body.get(), decode_count).await {
            Err(error) if error.code() == Code::NotFound => Ok(TokenCount::estimate(request)),
            count => count,
        }
    }
}

impl fmt::Debug for OpenAiChatModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenAiChatModel")
            .field("model", &self.info.model)
            .field("provider", &self.info.provider)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The settings of an [`OpenAiChatModel`]. The model is required, and the key if the profile says so.
///
/// ```
/// use agentgraph_llm::openai::{OpenAiChatModel, Profile};
///
/// let model = OpenAiChatModel::builder().api_key("sk-not-a-real-key").model("m").build()?;
/// assert!(!format!("{model:?}").contains("not-a-real-key"));
///
/// let local = OpenAiChatModel::builder().profile(Profile::llama_cpp()).model("m").build()?;
/// assert!(format!("{local:?}").contains("http://localhost:8080/v1"));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenAiChatModelBuilder {
    model: Option<String>,
    profile: Profile,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    max_input_tokens: Option<u64>,
    connection: Connection,
}

connection_settings!(OpenAiChatModelBuilder, default_url = "https://api.openai.com/v1");

impl OpenAiChatModelBuilder {
    fn new(connection: Connection) -> Self {
        OpenAiChatModelBuilder {
            model: None,
            profile: Profile::openai(),
            temperature: None,
            max_tokens: None,
            max_input_tokens: None,
            connection,
        }
    }

    /// Sets the model's name. Required.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets what the server does in its own way, and its address, unless one is set.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the temperature of requests that have none.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the limit of output tokens of requests that have none.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the size of the model's context window, for [`Capabilities`](crate::Capabilities).
    pub fn max_input_tokens(mut self, tokens: u64) -> Self {
        self.max_input_tokens = Some(tokens);
        self
    }

    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the model or the key is missing or a setting is invalid.
    pub fn build(mut self) -> Result<OpenAiChatModel> {
        let model = connection::named(self.model)?;
        connection::check_temperature(self.temperature)?;
        if self.connection.base_url == BASE_URL {
            self.connection.base_url = self.profile.base_url.clone().into_owned();
        }
        let endpoint = self.connection.endpoint(connection::wire(self.profile.requires_key))?;
        let mut capabilities = Capabilities::new();
        capabilities.structured_output = self.profile.structured_output;
        capabilities.token_count = self.profile.count_path.is_some();
        capabilities.max_input_tokens = self.max_input_tokens;
        Ok(OpenAiChatModel {
            info: ModelInfo::new(self.profile.provider.clone(), model).with(capabilities),
            profile: Arc::new(self.profile),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            endpoint,
        })
    }
}
