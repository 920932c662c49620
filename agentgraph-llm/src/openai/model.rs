//! A model behind the Responses API.

use std::sync::Arc;

use async_trait::async_trait;

use super::builder::{OpenAiModelBuilder, Parts};
use super::responses::{StreamDecoder, decode_count, encode, encode_count};
use super::{PROVIDER, connection};
use crate::error::{Code, Error, Result};
use crate::http::{Call, Endpoint};
use crate::model::{ChatModel, ChatRequest, ChatStream, Defaults, ModelInfo, TokenCount};

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
#[derive(Clone, Debug)]
pub struct OpenAiModel {
    info: ModelInfo,
    defaults: Defaults,
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

    pub(super) fn of(parts: Parts) -> Self {
        let Parts { model, defaults, capabilities, endpoint, .. } = parts;
        // The name by which thinking in the conversation is known to be the model's own.
        let info = ModelInfo::new(PROVIDER, model).with(capabilities.structured_output().token_count());
        OpenAiModel { info, defaults, endpoint }
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
        self.defaults.add_to(&mut request);
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
