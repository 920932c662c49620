//! A model behind Chat Completions.

use std::sync::Arc;

use async_trait::async_trait;

use super::builder::{OpenAiChatModelBuilder, Parts};
use super::chat::{StreamDecoder, encode};
use super::responses::decode_count;
use super::{Profile, connection};
use crate::error::{Code, Result};
use crate::http::{Call, Endpoint};
use crate::model::{ChatModel, ChatRequest, ChatStream, Defaults, ModelInfo, TokenCount};

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
#[derive(Clone, Debug)]
pub struct OpenAiChatModel {
    info: ModelInfo,
    profile: Arc<Profile>,
    defaults: Defaults,
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

    pub(super) fn of(parts: Parts) -> Self {
        let Parts { model, profile, defaults, capabilities, endpoint } = parts;
        let info = ModelInfo::new(profile.provider.clone(), model).with(capabilities);
        OpenAiChatModel { info, profile: Arc::new(profile), defaults, endpoint }
    }
}

#[async_trait]
impl ChatModel for OpenAiChatModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn stream(&self, mut request: ChatRequest) -> Result<ChatStream> {
        self.defaults.add_to(&mut request);
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
