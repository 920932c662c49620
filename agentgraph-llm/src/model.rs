//! The contract of a chat model: a request goes in, a response comes out as a stream.

mod ask;
mod canonical;
mod effort;
pub(crate) mod end;
mod limits;
pub(crate) mod listening;
mod output;
mod request;
mod response;
pub(crate) mod stream;
mod tokens;
mod tool_choice;

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;

pub(crate) use ask::Form;
pub use ask::{AskExt, Asked};
pub use effort::Effort;
pub use limits::{Quota, RateLimits};
pub use output::OutputSpec;
pub use request::ChatRequest;
pub(crate) use request::Defaults;
pub use response::{ChatResponse, StopReason};
pub use stream::{ChatEvent, ChatStream};
pub use tokens::TokenCount;
pub use tool_choice::{ToolChoice, ToolMode};

pub use crate::info::{Capabilities, ModelInfo};
pub use crate::usage::Usage;

/// A chat model.
///
/// Within a node of a graph, the output of a model appears in the run's
/// [messages](agentgraph::View::Messages) piece by piece, without any code in the node.
///
/// The trait is object-safe: a graph takes an `Arc<dyn ChatModel>` and does not depend on the provider. What
/// programs call is [`AskExt`]: [`chat`](AskExt::chat) for a whole response and [`ask`](AskExt::ask) for a
/// value of a type.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::{ModelInfo, StopReason};
///
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl ChatModel for Echo {
///     fn info(&self) -> ModelInfo {
///         ModelInfo::new("house", "echo")
///     }
///
///     async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
///         let last = request.messages.last().map(Message::text).unwrap_or_default();
///         let response = ChatResponse::new(Message::assistant(last), StopReason::EndTurn);
///         Ok(ChatStream::from_response(response))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model: std::sync::Arc<dyn ChatModel> = std::sync::Arc::new(Echo);
/// let response = model.chat(ChatRequest::user("hello")).await?;
/// assert_eq!(response.message.text(), "hello");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// The provider and the name of the model, and what it can do.
    fn info(&self) -> ModelInfo;

    /// Requests one assistant message as a stream.
    ///
    /// # Errors
    /// The error of the provider or of the connection, after the model's own retries. An error after the
    /// start of the stream is its last item.
    async fn stream(&self, request: ChatRequest) -> Result<ChatStream>;

    /// The number of tokens of a request. The default is an [estimate](TokenCount::estimate), and so is the
    /// answer of a model whose server turns out not to count.
    ///
    /// # Errors
    /// The error of the provider or of the connection, for models whose server counts.
    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        Ok(TokenCount::estimate(request))
    }
}

impl fmt::Debug for dyn ChatModel + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info().fmt(out)
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {
        $(#[async_trait]
        impl<M: ChatModel + ?Sized> ChatModel for $pointer {
            fn info(&self) -> ModelInfo {
                (**self).info()
            }

            async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
                (**self).stream(request).await
            }

            async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
                (**self).count_tokens(request).await
            }
        })*
    };
}

forward!(&M, Box<M>, std::sync::Arc<M>);
