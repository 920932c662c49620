//! Anthropic's Messages API.

use std::sync::Arc;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{AnthropicModel, Error};
use serde_json::json;

use super::wire::{Failure, Settings, Wire, configured};

pub struct AnthropicMessages;

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
    \"role\":\"assistant\",\"content\":[],\"model\":\"one-of-tests\",\"stop_reason\":null,\
    \"usage\":{\"input_tokens\":3,\"output_tokens\":1,\"service_tier\":\"standard\"}}}\n\n";

impl AnthropicMessages {
    fn events(block: &str, deltas: impl Iterator<Item = String>, stop: &str) -> Vec<String> {
        let start = format!(
            "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{block}}}\n\n"
        );
        let deltas = deltas.map(|delta| {
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{delta}}}\n\n"
            )
        });
        let end = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
        let update = format!(
            "event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{stop}\"}},\"usage\":{{\"output_tokens\":2}}}}\n\n"
        );
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        let head = [START.to_owned(), start].into_iter();
        head.chain(deltas).chain([end.to_owned(), update, stop.to_owned()]).collect()
    }
}

impl Wire for AnthropicMessages {
    fn name(&self) -> &'static str {
        "Anthropic Messages"
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn ChatModel>, Error> {
        Ok(Arc::new(configured!(AnthropicModel::builder(), settings).build()?))
    }

    fn key_line(&self, key: &str) -> String {
        format!("authorization: bearer {key}")
    }

    fn text(&self, pieces: &[String]) -> Vec<String> {
        let deltas = pieces.iter().map(|piece| format!("{{\"type\":\"text_delta\",\"text\":{piece}}}"));
        AnthropicMessages::events("{\"type\":\"text\",\"text\":\"\"}", deltas, "end_turn")
    }

    fn call(&self, pieces: &[String]) -> Vec<String> {
        let deltas =
            pieces.iter().map(|piece| format!("{{\"type\":\"input_json_delta\",\"partial_json\":{piece}}}"));
        let block = "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"find\",\"input\":{}}";
        AnthropicMessages::events(block, deltas, "tool_use")
    }

    fn hidden(&self) -> usize {
        2
    }

    fn whole(&self, text: &str) -> String {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "one-of-tests", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 3, "output_tokens": 2,
            "service_tier": "standard"}})
        .to_string()
    }

    fn ping(&self) -> Option<&'static str> {
        Some("event: ping\ndata: {\"type\": \"ping\"}\n\n")
    }

    fn error_body(&self, failure: Failure, message: &str) -> String {
        let kind = match failure {
            Failure::BadRequest => "invalid_request_error",
            Failure::Auth => "authentication_error",
            Failure::Permission => "permission_error",
            Failure::NotFound => "not_found_error",
            Failure::TooLarge => "request_too_large",
            Failure::RateLimited | Failure::Money => "rate_limit_error",
            Failure::Overloaded => "overloaded_error",
            Failure::Server => "api_error",
        };
        let mut error = json!({"type": kind, "message": message});
        if failure == Failure::Money {
            error["details"] = json!({"error_code": "enforced_spend_limit_reached"});
        }
        json!({"type": "error", "error": error}).to_string()
    }

    fn error_event(&self, failure: Failure, message: &str) -> String {
        format!("event: error\ndata: {}\n\n", self.error_body(failure, message))
    }

    fn overloaded_status(&self) -> u16 {
        529
    }

    fn request_id(&self) -> &'static str {
        "request-id"
    }

    fn limits(&self) -> Option<&'static str> {
        Some(concat!(
            "anthropic-ratelimit-requests-limit: 50\r\nanthropic-ratelimit-requests-remaining: 49\r\n",
            "anthropic-ratelimit-requests-reset: 1994-11-06T08:49:44Z\r\n",
            "anthropic-ratelimit-tokens-limit: 1000\r\nanthropic-ratelimit-tokens-remaining: 900\r\n",
        ))
    }
}
