//! OpenAI's Responses API.

use std::sync::Arc;

use agentgraph_llm::Error;
use agentgraph_llm::openai::OpenAiModel;
use agentgraph_llm::prelude::*;
use serde_json::{Value, json};

use super::openai_chat::{LIMITS, error};
use super::wire::{Failure, Settings, Wire, configured};

pub struct OpenAiResponses;

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

fn response(status: &str, output: &Value) -> Value {
    let usage = json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
    json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "one-of-tests", "status": status,
        "output": output, "usage": if status == "completed" { usage } else { Value::Null },
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": []})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// The ends of items are left out, because the pieces may be no texts.
fn events(item: &Value, deltas: impl Iterator<Item = String>) -> Vec<String> {
    let created = json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", &json!([]))});
    let added =
        json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item});
    let completed = json!({"type": "response.completed", "sequence_number": 9, "response": response("completed", &json!([]))});
    let start = [event(&created), event(&added)].into_iter();
    start.chain(deltas).chain([event(&completed)]).collect()
}

fn delta<'a>(kind: &'a str, id: &'a str, more: &'a str) -> impl Fn(&String) -> String + 'a {
    move |piece| {
        format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":2,\"item_id\":\"{id}\",\"output_index\":0,\
             {more}\"delta\":{piece}}}\n\n"
        )
    }
}

impl Wire for OpenAiResponses {
    fn name(&self) -> &'static str {
        "OpenAI Responses"
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn ChatModel>, Error> {
        Ok(Arc::new(configured!(OpenAiModel::builder(), settings).build()?))
    }

    fn key_line(&self, key: &str) -> String {
        format!("authorization: bearer {key}")
    }

    fn text(&self, pieces: &[String]) -> Vec<String> {
        let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
        events(
            &item,
            pieces.iter().map(delta(
                "response.output_text.delta",
                "msg_1",
                "\"content_index\":0,\"logprobs\":[],",
            )),
        )
    }

    fn call(&self, pieces: &[String]) -> Vec<String> {
        let item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": "",
            "status": "in_progress"});
        events(&item, pieces.iter().map(delta("response.function_call_arguments.delta", "fc_1", "")))
    }

    fn hidden(&self) -> usize {
        2
    }

    fn whole(&self, text: &str) -> String {
        response("completed", &json!([message(text)])).to_string()
    }

    fn ping(&self) -> Option<&'static str> {
        Some("event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":3}\n\n")
    }

    fn error_body(&self, failure: Failure, message: &str) -> String {
        error(failure, message).to_string()
    }

    fn error_event(&self, failure: Failure, message: &str) -> String {
        let error = error(failure, message);
        let mut fields = error["error"].clone();
        // The event has no place for the type of the error.
        if fields["code"].is_null() {
            fields["code"] = fields["type"].take();
        }
        fields["type"] = json!("error");
        event(&fields)
    }

    fn overloaded_status(&self) -> u16 {
        503
    }

    fn request_id(&self) -> &'static str {
        "x-request-id"
    }

    fn limits(&self) -> Option<&'static str> {
        Some(LIMITS)
    }
}
