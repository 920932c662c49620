//! Error bodies, through the real HTTP driver.

use std::time::Duration;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error, GeminiModel};
use serde_json::{Value, json};

use crate::server::{Reply, Server, Waits};

fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error": {"code": code, "status": status, "message": message, "details": details}})
}

async fn fail(status: u16, body: &Value) -> (Error, Vec<u128>) {
    let replies = (0..3).map(|_| Reply::json(status, "", &body.to_string()));
    let server = Server::start(replies).await;
    let waits = Waits::default();
    let model = GeminiModel::builder()
        .api_key("not-a-real-key")
        .model("m")
        .base_url(&server.url)
        .clock(waits.clone());
    let error = model.build().unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
    (error, waits.millis())
}

#[tokio::test]
async fn each_kind_of_error_has_its_code_also_in_an_array() {
    let info =
        |reason: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
    for (http, body, code) in [
        (400, error(400, "INVALID_ARGUMENT", "no", json!([])), Code::BadRequest),
        (400, error(400, "INVALID_ARGUMENT", "API key not valid.", info("API_KEY_INVALID")), Code::Auth),
        (
            400,
            error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                json!([]),
            ),
            Code::TooLarge,
        ),
        (
            400,
            error(400, "FAILED_PRECONDITION", "User location is not supported", json!([])),
            Code::BadRequest,
        ),
        (
            400,
            error(400, "FAILED_PRECONDITION", "Please enable billing on your project", json!([])),
            Code::Billing,
        ),
        (401, error(401, "UNAUTHENTICATED", "no", json!([])), Code::Auth),
        (403, error(403, "PERMISSION_DENIED", "no", json!([])), Code::Permission),
        (403, error(403, "PERMISSION_DENIED", "no", info("BILLING_DISABLED")), Code::Billing),
        (404, error(404, "NOT_FOUND", "models/x is not found", json!([])), Code::NotFound),
        (
            429,
            error(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
                json!([]),
            ),
            Code::RateLimited,
        ),
        (500, error(500, "INTERNAL", "no", json!([])), Code::Server),
        (503, error(503, "UNAVAILABLE", "The model is overloaded.", json!([])), Code::Overloaded),
        (504, error(504, "DEADLINE_EXCEEDED", "no", json!([])), Code::Timeout),
    ] {
        for body in [body.clone(), json!([body])] {
            let (error, waits) = fail(http, &body).await;
            assert_eq!((error.code(), error.status()), (code, Some(http)), "{error}");
            assert_eq!(waits.len(), if error.is_retryable() { 2 } else { 0 }, "{error}");
            let said = body.pointer("/error/message").or(body.pointer("/0/error/message")).unwrap();
            assert!(error.message().contains(said.as_str().unwrap()), "{error}");
        }
    }
}

fn quota(id: &str, value: &str) -> Value {
    json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaMetric": "requests", "quotaId": id, "quotaValue": value}]})
}

#[tokio::test]
async fn the_wait_of_the_details_is_kept() {
    let retry =
        |delay: &str| json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
    let minute = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "10");
    for (delay, expected) in [("12s", 12_000), ("0.5s", 500), ("36.277046097s", 36_277)] {
        let body = error(429, "RESOURCE_EXHAUSTED", "slow", json!([minute, retry(delay)]));
        let (error, waits) = fail(429, &body).await;
        assert_eq!((error.code(), waits), (Code::RateLimited, vec![expected, expected]));
    }
    let body = error(429, "RESOURCE_EXHAUSTED", "slow", json!([retry("3600s")]));
    let (error, waits) = fail(429, &body).await;
    assert_eq!((error.retry_after(), waits.len()), (Some(Duration::from_secs(3600)), 0));
}

#[tokio::test]
async fn a_quota_of_the_day_or_of_zero_is_tried_once() {
    for violation in [
        quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "50"),
        quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", "0"),
    ] {
        let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5s"});
        let (error, waits) =
            fail(429, &error(429, "RESOURCE_EXHAUSTED", "quota", json!([violation, retry]))).await;
        assert!(error.is_billing() && !error.is_retryable() && waits.is_empty(), "{error}");
    }
    let spent = error(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", json!([]));
    assert!(fail(429, &spent).await.0.is_billing());
}

#[tokio::test]
async fn requests_go_to_the_path_of_their_method_and_counts_come_back() {
    let answer = json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]});
    let chunk = format!("data: {answer}\n\n");
    let server = Server::start([
        Reply::stream(&chunk),
        Reply::stream(&chunk),
        Reply::json(200, "", r#"{"totalTokens": 31}"#),
    ])
    .await;
    let model = |name: &str| {
        GeminiModel::builder().api_key("not-a-real-key").model(name).base_url(&server.url).build().unwrap()
    };
    assert_eq!(model("gemini-x").chat(ChatRequest::user("a")).await.unwrap().message.text(), "Hi");
    model("tunedModels/mine").chat(ChatRequest::user("a")).await.unwrap();
    let count = model("gemini-x").count_tokens(&ChatRequest::user("a")).await.unwrap();
    assert_eq!((count.tokens, count.is_exact), (31, true));
    let lines: Vec<_> =
        server.requests().iter().map(|request| request.head.lines().next().unwrap().to_owned()).collect();
    assert_eq!(
        lines,
        [
            "post /v1beta/models/gemini-x:streamgeneratecontent?alt=sse http/1.1",
            "post /v1beta/tunedmodels/mine:streamgeneratecontent?alt=sse http/1.1",
            "post /v1beta/models/gemini-x:counttokens http/1.1",
        ]
    );
    assert!(server.requests()[0].head.contains("x-goog-api-key: not-a-real-key"));
}
