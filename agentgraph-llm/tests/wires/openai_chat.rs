//! OpenAI's Chat Completions.

use std::sync::Arc;

use agentgraph_llm::Error;
use agentgraph_llm::openai::OpenAiChatModel;
use agentgraph_llm::prelude::*;
use serde_json::json;

use super::wire::{Failure, Settings, Wire, configured};

pub struct OpenAiChat;

fn event(choices: &str, usage: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"one-of-tests\",\
         \"choices\":{choices},\"usage\":{usage}}}\n\n"
    )
}

fn chunk(delta: &str, finish: &str) -> String {
    event(&format!("[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]"), "null")
}

fn events(deltas: impl Iterator<Item = String>, stop: &str) -> Vec<String> {
    let start = chunk("{\"role\":\"assistant\",\"content\":null,\"refusal\":null}", "null");
    let usage = "{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}";
    let end = [chunk("{}", stop), event("[]", usage), "data: [DONE]\n\n".to_owned()];
    [start].into_iter().chain(deltas.map(|delta| chunk(&delta, "null"))).chain(end).collect()
}

pub fn error(failure: Failure, message: &str) -> serde_json::Value {
    let (kind, code) = match failure {
        Failure::BadRequest => ("invalid_request_error", json!("unknown_parameter")),
        Failure::Auth => ("invalid_request_error", json!("invalid_api_key")),
        Failure::Permission => ("permission_error", json!(null)),
        Failure::NotFound => ("invalid_request_error", json!("model_not_found")),
        Failure::TooLarge => ("invalid_request_error", json!("context_length_exceeded")),
        Failure::RateLimited => ("tokens", json!("rate_limit_exceeded")),
        Failure::Money => ("insufficient_quota", json!("insufficient_quota")),
        Failure::Overloaded => ("server_error", json!("server_overloaded")),
        Failure::Server => ("server_error", json!(null)),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub const LIMITS: &str = concat!(
    "x-ratelimit-limit-requests: 50\r\nx-ratelimit-remaining-requests: 49\r\nx-ratelimit-reset-requests: 7s\r\n",
    "x-ratelimit-limit-tokens: 1000\r\nx-ratelimit-remaining-tokens: 900\r\n",
);

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        "OpenAI Chat Completions"
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn ChatModel>, Error> {
        Ok(Arc::new(configured!(OpenAiChatModel::builder(), settings).build()?))
    }

    fn key_line(&self, key: &str) -> String {
        format!("authorization: bearer {key}")
    }

    fn text(&self, pieces: &[String]) -> Vec<String> {
        events(pieces.iter().map(|piece| format!("{{\"content\":{piece}}}")), "\"stop\"")
    }

    fn call(&self, pieces: &[String]) -> Vec<String> {
        let start = "{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\
            \"function\":{\"name\":\"find\",\"arguments\":\"\"}}]}";
        let deltas = pieces.iter().map(|piece| {
            format!("{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":{piece}}}}}]}}")
        });
        events([start.to_owned()].into_iter().chain(deltas), "\"tool_calls\"")
    }

    fn hidden(&self) -> usize {
        1
    }

    fn whole(&self, text: &str) -> String {
        json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "one-of-tests",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null},
                "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
        .to_string()
    }

    fn ping(&self) -> Option<&'static str> {
        None
    }

    fn error_body(&self, failure: Failure, message: &str) -> String {
        error(failure, message).to_string()
    }

    fn error_event(&self, failure: Failure, message: &str) -> String {
        format!("data: {}\n\n", self.error_body(failure, message))
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
