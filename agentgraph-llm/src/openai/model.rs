//! A model behind the Responses API.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::responses::{StreamDecoder, decode_count, encode, encode_count};
use super::{PROVIDER, connection};
use crate::error::{Code, Error, Result};
use crate::http::{Call, Connection, Endpoint, connection_settings};
use crate::model::{Capabilities, ChatModel, ChatRequest, ChatStream, ModelInfo, TokenCount};

/// A model behind OpenAI's Responses API, or a server compatible with it. Cheap to clone.
///
/// The server stores nothing: each request has the whole conversation, with the thinking of the model in
/// encrypted form. [`count_tokens`](ChatModel::count_tokens) asks the server, and estimates if a compatible
/// one does not count. The API has no stop sequences: a request with [`stop`](ChatRequest::stop) is an error.
///
/// A failed call is retried as one of [`OpenAiChatModel`](super::OpenAiChatModel).
///
/// ```no_run
/// use agentgraph_llm::openai::OpenAiModel;
/// use agentgraph_llm::prelude::*;
///
/// # async fn run() -> agentgraph_llm::Result<()> {
/// let model = OpenAiModel::from_env()?.model("gpt-...").build()?;
/// println!("{}", model.chat(ChatRequest::user("Hello")).await?.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAiModel {
    info: ModelInfo,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    endpoint: Arc<Endpoint>,
}

impl OpenAiModel {
    /// The settings of a model.
    pub fn builder() -> OpenAiModelBuilder {
        OpenAiModelBuilder::new(connection::connection())
    }

    /// The settings of a model with the key in `OPENAI_API_KEY` and, if set, the address in `OPENAI_BASE_URL`
    /// and the names in `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is no key.
    pub fn from_env() -> Result<OpenAiModelBuilder> {
        let connection = connection::from_vars(|name| std::env::var(name).ok())?;
        Ok(OpenAiModelBuilder::new(connection))
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn stream(&self, mut request: ChatRequest) -> Result<ChatStream> {
        if !request.stop.is_empty() {
            return Err(has_no_stop_sequences());
        }
        request.temperature = request.temperature.or(self.temperature);
        request.max_tokens = request.max_tokens.or(self.max_tokens);
        let body = encode(&self.info.model, &request, true).get().to_owned();
        let url = self.endpoint.url("responses");
        let call = Call { url, body, info: self.info(), request };
        self.endpoint.stream(call, StreamDecoder::new).await
    }

    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        let body = encode_count(&self.info.model, request);
        let url = self.endpoint.url("responses/input_tokens");
        self.endpoint.count(&url, body.get(), decode_count, (&self.info.model, request)).await
    }
}

/// A server of OpenAI refuses them, too, and does not say what would do.
fn has_no_stop_sequences() -> Error {
    let message = "the Responses API has no stop sequences: leave `stop` empty, or use `OpenAiChatModel`; a compatible \
                   server that has them takes them by `with_extra(\"stop\", ..)`";
    Error::new(Code::BadRequest, message)
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenAiModel")
            .field("model", &self.info.model)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The settings of an [`OpenAiModel`]. Model and key are required.
///
/// ```
/// use agentgraph_llm::openai::OpenAiModel;
///
/// let model = OpenAiModel::builder().api_key("sk-not-a-real-key").model("m").build()?;
/// assert!(!format!("{model:?}").contains("not-a-real-key"));
/// assert!(OpenAiModel::builder().model("m").build().is_err());
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenAiModelBuilder {
    model: Option<String>,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    max_input_tokens: Option<u64>,
    requires_key: bool,
    connection: Connection,
}

connection_settings!(OpenAiModelBuilder, default_url = "https://api.openai.com/v1");

impl OpenAiModelBuilder {
    fn new(connection: Connection) -> Self {
        OpenAiModelBuilder {
            model: None,
            temperature: None,
            max_tokens: None,
            max_input_tokens: None,
            requires_key: true,
            connection,
        }
    }

    /// Sets the model's name. Required.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Builds a model without a key too, for a server that needs none.
    pub fn without_key(mut self) -> Self {
        self.requires_key = false;
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
    pub fn build(self) -> Result<OpenAiModel> {
        let model = connection::named(self.model)?;
        connection::check_temperature(self.temperature)?;
        let endpoint = self.connection.endpoint(connection::wire(self.requires_key))?;
        let mut capabilities = Capabilities::new().structured_output().token_count();
        capabilities.max_input_tokens = self.max_input_tokens;
        Ok(OpenAiModel {
            info: ModelInfo::new(PROVIDER, model).with(capabilities),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            endpoint,
        })
    }
}
