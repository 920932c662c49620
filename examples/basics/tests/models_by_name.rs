//! The real programs with `--model`, against a server on a socket that speaks the wire of the provider.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// The requests, each with its path and its body.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that gives the same answer to every request.
fn server(answer: Value) -> (String, Seen) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let seen = Seen::default();
    let keeps = Arc::clone(&seen);
    thread::spawn(move || {
        for connection in socket.incoming() {
            let mut connection = connection.unwrap();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                head.push(line.trim().to_owned());
            }
            let length = head
                .iter()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            let mut body = vec![0; length.unwrap().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let path = head[0].split(' ').nth(1).unwrap().to_owned();
            keeps.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
            let answer = answer.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        }
    });
    (url, seen)
}

fn anthropic(text: &str) -> Value {
    json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1, "output_tokens": 1}})
}

fn chat(text: &str) -> Value {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

fn responses(text: &str) -> Value {
    json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": [{"type": "message", "id": "o",
        "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}]})
}

fn gemini(text: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": "STOP"}]})
}

/// A program without the variables that name a model's key or address.
fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    for provider in agentgraph_llm::Provider::ALL {
        for variable in provider.key_variables().iter().chain(provider.url_variables()) {
            command.env_remove(variable);
        }
    }
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

const TOOL_AGENT: &str = env!("CARGO_BIN_EXE_13_tool_agent");

#[test]
fn each_provider_is_asked_on_its_wire() {
    for (name, key, answer, path) in [
        ("anthropic:m", Some("ANTHROPIC_API_KEY"), anthropic("A coat."), "/v1/messages"),
        ("openai:m", Some("OPENAI_API_KEY"), responses("A coat."), "/v1/responses"),
        ("openai-chat:m", Some("OPENAI_API_KEY"), chat("A coat."), "/v1/chat/completions"),
        (
            "gemini:m",
            Some("GEMINI_API_KEY"),
            gemini("A coat."),
            "/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        ("ollama:m", None, chat("A coat."), "/v1/chat/completions"),
        ("llama-cpp:m", None, chat("A coat."), "/v1/chat/completions"),
        ("vllm:m", None, chat("A coat."), "/v1/chat/completions"),
    ] {
        let (url, seen) = server(answer);
        let mut command = program(TOOL_AGENT);
        command.args(["--model", name, "--base-url", &url]);
        if let Some(key) = key {
            command.env(key, "sk-not-a-real-key");
        }
        let said = text(&command.output().unwrap());
        assert_eq!(said, "> Do I need a coat?\nA coat.\n> And a hat?\nA coat.\n", "{name}");
        let seen = seen.lock().unwrap();
        assert_eq!(seen.iter().map(|(to, _)| to.as_str()).collect::<Vec<_>>(), [path, path], "{name}");
        assert!(seen[0].1.to_string().contains("weather"), "{name}: the tool is offered");
    }
}

#[test]
fn the_address_of_the_environment_counts_too() {
    let (url, seen) = server(chat("A coat."));
    let mut command = program(TOOL_AGENT);
    command.arg("--model=ollama:qwen3:8b").env("OLLAMA_BASE_URL", url);
    text(&command.output().unwrap());
    assert_eq!(seen.lock().unwrap()[0].1["model"], "qwen3:8b");
}

#[test]
fn the_answers_of_a_named_model_decide() {
    let (url, seen) = server(chat("{\"answer\": \"no\"}"));
    let mut command = program(env!("CARGO_BIN_EXE_11_after_query"));
    command.args(["--model", "vllm:m", "--base-url", &url]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("no: Say what keeps us from the harbour."), "{said}");
    assert!(!seen.lock().unwrap().is_empty());
}

#[test]
fn without_a_name_the_script_answers() {
    for arguments in [&[][..], &["--model", "offline"]] {
        let said = text(&program(TOOL_AGENT).args(arguments).output().unwrap());
        assert!(said.contains("Take a coat: it snows in Oslo."), "{said}");
    }
}

#[test]
fn a_wrong_name_or_a_missing_key_ends_the_program_with_what_to_do() {
    for (arguments, says) in [
        (&["--model", "acme:large"][..], "`anthropic:`"),
        (&["--model", "anthropic:m"], "ANTHROPIC_API_KEY"),
        (&["--model"], "--model provider:NAME"),
        (&["surprise"], "`surprise` is unknown"),
    ] {
        let output = program(TOOL_AGENT).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}
