//! Gemini's `generateContent`. Arguments come as a whole, and the stream ends without an event of its own.

use std::sync::Arc;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Error, GeminiModel};
use serde_json::json;

use super::wire::{Failure, Settings, Wire, configured};

pub struct Gemini;

const HEAD: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"index\":0}],\
    \"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"one-of-tests\",\"responseId\":\"r1\"}\n\n";
const LAST: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\
    \"index\":0}],\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":2,\"totalTokenCount\":5}}\n\n";

fn events(parts: impl Iterator<Item = String>) -> Vec<String> {
    let chunks = parts.map(|part| {
        format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}},\"index\":0}}]}}\n\n")
    });
    [HEAD.to_owned()].into_iter().chain(chunks).chain([LAST.to_owned()]).collect()
}

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        "Gemini"
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn ChatModel>, Error> {
        Ok(Arc::new(configured!(GeminiModel::builder(), settings).build()?))
    }

    fn key_line(&self, key: &str) -> String {
        format!("x-goog-api-key: {key}")
    }

    fn text(&self, pieces: &[String]) -> Vec<String> {
        events(pieces.iter().map(|piece| format!("{{\"text\":{piece}}}")))
    }

    fn call(&self, pieces: &[String]) -> Vec<String> {
        let inner = pieces.iter().map(|piece| &piece[1..piece.len() - 1]).collect::<String>();
        let args: String = serde_json::from_str(&format!("\"{inner}\"")).unwrap();
        events(
            [format!("{{\"functionCall\":{{\"id\":\"f1\",\"name\":\"find\",\"args\":{args}}}}}")].into_iter(),
        )
    }

    fn streams_arguments(&self) -> bool {
        false
    }

    fn hidden(&self) -> usize {
        1
    }

    fn whole(&self, text: &str) -> String {
        json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}, "modelVersion": "one-of-tests"})
        .to_string()
    }

    fn ping(&self) -> Option<&'static str> {
        None
    }

    fn error_body(&self, failure: Failure, message: &str) -> String {
        let (code, status) = match failure {
            Failure::BadRequest | Failure::TooLarge => (400, "INVALID_ARGUMENT"),
            Failure::Auth => (401, "UNAUTHENTICATED"),
            Failure::Permission => (403, "PERMISSION_DENIED"),
            Failure::NotFound => (404, "NOT_FOUND"),
            Failure::RateLimited | Failure::Money => (429, "RESOURCE_EXHAUSTED"),
            Failure::Overloaded => (503, "UNAVAILABLE"),
            Failure::Server => (500, "INTERNAL"),
        };
        let mut error = json!({"code": code, "status": status, "message": message});
        if failure == Failure::Money {
            let quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
            error["details"] = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": quota, "quotaValue": "50"}]}]);
        }
        json!({ "error": error }).to_string()
    }

    fn error_event(&self, failure: Failure, message: &str) -> String {
        format!("data: {}\n\n", self.error_body(failure, message))
    }

    fn overloaded_status(&self) -> u16 {
        503
    }

    fn request_id(&self) -> &'static str {
        "x-goog-request-id"
    }

    fn limits(&self) -> Option<&'static str> {
        None
    }
}
