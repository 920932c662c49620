//! The pieces of a model's answer as LangChain's message chunks, each with the id that the message will have.

use std::collections::BTreeMap;

use agentgraph_llm::{Block, ChatEvent, Message, Usage};
use serde_json::{Value, json};
use uuid::Uuid;

use super::blocks::block_to;
use super::messages_to;

/// The answers that models are writing, by the task that asked.
#[derive(Default)]
pub(crate) struct Chunks {
    open: BTreeMap<String, Answer>,
}

struct Answer {
    id: String,
    /// What has come so far, for clients that want the whole message each time.
    text: String,
    /// The positions of tool calls among the calls, by the index of their block.
    calls: BTreeMap<usize, usize>,
    whole: Vec<Value>,
}

/// A piece, and the message as far as it is known.
pub(crate) struct Chunk {
    pub(crate) piece: Value,
    pub(crate) so_far: Value,
    pub(crate) id: String,
    /// Whether it is the first piece of its message.
    pub(crate) is_first: bool,
    /// The id of the finished message in the state, which then is shown with the id of the pieces.
    pub(crate) finished: Option<String>,
}

impl Chunks {
    /// Takes a piece that a node has sent; `None` if it shows nothing. A piece that is no event of a model is
    /// a text, or a message in LangChain's shape.
    pub(crate) fn take(&mut self, task: &str, piece: &Value) -> Option<Chunk> {
        let is_first = !self.open.contains_key(task);
        let answer = self.open.entry(task.to_owned()).or_insert_with(Answer::new);
        let event = match piece {
            Value::String(text) => ChatEvent::TextDelta { index: 0, text: text.clone() },
            other => match serde_json::from_value(other.clone()) {
                Ok(event) => event,
                Err(_) => {
                    let text = agentgraph::run::text_of_piece(other)?.to_owned();
                    ChatEvent::TextDelta { index: 0, text }
                }
            },
        };
        if let ChatEvent::Finished(response) = &event {
            let answer = self.open.remove(task)?;
            return Some(answer.finished(&response.message, &response.usage, is_first));
        }
        if let ChatEvent::Restarted {} = &event {
            // A client cannot take pieces back, so the answer that begins again is another message.
            self.open.remove(task);
            return None;
        }
        let piece = answer.add(event)?;
        let so_far = answer.so_far();
        Some(Chunk { piece, so_far, id: answer.id.clone(), is_first, finished: None })
    }
}

impl Answer {
    fn new() -> Self {
        let id = format!("lc_run--{}", Uuid::new_v4());
        Answer { id, text: String::new(), calls: BTreeMap::new(), whole: Vec::new() }
    }

    fn chunk(&self, content: Value, calls: Value) -> Value {
        json!({
            "type": "AIMessageChunk", "id": self.id, "name": null, "content": content,
            "additional_kwargs": {}, "response_metadata": {}, "tool_calls": [], "invalid_tool_calls": [],
            "usage_metadata": null, "tool_call_chunks": calls,
        })
    }

    fn add(&mut self, event: ChatEvent) -> Option<Value> {
        let next = self.calls.len();
        Some(match event {
            ChatEvent::TextDelta { text, .. } => {
                self.text += &text;
                self.chunk(text.into(), json!([]))
            }
            ChatEvent::ThinkingDelta { index, thinking } => {
                let block = json!({ "type": "thinking", "thinking": thinking, "index": index });
                self.chunk(json!([block]), json!([]))
            }
            ChatEvent::ToolUseStarted { index, id, name } => {
                let at = *self.calls.entry(index).or_insert(next);
                self.whole.push(json!({ "type": "tool_call", "id": id, "name": name, "args": {} }));
                let call = json!({
                    "type": "tool_call_chunk", "index": at, "id": id, "name": name, "args": "",
                });
                self.chunk("".into(), json!([call]))
            }
            ChatEvent::ToolInputDelta { index, json: piece } => {
                let at = *self.calls.entry(index).or_insert(next);
                let call = json!({
                    "type": "tool_call_chunk", "index": at, "id": null, "name": null, "args": piece,
                });
                self.chunk("".into(), json!([call]))
            }
            ChatEvent::Block { block, .. } => match block {
                Block::Text(_) | Block::ToolUse(_) | Block::ToolResult(_) => return None,
                block => self.chunk(json!([block_to(&block)]), json!([])),
            },
            _ => return None,
        })
    }

    fn so_far(&self) -> Value {
        let mut message = self.chunk(self.text.clone().into(), json!([]));
        message["type"] = "ai".into();
        message["tool_calls"] = self.whole.clone().into();
        message.as_object_mut().map(|fields| fields.remove("tool_call_chunks"));
        message
    }

    /// The last, empty piece, which says that no more follows.
    fn finished(&self, message: &Message, usage: &Usage, is_first: bool) -> Chunk {
        let mut so_far = messages_to(message).pop().unwrap_or_default();
        so_far["id"] = self.id.clone().into();
        so_far["usage_metadata"] = usage_to(usage);
        // A model that does not stream sends its answer in one piece.
        let mut piece = if is_first { so_far.clone() } else { self.chunk("".into(), json!([])) };
        piece["chunk_position"] = "last".into();
        piece["usage_metadata"] = so_far["usage_metadata"].clone();
        Chunk { piece, so_far, id: self.id.clone(), is_first, finished: Some(message.id.clone()) }
    }
}

/// What an answer cost; null if its model does not say.
fn usage_to(usage: &Usage) -> Value {
    if *usage == Usage::default() {
        return Value::Null;
    }
    json!({
        "input_tokens": usage.input_total, "output_tokens": usage.output_total, "total_tokens": usage.total(),
        "input_token_details": {
            "cache_read": usage.input_cached_read, "cache_creation": usage.input_cache_write,
        },
        "output_token_details": { "reasoning": usage.output_reasoning },
    })
}
