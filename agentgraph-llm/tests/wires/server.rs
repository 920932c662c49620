//! A scripted server on a loopback port, whose replies are exact bytes.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agentgraph_llm::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The server's reaction to one request. Each request has its own connection, which is closed at the end.
#[derive(Clone, Default)]
pub struct Reply(Vec<Step>);

#[derive(Clone)]
pub enum Step {
    Send(Vec<u8>),
    /// Sends the bytes so many times.
    Repeat(Vec<u8>, usize),
    /// Sends the bytes so many times, with a wait before each.
    Drip(Vec<u8>, usize, Duration),
    /// Waits for the test.
    Gate(Arc<Notify>),
    /// Sends nothing until the client closes the connection.
    Hang,
}

impl Reply {
    /// These bytes, and then the end of the connection.
    pub fn say(bytes: impl Into<Vec<u8>>) -> Self {
        Reply::default().then(Step::Send(bytes.into()))
    }

    pub fn json(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
        );
        Reply::say(head + body)
    }

    /// A stream that ends with the connection.
    pub fn stream(events: impl AsRef<[u8]>) -> Self {
        Reply::stream_with("", events)
    }

    pub fn stream_with(headers: &str, events: impl AsRef<[u8]>) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n{headers}\r\n"
        );
        Reply::say([head.as_bytes(), events.as_ref()].concat())
    }

    /// A stream whose pieces reach the client as they are here, whatever the network does: each is a chunk.
    pub fn chunks<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
        let mut bytes = head.as_bytes().to_vec();
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            let mut size = String::new();
            write!(size, "{:x}\r\n", piece.len()).unwrap();
            bytes.extend([size.as_bytes(), piece, b"\r\n"].concat());
        }
        bytes.extend(b"0\r\n\r\n");
        Reply::say(bytes)
    }

    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    pub fn and_hang(self) -> Self {
        self.then(Step::Hang)
    }
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request. Its head is in lower case.
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
                tokio::spawn(serve(stream, replies.next().unwrap_or_default(), Arc::clone(&seen)));
            }
        });
        Server { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, reply: Reply, seen: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = read_request(&mut stream).await else { return };
    seen.lock().unwrap().push(request);
    for step in reply.0 {
        if play(&mut stream, step).await.is_err() {
            return;
        }
    }
    stream.shutdown().await.ok();
}

async fn play(stream: &mut TcpStream, step: Step) -> std::io::Result<()> {
    match step {
        Step::Send(bytes) => stream.write_all(&bytes).await,
        Step::Repeat(bytes, times) => {
            for _ in 0..times {
                stream.write_all(&bytes).await?;
            }
            Ok(())
        }
        Step::Drip(bytes, times, wait) => {
            for _ in 0..times {
                tokio::time::sleep(wait).await;
                stream.write_all(&bytes).await?;
            }
            Ok(())
        }
        Step::Gate(gate) => {
            gate.notified().await;
            Ok(())
        }
        Step::Hang => stream.read_to_end(&mut Vec::new()).await.map(drop),
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
