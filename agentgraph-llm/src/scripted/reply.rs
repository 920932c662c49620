//! The replies of a scripted model.

use crate::error::{Error, Result};
use crate::json::RawJson;
use crate::message::{Block, Message, MessageIds, Role, Thinking, ToolInput, ToolUse};
use crate::model::{ChatEvent, ChatResponse, StopReason, Usage};

/// One reply of a [`ScriptedModel`](crate::ScriptedModel).
///
/// ```
/// use agentgraph_llm::{Reply, Usage};
/// use serde_json::json;
///
/// let reply = Reply::text("Let me look.")
///     .and_tool_call("search", json!({"query": "tide"}))
///     .and_tool_call("search", json!({"query": "moon"}))
///     .with_usage(Usage::new(20, 5));
/// ```
#[derive(Debug)]
pub struct Reply(Kind);

#[derive(Debug)]
enum Kind {
    Blocks { blocks: Vec<Draft>, stop: Option<StopReason>, usage: Usage },
    Response(Box<ChatResponse>),
    Error(Error),
}

#[derive(Debug)]
enum Draft {
    Block(Block),
    /// Gets its call id when it is returned.
    Call {
        name: String,
        input: ToolInput,
    },
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Reply::block(Block::text(text))
    }

    /// A tool call. The ids are `call-1`, `call-2`, ... in the order of the calls.
    pub fn tool_call(name: impl Into<String>, input: impl Into<RawJson>) -> Self {
        Reply::empty().and_tool_call(name, input)
    }

    /// A tool call with arguments that may be invalid JSON.
    pub fn raw_tool_call(name: impl Into<String>, input: impl Into<String>) -> Self {
        Reply::empty().and_raw_tool_call(name, input)
    }

    /// A block.
    pub fn block(block: impl Into<Block>) -> Self {
        Reply::empty().and_block(block)
    }

    /// A block of thinking, before the rest.
    pub fn thinking(thinking: impl Into<String>, signature: impl Into<String>) -> Self {
        Reply::block(Thinking::new(thinking, Some(signature.into())))
    }

    /// This response, unchanged.
    pub fn response(response: ChatResponse) -> Self {
        Reply(Kind::Response(Box::new(response)))
    }

    /// An error.
    pub fn error(error: Error) -> Self {
        Reply(Kind::Error(error))
    }

    /// An empty message.
    pub fn empty() -> Self {
        Reply(Kind::Blocks { blocks: Vec::new(), stop: None, usage: Usage::default() })
    }

    /// Adds a text.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and_block(Block::text(text))
    }

    /// Adds a block.
    pub fn and_block(self, block: impl Into<Block>) -> Self {
        self.and(Draft::Block(block.into()))
    }

    /// Adds a tool call.
    pub fn and_tool_call(self, name: impl Into<String>, input: impl Into<RawJson>) -> Self {
        self.and(Draft::Call { name: name.into(), input: ToolInput::Json(input.into()) })
    }

    /// Adds a tool call with arguments that may be invalid JSON.
    pub fn and_raw_tool_call(self, name: impl Into<String>, input: impl Into<String>) -> Self {
        self.and(Draft::Call { name: name.into(), input: ToolInput::from_text(input) })
    }

    /// Sets the stop reason. The default is `tool_use` with a call, and `end_turn` without.
    pub fn with_stop(mut self, reason: StopReason) -> Self {
        match &mut self.0 {
            Kind::Blocks { stop, .. } => *stop = Some(reason),
            Kind::Response(response) => **response = response.as_ref().clone().with_stop(reason),
            Kind::Error(_) => {}
        }
        self
    }

    /// Sets the usage.
    pub fn with_usage(mut self, cost: Usage) -> Self {
        match &mut self.0 {
            Kind::Blocks { usage, .. } => *usage = cost,
            Kind::Response(response) => response.usage = cost,
            Kind::Error(_) => {}
        }
        self
    }

    fn and(mut self, draft: Draft) -> Self {
        match (&mut self.0, draft) {
            (Kind::Blocks { blocks, .. }, draft) => blocks.push(draft),
            (Kind::Response(response), Draft::Block(block)) => response.message.content.push(block),
            (Kind::Response(response), Draft::Call { name, input }) => {
                let id = format!("call-{}", response.message.content.len() + 1);
                response.message.content.push(call(id, name, input));
            }
            (Kind::Error(_), _) => {}
        }
        self
    }

    pub(super) fn into_response(
        self,
        model: &str,
        ids: &MessageIds,
        calls: &mut usize,
    ) -> Result<ChatResponse> {
        let (blocks, stop, usage) = match self.0 {
            Kind::Error(error) => return Err(error),
            Kind::Response(response) => return Ok(*response),
            Kind::Blocks { blocks, stop, usage } => (blocks, stop, usage),
        };
        let mut number = || {
            *calls += 1;
            format!("call-{calls}")
        };
        let content: Vec<_> = blocks.into_iter().map(|draft| draft.into_block(&mut number)).collect();
        let asks = content.iter().any(|block| block.as_tool_use().is_some());
        let stop = stop.unwrap_or(if asks { StopReason::ToolUse } else { StopReason::EndTurn });
        let id = ids.next_id();
        let message = Message::new(Role::Assistant, content).with_id(id.clone());
        Ok(ChatResponse::new(message, stop).with_usage(usage).with_model(model).with_response_id(id))
    }
}

impl Draft {
    fn into_block(self, number: &mut impl FnMut() -> String) -> Block {
        match self {
            Draft::Block(block) => block,
            Draft::Call { name, input } => call(number(), name, input),
        }
    }
}

fn call(id: String, name: String, input: ToolInput) -> Block {
    let mut call = ToolUse::new(id, name, RawJson::empty_object());
    call.input = input;
    call.into()
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::text(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Reply::text(text)
    }
}

impl From<ChatResponse> for Reply {
    fn from(response: ChatResponse) -> Self {
        Reply::response(response)
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Self {
        Reply::error(error)
    }
}

/// The reply as a provider would stream it: text word by word, arguments in small pieces.
pub(super) fn chunks(response: ChatResponse) -> Vec<ChatEvent> {
    let mut events = Vec::new();
    for (index, block) in response.message.content.iter().enumerate() {
        match block {
            Block::Text(block) => {
                let pieces = block.text.split_inclusive(' ').map(str::to_owned);
                events.extend(pieces.map(|text| ChatEvent::TextDelta { index, text }));
            }
            Block::Thinking(block) => {
                let pieces = block.thinking.split_inclusive(' ').map(str::to_owned);
                events.extend(pieces.map(|thinking| ChatEvent::ThinkingDelta { index, thinking }));
            }
            Block::ToolUse(call) => {
                events.push(ChatEvent::ToolUseStarted {
                    index,
                    id: call.id.clone(),
                    name: call.name.clone(),
                });
                let pieces = call.input.text().split_inclusive([',', ':']).map(str::to_owned);
                events.extend(pieces.map(|json| ChatEvent::ToolInputDelta { index, json }));
            }
            block => events.push(ChatEvent::Block { index, block: block.clone() }),
        }
    }
    events.push(ChatEvent::Finished(response));
    events
}
