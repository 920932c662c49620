//! [`MessageParts`]: a message as the parts in which it is sent: its start, blocks that grow, its end.

use serde_json::{Value, json};

use crate::messages::Chunk;

/// A message that is being sent.
pub(super) struct MessageParts {
    pub(super) id: String,
    /// Its blocks as far as they are known. A tool call grows as the text of its arguments.
    blocks: Vec<Value>,
    told: Vec<Value>,
}

impl MessageParts {
    pub(super) fn begin(id: &str, node: &str) -> Self {
        let mut parts = MessageParts { id: id.to_owned(), blocks: Vec::new(), told: Vec::new() };
        let metadata = json!({ "langgraph_node": node });
        parts.tell(json!({ "event": "message-start", "role": "ai", "id": id, "metadata": metadata }));
        parts
    }

    /// What was not taken yet.
    pub(super) fn take_told(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.told)
    }

    /// Clients know by these names which of several messages a part belongs to.
    fn tell(&mut self, mut part: Value) {
        part["message_id"] = self.id.clone().into();
        if let Some(run) = self.id.strip_prefix("lc_run--") {
            part["run_id"] = run.into();
        }
        self.told.push(part);
    }

    /// A piece of a model's answer; the last one ends the message.
    pub(super) fn add(&mut self, chunk: &Chunk) {
        if chunk.finished.is_some() {
            if self.blocks.is_empty() {
                self.add_whole(&chunk.so_far);
            }
            return self.finish(&chunk.so_far["usage_metadata"]);
        }
        match &chunk.piece["content"] {
            Value::String(text) if !text.is_empty() => self.grow("text", "text", text),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.add_block(block)),
            _ => {}
        }
        for call in chunk.piece["tool_call_chunks"].as_array().into_iter().flatten() {
            self.add_call(call);
        }
    }

    /// A message that is there at once.
    pub(super) fn add_whole(&mut self, message: &Value) {
        match &message["content"] {
            Value::String(text) if !text.is_empty() => self.grow("text", "text", text),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.add_block(block)),
            _ => {}
        }
        for calls in ["tool_calls", "invalid_tool_calls"] {
            for call in message[calls].as_array().into_iter().flatten() {
                self.start(call.clone());
            }
        }
    }

    fn add_block(&mut self, block: &Value) {
        match block["type"].as_str() {
            Some("text") => self.grow("text", "text", block["text"].as_str().unwrap_or_default()),
            Some("thinking") => {
                self.grow("reasoning", "reasoning", block["thinking"].as_str().unwrap_or_default());
            }
            // Calls are among `tool_calls`, too.
            Some("tool_use" | "invalid_tool_call") => {}
            Some("image" | "audio" | "video" | "file") => self.start(block.clone()),
            _ => self.start(json!({ "type": "non_standard", "value": block })),
        }
    }

    fn start(&mut self, block: Value) {
        let index = self.blocks.len();
        self.tell(json!({ "event": "content-block-start", "index": index, "content": block }));
        self.blocks.push(block);
    }

    /// Adds to the last block, or begins one.
    fn grow(&mut self, kind: &str, field: &str, text: &str) {
        if self.blocks.last().is_none_or(|block| block["type"] != kind) {
            self.start(json!({ "type": kind, field: "" }));
        }
        let index = self.blocks.len() - 1;
        if let Some(Value::String(known)) = self.blocks[index].get_mut(field) {
            known.push_str(text);
        }
        let delta = json!({ "type": format!("{kind}-delta"), field: text });
        self.tell(json!({ "event": "content-block-delta", "index": index, "delta": delta }));
    }

    fn add_call(&mut self, call: &Value) {
        const KIND: &str = "tool_call_chunk";
        let is_same = |block: &Value| block["type"] == KIND && block["index"] == call["index"];
        let Some(index) = self.blocks.iter().position(is_same) else {
            return self.start(json!({
                "type": KIND, "id": call["id"], "name": call["name"], "args": call["args"],
                "index": call["index"],
            }));
        };
        if let Some(Value::String(known)) = self.blocks[index].get_mut("args") {
            known.push_str(call["args"].as_str().unwrap_or_default());
        }
        // The whole text so far: clients before 1.12 know no delta of arguments.
        let delta = json!({ "type": "block-delta", "fields": self.blocks[index] });
        self.tell(json!({ "event": "content-block-delta", "index": index, "delta": delta }));
    }

    /// Ends the message, with what it cost unless that is null.
    pub(super) fn finish(&mut self, usage: &Value) {
        for (index, block) in std::mem::take(&mut self.blocks).into_iter().enumerate() {
            let content = finished(block);
            self.tell(json!({ "event": "content-block-finish", "index": index, "content": content }));
        }
        let mut end = json!({ "event": "message-finish" });
        if !usage.is_null() {
            end["usage"] = usage.clone();
        }
        self.tell(end);
    }

    /// Ends a message that does not come to its end.
    pub(super) fn fail(&mut self, why: &str) {
        self.tell(json!({ "event": "error", "message": why }));
    }
}

fn finished(block: Value) -> Value {
    if block["type"] != "tool_call_chunk" {
        return block;
    }
    let (id, name) = (&block["id"], &block["name"]);
    let text = block["args"].as_str().unwrap_or_default();
    match serde_json::from_str(if text.is_empty() { "{}" } else { text }) {
        Ok(Value::Object(args)) => json!({ "type": "tool_call", "id": id, "name": name, "args": args }),
        _ => json!({
            "type": "invalid_tool_call", "id": id, "name": name, "args": text,
            "error": "the arguments are no JSON object",
        }),
    }
}
