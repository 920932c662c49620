//! A response as a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::{self, Stream, StreamExt};
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::message::{Block, Role};
use crate::model::end::with_partial;
use crate::model::{ChatResponse, listening};

/// A piece of a response. `index` is the position of its block in the message; the pieces of a block are in
/// order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
// Only the last event of a stream is large.
#[allow(clippy::large_enum_variant)]
pub enum ChatEvent {
    /// More text.
    TextDelta {
        /// The position of the block.
        index: usize,
        /// The piece.
        text: String,
    },
    /// More thinking.
    ThinkingDelta {
        /// The position of the block.
        index: usize,
        /// The piece.
        thinking: String,
    },
    /// The start of a tool call.
    ToolUseStarted {
        /// The position of the block.
        index: usize,
        /// The call's id.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More of the arguments of a call: a piece of JSON text.
    ToolInputDelta {
        /// The position of the block.
        index: usize,
        /// The piece.
        json: String,
    },
    /// A block that came as a whole, such as an image or a block without a name here.
    Block {
        /// The position of the block.
        index: usize,
        /// The block.
        block: Block,
    },
    /// The response begins again, by a retry or another model: the pieces so far do not belong to it.
    // A variant without braces would be a text in the events of a run.
    Restarted {},
    /// The whole response: exactly one, and the last event.
    Finished(ChatResponse),
}

/// A stream of [`ChatEvent`]s that ends with exactly one [`ChatEvent::Finished`] or one error. A source that
/// ends earlier gives `E_LLM_TRUNCATED`.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use futures_util::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new(["hello"]);
/// let mut stream = model.stream(ChatRequest::user("hi")).await?;
/// let mut text = String::new();
/// while let Some(event) = stream.next().await {
///     match event? {
///         ChatEvent::TextDelta { text: piece, .. } => text += &piece,
///         ChatEvent::Finished(response) => assert_eq!(response.message.text(), text),
///         _ => {}
///     }
/// }
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
pub struct ChatStream {
    events: Option<Pin<Box<dyn Stream<Item = Result<ChatEvent>> + Send>>>,
}

impl ChatStream {
    /// A stream of these events.
    pub fn new(events: impl Stream<Item = Result<ChatEvent>> + Send + 'static) -> Self {
        ChatStream { events: Some(Box::pin(events)) }
    }

    /// A whole response as a short series of events.
    pub fn from_response(response: ChatResponse) -> Self {
        ChatStream::new(stream::iter(events_of(&response).into_iter().map(Ok)))
    }

    /// Changes the response at the end of the stream.
    pub fn map_response(self, change: impl FnOnce(ChatResponse) -> ChatResponse + Send + 'static) -> Self {
        let mut change = Some(change);
        ChatStream::new(self.map(move |event| match (event?, change.take()) {
            (ChatEvent::Finished(response), Some(change)) => Ok(ChatEvent::Finished(change(response))),
            (event, unused) => {
                change = unused;
                Ok(event)
            }
        }))
    }

    /// Waits for the whole response.
    ///
    /// # Errors
    /// The stream's error, or `E_LLM_TRUNCATED` if its last event was read before.
    pub async fn into_response(mut self) -> Result<ChatResponse> {
        while let Some(event) = self.next().await {
            if let ChatEvent::Finished(response) = event? {
                return Ok(response);
            }
        }
        Err(truncated())
    }
}

impl Stream for ChatStream {
    type Item = Result<ChatEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(events) = self.events.as_mut() else {
            return Poll::Ready(None);
        };
        let mut item = ready!(listening::poll_event(context, |context| {
            events.as_mut().poll_next(context).map(|item| item.unwrap_or_else(|| Err(truncated())))
        }));
        if let Ok(ChatEvent::Finished(response)) = &item
            && response.message.role != Role::Assistant
        {
            item = Err(not_an_answer(response));
        }
        if matches!(item, Ok(ChatEvent::Finished(_)) | Err(_)) {
            self.events = None;
        }
        Poll::Ready(Some(item))
    }
}

impl fmt::Debug for ChatStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ChatStream").field("ended", &self.events.is_none()).finish()
    }
}

/// A whole response as a short series of events.
pub(crate) fn events_of(response: &ChatResponse) -> Vec<ChatEvent> {
    let mut events: Vec<_> = response.message.content.iter().enumerate().flat_map(block_events).collect();
    events.push(ChatEvent::Finished(response.clone()));
    events
}

fn block_events((index, block): (usize, &Block)) -> Vec<ChatEvent> {
    match block {
        Block::Text(block) => vec![ChatEvent::TextDelta { index, text: block.text.clone() }],
        Block::Thinking(block) => vec![ChatEvent::ThinkingDelta { index, thinking: block.thinking.clone() }],
        Block::ToolUse(call) => vec![
            ChatEvent::ToolUseStarted { index, id: call.id.clone(), name: call.name.clone() },
            ChatEvent::ToolInputDelta { index, json: call.input.text().to_owned() },
        ],
        block => vec![ChatEvent::Block { index, block: block.clone() }],
    }
}

/// An agent would take a message of another role for its end, and not run its calls.
fn not_an_answer(response: &ChatResponse) -> Error {
    let role = response.message.role;
    let problem =
        format!("the model answered with a message of the role `{role:?}`: that of an answer is `Assistant`");
    with_partial(Error::new(Code::Decode, problem), response.clone())
}

pub(crate) fn truncated() -> Error {
    Error::new(
        Code::Truncated,
        "the answer's stream ended before its last event; ask again, or read what came as partial",
    )
}
