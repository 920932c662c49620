//! A run with a key: the models of the document are asked over HTTP, here at a server of the test.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::common::Folder;
use crate::shell::{finish, program, run};

const REFUSED: &str = "Unsupported value: 'temperature' does not support 0 with this model.";

type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A server of Chat Completions. `gpt-4o` refuses a temperature, and is down without one; `gpt-4o-mini` asks
/// for a product and answers with it.
fn start() -> (String, Seen) {
    let seen = Seen::default();
    let app = Router::new().route("/v1/chat/completions", post(answer)).with_state(Arc::clone(&seen));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
        });
    });
    (url, seen)
}

async fn answer(State(seen): State<Seen>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let key = headers["authorization"].to_str().unwrap().to_owned();
    seen.lock().unwrap().push((key, body.clone()));
    if body["model"] == "locked" {
        let error = json!({ "message": "Incorrect API key provided", "code": "invalid_api_key" });
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": error }))).into_response();
    }
    if body["model"] == "gpt-4o" {
        return match body.get("temperature") {
            Some(_) => {
                let error = json!({ "message": REFUSED, "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value" });
                (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
            }
            None => (StatusCode::SERVICE_UNAVAILABLE, "down").into_response(),
        };
    }
    let product = body["messages"].as_array().unwrap().iter().find(|message| message["role"] == "tool");
    let (delta, stop) = match product {
        Some(product) => {
            let text = format!("FINAL ANSWER: {}.", product["content"].as_str().unwrap());
            (json!({ "role": "assistant", "content": text }), "stop")
        }
        None => {
            let function = json!({ "name": "calculator", "arguments": "{\"expression\":\"19*23\"}" });
            let call = json!({ "index": 0, "id": "c1", "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
    };
    let event = |choices: Value, usage: Value| {
        let event = json!({ "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini-2024-07-18", "choices": choices, "usage": usage });
        format!("data: {event}\n\n")
    };
    let usage = json!({ "prompt_tokens": 1_000_000, "completion_tokens": 10_000, "total_tokens": 1_010_000 });
    let events = [
        event(json!([{ "index": 0, "delta": delta, "finish_reason": null }]), Value::Null),
        event(json!([{ "index": 0, "delta": {}, "finish_reason": stop }]), Value::Null),
        event(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    ([(CONTENT_TYPE, "text/event-stream")], events.concat()).into_response()
}

#[test]
fn the_fallback_answers_with_a_tool_and_its_tokens_have_a_price() {
    let folder = Folder::new();
    let (url, seen) = start();
    let questions =
        r#"[{"task_id": "a", "question": "What is 19 times 23?", "Level": 1, "Final answer": "437"}]"#;
    let file = folder.write("work/questions.json", questions);
    let args =
        ["run", "--questions", file.to_str().unwrap(), "--max-retries", "0", "--model", "openai-chat:gpt-4o"];
    let mut command = program(&folder, &args);
    command.args(["--fallback", "openai-chat:gpt-4o-mini"]);
    command.env("OPENAI_API_KEY", "sk-of-the-test").env("OPENAI_BASE_URL", &url);
    let ran = finish(command).good();
    assert!(ran.out().contains("1 of 1 answers are right."), "{}", ran.out());

    let seen = seen.lock().unwrap();
    let asked: Vec<_> = seen
        .iter()
        .map(|(_, body)| (body["model"].as_str().unwrap().to_owned(), body["temperature"].as_f64()))
        .collect();
    // The refusal of the temperature is remembered.
    let (first, bare) = (("gpt-4o".to_owned(), Some(0.0)), ("gpt-4o".to_owned(), None));
    let fallback = ("gpt-4o-mini".to_owned(), Some(0.0));
    assert_eq!(asked, [first, bare.clone(), fallback.clone(), bare, fallback]);
    assert!(seen.iter().all(|(key, _)| key == "Bearer sk-of-the-test"));
    let tools = seen[0].1["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 11, "those without a key and Python are not offered");

    let report = run(&folder, &["report"]).good().out();
    assert!(report.contains("tokens           2000000 in, 20000 out"), "{report}");
    assert!(report.contains("cost             $0.3120\n"), "two rounds of 0.15 $ and 0.006 $: {report}");
    let shown = run(&folder, &["show", "a"]).good().out();
    assert!(shown.contains("CALL c1 calculator") && shown.contains("gpt-4o-mini"), "{shown}");
    let cache = run(&folder, &["cache", "show"]).good().out();
    assert!(!cache.contains("437"), "answers of the fallback are not kept: {cache}");
}

#[test]
fn a_refused_key_is_said_in_words_of_the_program() {
    let folder = Folder::new();
    let (url, _) = start();
    let args = ["ask", "What?", "--max-retries", "0", "--fallback", "none", "--model", "openai-chat:locked"];
    let mut command = program(&folder, &args);
    command.env("OPENAI_API_KEY", "sk-of-the-test").env("OPENAI_BASE_URL", &url);
    let ran = finish(command);
    assert_eq!(ran.code(), Some(1));
    assert!(
        ran.err().contains("check OPENAI_API_KEY in the environment or in `.env`")
            && !ran.err().contains("api_key("),
        "{}",
        ran.err()
    );
}
