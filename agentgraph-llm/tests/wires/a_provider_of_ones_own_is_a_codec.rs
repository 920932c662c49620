//! A provider that this crate does not know, as an outside crate writes it: Ollama's own API, which answers
//! with one JSON value a line and takes `num_ctx` and `keep_alive`. Everything else is the driver's.

use std::collections::VecDeque;
use std::sync::Arc;

use agentgraph_llm::http::{Built, Call, Connection, Decoder, Dialect, End, Endpoint, Wire};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Authentication, Code, Error, ModelInfo, Result, StopReason};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::server::{Reply, Server, Step};

struct Ollama(Arc<Endpoint>);

impl Ollama {
    fn new(connection: Connection) -> Result<Self> {
        let refusal = |status: u16, _: &_, body: &[u8]| {
            let code = if status == 404 { Code::NotFound } else { Code::Server };
            Error::new(code, String::from_utf8_lossy(body)).with_status(status)
        };
        let dialect = Dialect { refusal, request_id: "x-request-id", limits: None };
        let wire = Wire { version: "".into(), missing_key: None, headers: Default::default(), dialect };
        Ok(Ollama(connection.endpoint(wire)?))
    }
}

#[async_trait]
impl ChatModel for Ollama {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("ollama", "qwen3:8b")
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        let messages: Vec<_> = request
            .messages
            .iter()
            .map(|message| json!({"role": "user", "content": message.text()}))
            .collect();
        let options = json!({"num_ctx": 32768});
        let body = json!({"model": "qwen3:8b", "messages": messages, "options": options, "keep_alive": "1h"});
        let call = Call { url: self.0.url("api/chat"), body: body.to_string(), info: self.info(), request };
        self.0.stream(call, Lines::default).await
    }
}

/// One JSON value a line.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
    text: String,
    events: VecDeque<Result<ChatEvent>>,
    done: bool,
}

impl Lines {
    fn take(&mut self, line: &[u8]) -> Result<()> {
        let broken = |_| Error::new(Code::Decode, "a line is not JSON");
        let value: Value = serde_json::from_slice(line).map_err(broken)?;
        if let Some(text) = value["message"]["content"].as_str().filter(|text| !text.is_empty()) {
            self.text += text;
            self.events.push_back(Ok(ChatEvent::TextDelta { index: 0, text: text.to_owned() }));
        }
        if value["done"] == true {
            let end = match value["done_reason"].as_str().unwrap_or_default() {
                "stop" => End::Stop(StopReason::EndTurn),
                "length" => End::Stop(StopReason::MaxTokens),
                other => End::unknown(other),
            };
            let response = ChatResponse::new(Message::assistant(&self.text), StopReason::EndTurn);
            self.done = true;
            self.events.push_back(Built { response, end }.into_response().map(ChatEvent::Finished));
        }
        Ok(())
    }
}

impl Decoder for Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n').filter(|_| !self.done) {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if let Err(error) = self.take(&line) {
                self.done = true;
                self.events.push_back(Err(error));
            }
        }
    }

    fn end(&mut self) {
        if !self.done {
            self.done = true;
            self.events.push_back(Err(Error::new(Code::Truncated, "the stream was cut")));
        }
    }

    fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.events.pop_front()
    }

    fn break_off(&mut self, error: Error) -> Error {
        self.done = true;
        error
    }

    fn streams_json(&self) -> bool {
        true
    }

    fn whole(&mut self, body: &[u8]) -> Result<ChatResponse> {
        self.push(body);
        self.push(b"\n");
        match self.events.pop_back() {
            Some(Ok(ChatEvent::Finished(response))) => Ok(response),
            Some(Err(error)) => Err(error),
            _ => Err(Error::new(Code::Truncated, "the answer was cut")),
        }
    }
}

const LINES: [&str; 2] = [
    "{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":false}\n",
    "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
];

/// Lines, as the server sends them: their type is not that of a stream of events.
fn lines(lines: &[&str]) -> Reply {
    Reply::say(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n{}",
        lines.concat()
    ))
}

fn model(server: &Server) -> Ollama {
    Ollama::new(Connection::new("http://localhost:11434", Authentication::Bearer).base_url(&server.url))
        .unwrap()
}

#[tokio::test]
async fn the_driver_retries_reads_and_completes_what_a_codec_decodes() {
    let server = Server::start([Reply::json(503, "", "down"), lines(&LINES)]).await;
    let response = model(&server).chat(ChatRequest::user("hello")).await.unwrap();
    assert_eq!((response.message.text().as_str(), response.stop), ("Hi", StopReason::EndTurn));
    assert_eq!(response.message.origin.as_ref().unwrap().model, "qwen3:8b");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let body: Value = serde_json::from_str(&requests[1].body).unwrap();
    assert_eq!((&body["options"]["num_ctx"], &body["keep_alive"]), (&json!(32768), &json!("1h")));
    assert!(requests[1].head.starts_with("post /api/chat http/1.1"));
}

#[tokio::test]
async fn lines_are_heard_as_they_come() {
    let gate = Arc::new(Notify::new());
    let rest = Step::Send(LINES[1].into());
    let server = Server::start([lines(&LINES[..1]).then(Step::Gate(Arc::clone(&gate))).then(rest)]).await;
    let mut stream = model(&server).stream(ChatRequest::user("hello")).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(matches!(first, ChatEvent::TextDelta { text, .. } if text == "Hi"));
    gate.notify_one();
    assert_eq!(stream.into_response().await.unwrap().message.text(), "Hi");
}

#[tokio::test]
async fn a_cut_and_an_unknown_end_are_errors_of_a_codec_of_ones_own_too() {
    let ends = |reason: &str| LINES[1].replace("stop", reason);
    for (said, code) in [
        (vec![LINES[0].to_owned()], Code::Truncated),
        (vec![LINES[0].to_owned(), ends("unload")], Code::StopReason),
        (vec![LINES[0].to_owned(), "{\n".to_owned()], Code::Decode),
    ] {
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let server = Server::start([lines(&said)]).await;
        let error = model(&server).chat(ChatRequest::user("hello")).await.unwrap_err();
        assert_eq!(error.code(), code, "{said:?}: {error}");
    }
}
