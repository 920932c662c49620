//! Gemini's `generateContent`: a codec without I/O, and a model and an embedder on top of it.
//!
//! [`encode`], [`decode`] and [`StreamDecoder`] are pure and public, for tests and for programs with their
//! own HTTP client. [`GeminiModel`] and [`GeminiEmbedder`] have a client with retries and timeouts.
//!
//! # How blocks become parts
//!
//! | block | part |
//! |---|---|
//! | text, thinking | `text`, with `thought: true` for thinking |
//! | image, audio, video, document | `inlineData`, or `fileData` for addresses and files |
//! | tool call | `functionCall`; the id is sent only if it came from the server |
//! | tool result | `functionResponse` with the name of its call; `output` or `error` holds the text |
//! | unknown | itself |
//!
//! The `extra` fields of a block are fields of its part, such as `thoughtSignature` or `videoMetadata`. An
//! extra field `functionCall`, `functionResponse`, `inlineData` or `fileData` adds its fields to the object
//! of that name, such as `{"mimeType": "video/mp4"}` for a `fileData`.
//!
//! # Not supported
//!
//! Gemini cannot be told to make one call at a time: [`ToolChoice::parallel`](crate::ToolChoice) has no
//! effect. Encrypted thinking of other providers is not sent.

mod answer;
mod arguments;
mod builder;
mod content;
mod credentials;
mod decode;
mod embedder;
mod encode;
mod failure;
mod stream;
mod usage;

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::http::{Call, Dialect, Endpoint};
use crate::message::MessageIds;
use crate::model::{Capabilities, ChatModel, ChatRequest, ChatStream, Defaults, ModelInfo, TokenCount};

pub(crate) use answer::end_of_word;
pub use builder::GeminiModelBuilder;
pub use credentials::GoogleCredentials;
pub use decode::{decode, decode_count};
pub use embedder::{GeminiEmbedder, GeminiEmbedderBuilder};
pub use encode::{encode, encode_count};
pub use stream::StreamDecoder;

const PROVIDER: &str = "gcp.gemini";

/// The API has no header with the id of a request: responses have one in their body.
const DIALECT: Dialect =
    Dialect { refusal: failure::from_status, request_id: "x-goog-request-id", limits: None };

/// The beginning of ids of calls that came without one. They are not sent to the server.
const MADE_ID: &str = "gemini-call-";

/// A Gemini model, or one behind a compatible server. Cheap to clone.
///
/// A failed call is retried (twice by default) after the statuses 408, 409, 429 and 5xx and after connection
/// failures. The wait of a `RetryInfo` in the error takes precedence over the back-off. A used-up daily quota
/// is `E_LLM_BILLING` and not retried, and neither is a stream after its first event.
///
/// ```no_run
/// use agentgraph_llm::GeminiModel;
/// use agentgraph_llm::prelude::*;
///
/// # async fn run() -> agentgraph_llm::Result<()> {
/// let model = GeminiModel::from_env()?.model("gemini-...").build()?;
/// println!("{}", model.chat(ChatRequest::user("Hello")).await?.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct GeminiModel {
    model: String,
    defaults: Defaults,
    ids: MessageIds,
    is_vertex: bool,
    endpoint: Arc<Endpoint>,
}

impl GeminiModel {
    /// The settings of a model.
    pub fn builder() -> GeminiModelBuilder {
        GeminiModelBuilder::default()
    }

    /// The settings of a model with the key in `GOOGLE_API_KEY` or `GEMINI_API_KEY` and, if set, the address
    /// in `GOOGLE_GEMINI_BASE_URL`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is no key.
    pub fn from_env() -> Result<GeminiModelBuilder> {
        GeminiModelBuilder::from_vars(|name| std::env::var(name).ok())
    }
}

#[async_trait]
impl ChatModel for GeminiModel {
    fn info(&self) -> ModelInfo {
        let capabilities = Capabilities::new().structured_output().token_count();
        ModelInfo::new(PROVIDER, self.model.clone()).with(capabilities)
    }

    async fn stream(&self, mut request: ChatRequest) -> Result<ChatStream> {
        self.defaults.add_to(&mut request);
        let body = encode(&self.model, &request).get().to_owned();
        let mut url = self.endpoint.url(&method(&self.model, "streamGenerateContent"));
        url.query_pairs_mut().append_pair("alt", "sse");
        let call = Call { url, body, info: self.info(), request };
        let ids = self.ids.clone();
        self.endpoint.stream(call, move || StreamDecoder::new().call_ids(ids.clone())).await
    }

    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        let body = match self.is_vertex {
            true => encode::count_body(&self.model, request),
            false => encode_count(&self.model, request),
        };
        let url = self.endpoint.url(&method(&self.model, "countTokens"));
        self.endpoint.count(&url, body.get(), decode_count, (&self.model, request)).await
    }
}

/// The path of a method. A name with a slash is a whole resource, such as `tunedModels/mine`.
fn method(model: &str, method: &str) -> String {
    format!("{}:{method}", resource(model))
}

fn resource(model: &str) -> String {
    if model.contains('/') { model.to_owned() } else { format!("models/{model}") }
}
