//! Messages as clients send them: plain, with a role, serialised by LangChain's constructors, as a pair, a
//! text.

use agentgraph_llm::message::{ToolInput, ToolResult, ToolUse};
use agentgraph_llm::{Block, Message, Origin, Role};
use serde_json::{Value, json};
use uuid::Uuid;

use super::blocks::content_from;
use super::{base_of, extra_from};

/// Whether a value may be a message in LangChain's shape.
pub(crate) fn is_message_like(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("lc").is_some_and(Value::is_number)
                || fields.get("type").or_else(|| fields.get("role")).is_some_and(Value::is_string)
        }
        Value::Array(pair) => pair.len() == 2 && pair.iter().all(Value::is_string),
        Value::String(_) => true,
        _ => false,
    }
}

/// The messages in our stored form, `{"Remove": id}` for a removal; `None` if one of them is no message.
pub(crate) fn messages_from(values: &[Value]) -> Option<Vec<Value>> {
    let mut made: Vec<Value> = Vec::new();
    // Results of tools that follow each other belong in one message, and so does what has their id.
    let mut open: Option<(String, Message)> = None;
    for value in values {
        let value = plain(value)?;
        if value["type"] == "remove" {
            made.extend(open.take().map(|(_, message)| json!(message)));
            made.push(json!({ "Remove": value["id"].as_str()? }));
            continue;
        }
        let message = message_from(&value)?;
        let base = base_of(&message.id).map(str::to_owned);
        match &mut open {
            Some((id, before)) if base.as_deref() == Some(id) || *id == message.id => {
                before.content.extend(message.content.iter().cloned());
                continue;
            }
            _ => made.extend(open.take().map(|(_, message)| json!(message))),
        }
        match base {
            Some(base) => open = Some((base.clone(), message.with_id(base))),
            None => made.push(json!(message)),
        }
    }
    made.extend(open.map(|(_, message)| json!(message)));
    Some(made)
}

/// Undoes the forms that are only another way to write a message.
fn plain(value: &Value) -> Option<Value> {
    Some(match value {
        Value::String(text) => json!({ "type": "human", "content": text }),
        Value::Array(pair) if pair.len() == 2 => json!({ "type": pair[0], "content": pair[1] }),
        Value::Object(fields) if fields.contains_key("lc") => {
            let class = fields.get("id")?.as_array()?.last()?.as_str()?;
            let kind = match class.trim_end_matches("Chunk") {
                "HumanMessage" => "human",
                "AIMessage" => "ai",
                "SystemMessage" => "system",
                "ToolMessage" => "tool",
                "RemoveMessage" => "remove",
                _ => return None,
            };
            let mut message = fields.get("kwargs")?.clone();
            message.as_object_mut()?.insert("type".to_owned(), kind.into());
            message
        }
        Value::Object(_) => value.clone(),
        _ => return None,
    })
}

fn message_from(value: &Value) -> Option<Message> {
    let fields = value.as_object()?;
    let kind = value["type"].as_str().filter(|kind| *kind != "message").or_else(|| value["role"].as_str())?;
    let role = match kind {
        "human" | "user" | "HumanMessageChunk" => Role::User,
        "ai" | "assistant" | "AIMessageChunk" => Role::Assistant,
        "system" | "developer" | "SystemMessageChunk" => Role::System,
        "tool" | "ToolMessageChunk" => Role::User,
        _ => return None,
    };
    let id = value["id"].as_str().map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
    let mut content = content_from(value.get("content").unwrap_or(&Value::Null))?;
    if kind.starts_with("tool") || kind.starts_with("Tool") {
        let mut result = ToolResult::new(value["tool_call_id"].as_str()?, content);
        result.is_error = value["status"] == "error";
        result.artifact = fields.get("artifact").filter(|one| !one.is_null()).map(|one| one.clone().into());
        if let Some(kwargs) = value["additional_kwargs"].as_object() {
            result.extra = extra_from(kwargs, &[]);
        }
        return Some(Message::new(role, [result]).with_id(id));
    }
    if role == Role::Assistant {
        add_calls(value, &mut content);
    }
    let mut message = Message::new(role, content).with_id(id);
    message.is_incomplete = value["additional_kwargs"]["is_incomplete"] == true;
    let about = &value["response_metadata"];
    if let (Some(provider), Some(model)) = (about["model_provider"].as_str(), about["model_name"].as_str()) {
        message.origin = Some(Origin::new(provider, model));
    }
    Some(message)
}

/// Adds the calls that have no block among the content.
fn add_calls(value: &Value, content: &mut Vec<Block>) {
    let is_there = |content: &[Block], id: &str| {
        content.iter().filter_map(Block::as_tool_use).any(|call: &ToolUse| call.id == id)
    };
    let listed = |name: &str| value[name].as_array().cloned().unwrap_or_default();
    for call in listed("tool_calls").into_iter().chain(listed("invalid_tool_calls")) {
        let id = call["id"].as_str().map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        if is_there(content, &id) {
            continue;
        }
        let mut made = ToolUse::new(id, call["name"].as_str().unwrap_or_default(), call["args"].clone());
        if call["type"] == "invalid_tool_call" {
            made.input = ToolInput::from_text(call["args"].as_str().unwrap_or_default());
        }
        content.push(made.into());
    }
}
