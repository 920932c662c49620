//! The contract of a chat model: a request goes in, a response comes out, whole or as a stream.

mod request;
mod response;
pub(crate) mod stream;

use async_trait::async_trait;

use crate::error::Result;
use crate::listening;

pub use request::{ChatRequest, ToolChoice};
pub use response::{ChatResponse, StopReason, Usage};
pub use stream::{ChatEvent, ChatStream};

/// A chat model.
///
/// Within a node of a graph, the output of a model appears in the run's
/// [messages](agentgraph::View::Messages) without any code in the node: piece by piece if the response is
/// read as a stream, and at its end otherwise.
///
/// The trait is object-safe: a graph takes an `Arc<dyn ChatModel>` and does not depend on the provider.
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

    /// Requests one assistant message.
    ///
    /// # Errors
    /// The error of the provider or of the connection, after the model's own retries.
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse>;

    /// Requests one assistant message as a stream. The default calls [`chat`](Self::chat) and returns its
    /// response as a short series of events.
    ///
    /// # Errors
    /// As [`chat`](Self::chat). Errors after the start of the stream are its last item.
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
