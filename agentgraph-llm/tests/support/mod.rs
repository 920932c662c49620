//! A scripted server on a loopback port, whose replies are exact bytes.
#![allow(dead_code, missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agentgraph_llm::{AnthropicModel, AnthropicModelBuilder, Clock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const KEY: &str = "sk-ant-hunter2-hunter2";

/// The server's reaction to one request. Each request has its own connection.
pub enum Reply {
    /// Sends these bytes and closes the connection.
    Say(Vec<u8>),
    /// Sends these bytes and then nothing, until the client closes the connection.
    SayAndHang(Vec<u8>),
}

impl Reply {
    pub fn json(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
        );
        Reply::Say([head.as_bytes(), body.as_bytes()].concat())
    }

    pub fn answer(text: &str) -> Self {
        let body = serde_json::json!({"id": "msg_1", "model": "claude-test", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 3, "output_tokens": 2}});
        Reply::json(200, "", &body.to_string())
    }

    pub fn error(status: u16, headers: &str, kind: &str) -> Self {
        let body = serde_json::json!({"type": "error", "error": {"type": kind, "message": "said so"}});
        Reply::json(status, &format!("request-id: req_7\r\n{headers}"), &body.to_string())
    }

    /// Returns a stream that ends with the connection.
    pub fn stream(events: &str) -> Self {
        Reply::Say(stream_bytes(events))
    }
}

pub fn stream_bytes(events: &str) -> Vec<u8> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
    format!("{head}{events}").into_bytes()
}

/// Returns the events of a response with `text`, one delta per word.
pub fn events(text: &str) -> String {
    let deltas: String = text.split_inclusive(' ').map(delta).collect();
    format!("{START}{deltas}{STOP}")
}

pub const START: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-test\",\"usage\":{\"input_tokens\":3}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
);
pub const STOP: &str = concat!(
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

pub fn delta(text: &str) -> String {
    format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    )
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone)]
pub struct Request {
    pub head: String,
    pub body: String,
}

impl Server {
    /// Starts a server that sends the n-th reply to the n-th request, and closes the connection of
    /// further ones.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, mut replies) =
            (Arc::clone(&requests), replies.into_iter().collect::<Vec<_>>().into_iter());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, replies.next(), Arc::clone(&seen)));
            }
        });
        Server { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns a builder for a model at this server, whose clock records the waits between attempts.
    pub fn model(&self) -> (AnthropicModelBuilder, Waits) {
        let waits = Waits::default();
        let builder = AnthropicModel::builder().api_key(KEY).model("claude-test").base_url(&self.url);
        (builder.clock(waits.clone()), waits)
    }
}

async fn serve(mut stream: TcpStream, reply: Option<Reply>, seen: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = read_request(&mut stream).await else { return };
    seen.lock().unwrap().push(request);
    match reply {
        None => {}
        Some(Reply::Say(bytes)) => {
            stream.write_all(&bytes).await.ok();
            stream.shutdown().await.ok();
        }
        Some(Reply::SayAndHang(bytes)) => {
            stream.write_all(&bytes).await.ok();
            // Ends when the client closes.
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if bytes.len() >= end + 4 + length.parse::<usize>().unwrap() {
                let body = String::from_utf8(bytes[end + 4..].to_vec()).unwrap();
                return Some(Request { head, body });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A clock that records waits instead of sleeping. Its time is always Sun, 06 Nov 1994 08:49:37 GMT.
#[derive(Clone, Default)]
pub struct Waits(Arc<Mutex<Vec<Duration>>>);

impl Waits {
    pub fn millis(&self) -> Vec<u128> {
        self.0.lock().unwrap().iter().map(Duration::as_millis).collect()
    }
}

#[async_trait::async_trait]
impl Clock for Waits {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn jitter(&self) -> f64 {
        0.0
    }

    async fn sleep(&self, wait: Duration) {
        self.0.lock().unwrap().push(wait);
    }
}
