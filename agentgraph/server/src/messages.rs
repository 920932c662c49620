//! Messages of `agentgraph-llm` in LangChain's shape, in both directions.
//!
//! One table: a role and its blocks on our side, a `type` and its content on the other. It knows nothing of
//! graphs or HTTP. A message that holds several results of tools is several `tool` messages there; their ids
//! are that of ours with `~1`, `~2`, .., by which they are joined again.
//!
//! | ours | LangChain's |
//! |---|---|
//! | system, user, assistant | `system`, `human`, `ai` |
//! | a user's tool results | `tool`, one for each |
//! | one text block | a string; other blocks are a list |
//! | tool calls | `tool_calls`, and `tool_use` blocks if their order among others matters |

mod blocks;
mod chunks;
#[cfg(test)]
mod laws;
mod read;

pub(crate) use chunks::{Chunk, Chunks};
pub(crate) use read::{is_message_like, messages_from};

use agentgraph_llm::message::MessageFields;
use agentgraph_llm::{Block, Extra, Message, Role};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use blocks::{block_to, content_to, extra_to, tool_call_to};

/// A message in LangChain's shape: several for a message with several results of tools.
pub(crate) fn messages_to(message: &Message) -> Vec<Value> {
    let results = message.results().count();
    if message.role != Role::User || results == 0 {
        return vec![one_to(message, &message.id, message.content.iter())];
    }
    let rest: Vec<&Block> = message.content.iter().filter(|block| block.as_tool_result().is_none()).collect();
    let is_alone = results == 1 && rest.is_empty();
    let mut shown = Vec::new();
    for (at, result) in message.results().enumerate() {
        let id = if is_alone { message.id.clone() } else { format!("{}~{}", message.id, at + 1) };
        let mut kwargs = extra_to(&result.extra);
        kwargs.retain(|_, value| !value.is_null());
        shown.push(json!({
            "type": "tool", "id": id, "name": null, "tool_call_id": result.tool_use_id,
            "content": content_to(result.content.iter()),
            "status": if result.is_error { "error" } else { "success" },
            "artifact": result.artifact.as_ref().and_then(|artifact| artifact.parse::<Value>().ok()),
            "additional_kwargs": kwargs, "response_metadata": {},
        }));
    }
    if !rest.is_empty() {
        shown.push(one_to(message, &message.id, rest.into_iter()));
    }
    shown
}

fn one_to<'a>(message: &MessageFields, id: &str, content: impl Iterator<Item = &'a Block> + Clone) -> Value {
    let kind = match message.role {
        Role::System => "system",
        Role::Assistant => "ai",
        _ => "human",
    };
    let mut shown = json!({
        "type": kind, "id": id, "name": null, "additional_kwargs": {}, "response_metadata": {},
    });
    if let Some(origin) = &message.origin {
        shown["response_metadata"] = json!({ "model_provider": origin.provider, "model_name": origin.model });
    }
    if message.is_incomplete {
        shown["additional_kwargs"]["is_incomplete"] = true.into();
    }
    if message.role != Role::Assistant {
        shown["content"] = content_to(content);
        return shown;
    }
    let calls: Vec<_> = content.clone().filter_map(Block::as_tool_use).collect();
    let (invalid, valid): (Vec<_>, Vec<_>) =
        calls.into_iter().map(tool_call_to).partition(|call| call["type"] == "invalid_tool_call");
    shown["tool_calls"] = valid.into();
    shown["invalid_tool_calls"] = invalid.into();
    shown["usage_metadata"] = Value::Null;
    // Calls after the text need no block: their order is that of `tool_calls`.
    let texts = content.clone().take_while(|block| block.as_tool_use().is_none()).count();
    let is_plain = content.clone().skip(texts).all(is_plain_call)
        && content.clone().take(texts).all(|block| block.as_tool_use().is_none());
    shown["content"] =
        if is_plain { content_to(content.take(texts)) } else { content.map(block_to).collect() };
    shown
}

fn is_plain_call(block: &Block) -> bool {
    block.as_tool_use().is_some_and(|call| {
        call.extra.is_empty() && call.input.json().is_some_and(agentgraph_llm::RawJson::is_object)
    })
}

/// Replaces the messages in a JSON value that a graph has made, at any depth.
pub(crate) fn shown(mut value: Value) -> Value {
    if let Some(message) = as_message(&value) {
        let mut messages = messages_to(&message);
        return if messages.len() == 1 { messages.remove(0) } else { messages.into() };
    }
    match &mut value {
        Value::Array(items) => {
            let mut shown_items = Vec::with_capacity(items.len());
            for item in items.drain(..) {
                match as_message(&item) {
                    Some(message) => shown_items.extend(messages_to(&message)),
                    None => shown_items.push(shown(item)),
                }
            }
            *items = shown_items;
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| *field = shown(field.take())),
        _ => {}
    }
    value
}

/// The message that a value is in our stored form. Nothing else has these five fields and such a role.
fn as_message(value: &Value) -> Option<Message> {
    let fields = value.as_object()?;
    let known = ["id", "role", "content", "origin", "is_incomplete"];
    let has = |name: &str| fields.contains_key(name);
    if !(has("id") && has("role") && has("content")) || fields.keys().any(|name| !known.contains(&&**name)) {
        return None;
    }
    Message::deserialize(value).ok()
}

/// The part of an id that several messages of LangChain share.
fn base_of(id: &str) -> Option<&str> {
    let (base, number) = id.rsplit_once('~')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(base)
}

/// Fields of a block or message that have no name on our side.
fn extra_from(fields: &Map<String, Value>, known: &[&str]) -> Extra {
    let mut extra = Extra::new();
    for (name, value) in fields.iter().filter(|(name, value)| !known.contains(&&***name) && !value.is_null())
    {
        extra.insert(name.clone(), value.clone());
    }
    extra
}
