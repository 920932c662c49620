//! Anthropic's Messages API: a codec without I/O, and a model on top of it.
//!
//! [`encode`], [`decode`] and [`StreamDecoder`] are pure and public, for tests and for programs with their
//! own HTTP client. [`AnthropicModel`] has a client with retries and timeouts.

mod assembly;
mod builder;
mod decode;
mod encode;
mod failure;
mod stream;

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::http::{Call, Dialect, Endpoint, LimitHeaders, QuotaHeaders};
use crate::model::{Capabilities, ChatModel, ChatRequest, ChatStream, Defaults, ModelInfo, TokenCount};

pub use builder::AnthropicModelBuilder;
pub(crate) use decode::end_of_word;
pub use decode::{decode, decode_count};
pub use encode::{encode, encode_count};
pub use stream::StreamDecoder;

/// The default model, and the only place in this workspace that names a real one. The provider retires
/// models, so a program whose model must not change names its own.
///
/// ```
/// use agentgraph_llm::AnthropicModel;
/// use agentgraph_llm::anthropic::DEFAULT_MODEL;
///
/// let model = AnthropicModel::builder().api_key("sk-not-a-real-key").model(DEFAULT_MODEL).build()?;
/// assert!(format!("{model:?}").contains(DEFAULT_MODEL));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";

const PROVIDER: &str = "anthropic";

const DIALECT: Dialect = Dialect {
    refusal: failure::from_status,
    request_id: "request-id",
    limits: Some(LimitHeaders {
        requests: QuotaHeaders {
            limit: "anthropic-ratelimit-requests-limit",
            remaining: "anthropic-ratelimit-requests-remaining",
            reset: "anthropic-ratelimit-requests-reset",
        },
        tokens: QuotaHeaders {
            limit: "anthropic-ratelimit-tokens-limit",
            remaining: "anthropic-ratelimit-tokens-remaining",
            reset: "anthropic-ratelimit-tokens-reset",
        },
    }),
};

/// A model behind Anthropic's Messages API, or a server compatible with it. Cheap to clone.
///
/// A failed call is retried (twice by default) after the statuses 408, 409, 429, 5xx and 529 and after
/// connection failures. The server's wishes (`x-should-retry`, `retry-after-ms` and `retry-after`) take
/// precedence over the back-off, which is 0.5 s, doubled up to 8 s. A call whose server asks for a longer
/// wait than the [longest](AnthropicModelBuilder::longest_wait) gives up at once. Billing errors are not
/// retried, and neither is a stream after its first event.
///
/// ```no_run
/// use agentgraph_llm::anthropic::DEFAULT_MODEL;
/// use agentgraph_llm::prelude::*;
///
/// # async fn run() -> agentgraph_llm::Result<()> {
/// let model = AnthropicModel::from_env()?.model(DEFAULT_MODEL).build()?;
/// println!("{}", model.chat(ChatRequest::user("Hello")).await?.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AnthropicModel {
    model: String,
    defaults: Defaults,
    endpoint: Arc<Endpoint>,
}

impl AnthropicModel {
    /// The settings of a model.
    pub fn builder() -> AnthropicModelBuilder {
        AnthropicModelBuilder::default()
    }

    /// The settings of a model with the key in `ANTHROPIC_API_KEY`, or else the token in
    /// `ANTHROPIC_AUTH_TOKEN`, and, if set, the address in `ANTHROPIC_BASE_URL`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is no key.
    pub fn from_env() -> Result<AnthropicModelBuilder> {
        AnthropicModelBuilder::from_vars(|name| std::env::var(name).ok())
    }
}

#[async_trait]
impl ChatModel for AnthropicModel {
    fn info(&self) -> ModelInfo {
        let capabilities = Capabilities::new().structured_output().token_count();
        ModelInfo::new(PROVIDER, self.model.clone()).with(capabilities)
    }

    async fn stream(&self, mut request: ChatRequest) -> Result<ChatStream> {
        self.defaults.add_to(&mut request);
        let body = encode(&self.model, &request, true).get().to_owned();
        let url = self.endpoint.url("messages");
        let call = Call { url, body, info: self.info(), request };
        self.endpoint.stream(call, StreamDecoder::new).await
    }

    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        let body = encode_count(&self.model, request);
        let url = self.endpoint.url("messages/count_tokens");
        self.endpoint.count(&url, body.get(), decode_count, (&self.model, request)).await
    }
}
