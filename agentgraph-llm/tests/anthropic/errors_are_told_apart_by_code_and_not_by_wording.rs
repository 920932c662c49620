//! Errors of the API, as a response and as an event in a stream.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{AnthropicModel, Code, Error};
use serde_json::{Value, json};

use crate::server::{Reply, Server, Waits};

async fn fail(reply: Reply) -> Error {
    let server = Server::start([reply]).await;
    let builder = AnthropicModel::builder().api_key("sk-hunter2-hunter2").model("m").base_url(&server.url);
    let model = builder.clock(Waits::default()).max_retries(0).build().unwrap();
    model.chat(ChatRequest::user("hi")).await.unwrap_err()
}

fn body(kind: &str, message: &str, cause: Option<&str>) -> Value {
    let mut error = json!({"type": kind, "message": message});
    if let Some(cause) = cause {
        error["details"] = json!({"error_code": cause});
    }
    json!({"type": "error", "error": error, "request_id": "req_8"})
}

#[tokio::test]
async fn the_code_of_the_cause_decides_about_money() {
    let limited = "rate_limit_error";
    for (status, kind, message, cause, code) in [
        (429, limited, "wait", Some("enforced_spend_limit_reached"), Code::Billing),
        (429, limited, "wait", Some("contract_spend_limit_reached"), Code::Billing),
        (402, "billing_error", "pay", Some("linked_organization_spend_limit_reached"), Code::Billing),
        (402, "billing_error", "pay", Some("a_cause_of_tomorrow"), Code::Billing),
        (
            429,
            limited,
            "below your spend limit, but too fast",
            Some("ramp_limit_exceeded"),
            Code::RateLimited,
        ),
        (429, limited, "wait", Some("a_cause_of_tomorrow"), Code::RateLimited),
        (429, limited, "wait", None, Code::RateLimited),
        (429, limited, "would exceed your organization's monthly spend limit", None, Code::Billing),
        (400, "invalid_request_error", "Your credit balance is too low", None, Code::Billing),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits.",
            None,
            Code::Billing,
        ),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", None, Code::TooLarge),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 9 > 8",
            None,
            Code::TooLarge,
        ),
        (400, "invalid_request_error", "messages: empty", None, Code::BadRequest),
    ] {
        let body = body(kind, message, cause).to_string();
        for reply in
            [Reply::json(status, "", &body), Reply::stream(format!("event: error\ndata: {body}\n\n"))]
        {
            let error = fail(reply).await;
            assert_eq!(error.code(), code, "{body}");
            assert_eq!(error.request_id(), Some("req_8"), "{error}");
            assert!(error.message().contains(message), "{error}");
            assert!(cause.is_none_or(|cause| error.message().contains(cause)), "{error}");
            assert_eq!(error.is_retryable(), code == Code::RateLimited, "{error}");
        }
    }
}

#[tokio::test]
async fn errors_in_a_stream_have_the_code_of_their_kind() {
    for (kind, code) in [
        ("invalid_request_error", Code::BadRequest),
        ("authentication_error", Code::Auth),
        ("permission_error", Code::Permission),
        ("not_found_error", Code::NotFound),
        ("request_too_large", Code::TooLarge),
        ("rate_limit_error", Code::RateLimited),
        ("timeout_error", Code::Timeout),
        ("overloaded_error", Code::Overloaded),
        ("api_error", Code::Server),
        ("an_error_of_tomorrow", Code::Server),
    ] {
        let error = fail(Reply::stream(format!("data: {}\n\n", body(kind, "said so", None)))).await;
        assert_eq!(error.code(), code, "{kind}");
    }
}
