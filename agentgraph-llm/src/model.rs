//! The contract of a chat model: a request in, a message out, whole or as a stream.

mod request;
mod response;
pub(crate) mod stream;

use async_trait::async_trait;

use crate::error::Result;
use crate::listening;

pub use request::{ChatRequest, ToolChoice};
pub use response::{ChatResponse, StopReason, Usage};
pub use stream::{ChatEvent, ChatStream};

/// A chat model. Within a node of a graph, what it says shows in the run's
/// [messages](agentgraph::View::Messages) without the node doing anything: piece by piece where it is read as
/// a stream, and at its end otherwise.
///
/// Object-safe: a graph takes an `Arc<dyn ChatModel>` and does not know whose model it is.
///
/// ```
/// use agentgraph_llm::StopReason;
/// use agentgraph_llm::prelude::*;
///
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl ChatModel for Echo {
///     fn name(&self) -> &str {
///         "echo"
///     }
///
///     async fn chat(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatResponse> {
///         let last = request.messages.last().map(Message::text).unwrap_or_default();
///         Ok(ChatResponse::new(Message::assistant(last), StopReason::EndTurn))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model: std::sync::Arc<dyn ChatModel> = std::sync::Arc::new(Echo);
/// let response = model.stream(ChatRequest::user("hello")).await?.into_response().await?;
/// assert_eq!(response.message.text(), "hello");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// The model's name, for logs and traces.
    fn name(&self) -> &str;

    /// Asks for one assistant message.
    ///
    /// # Errors
    /// What the provider or the way to it failed with, after the model's own retries.
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse>;

    /// Asks for one assistant message, piece by piece. The default gives the whole answer of
    /// [`chat`](Self::chat) as a short series of events.
    ///
    /// # Errors
    /// As [`chat`](Self::chat); once the stream is there, errors come as its last item.
    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        Ok(ChatStream::from_response(self.chat(request).await?))
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {
        $(#[async_trait]
        impl<M: ChatModel + ?Sized> ChatModel for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            async fn chat(&self, request: ChatRequest) -> Result<ChatResponse> {
                listening::report_whole((**self).chat(request)).await
            }

            async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
                (**self).stream(request).await
            }
        })*
    };
}

forward!(&M, Box<M>, std::sync::Arc<M>);
