//! A proxy in front of a server: it records every request, and fails selected ones.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The failure of a request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status with an empty JSON object; the server does not get the request.
    Status(u16),
    /// The connection closes before the server gets the request.
    HangUp,
    /// The server handles the request, and the connection closes before the response.
    HangUpAfter,
    /// The server does not get the request, and there is no response.
    Hang,
    /// The server handles the request, and there is no response.
    HangAfter,
    /// The server gets the request when the test releases it.
    Hold,
    /// The server handles the request, and the response is sent when the test releases it.
    HoldAfter,
}

#[derive(Default)]
struct Shared {
    heard: Vec<String>,
    bodies: Vec<String>,
    /// Requests that begin with the text fail the given number of times.
    faults: Vec<(String, Fault, usize)>,
    in_flight: usize,
    /// The number of requests that wait without a response.
    hanging: usize,
}

/// The running proxy.
pub(crate) struct Proxy {
    url: String,
    shared: Arc<Mutex<Shared>>,
    gate: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Starts in front of the server whose API is at `url`.
    pub(crate) async fn before(url: &str) -> Self {
        let upstream = url.trim_start_matches("http://").trim_end_matches("/api").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared::default()));
        let gate = Arc::new(Notify::new());
        let notes = Arc::clone(&shared);
        let held = Arc::clone(&gate);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, upstream.clone(), Arc::clone(&notes), Arc::clone(&held)));
            }
        });
        Proxy { url, shared, gate, task }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The next `times` requests that begin with `line`, such as `POST /experiments/state`, fail.
    pub(crate) fn fail(&self, line: &str, fault: Fault, times: usize) {
        self.shared.lock().unwrap().faults.push((line.to_owned(), fault, times));
    }

    /// Waits until a request hangs.
    pub(crate) async fn hangs(&self) {
        while self.shared.lock().unwrap().hanging == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Releases a held request.
    pub(crate) fn release(&self) {
        self.shared.lock().unwrap().hanging = 0;
        self.gate.notify_one();
    }

    /// Waits until all sent requests have reached the server, including those of dropped clients.
    pub(crate) async fn settles(&self) {
        let mut quiet = 0;
        while quiet < 500 {
            tokio::task::yield_now().await;
            quiet = if self.shared.lock().unwrap().in_flight == 0 { quiet + 1 } else { 0 };
        }
    }

    /// Returns method and path of every request since the last call, in order.
    pub(crate) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().heard)
    }

    /// Returns `METHOD path body` of every request so far.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.shared.lock().unwrap().bodies.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one request per connection: both sides learn that it closes.
async fn serve(stream: TcpStream, upstream: String, notes: Arc<Mutex<Shared>>, gate: Arc<Notify>) {
    let mut client = BufReader::new(stream);
    let Some((head, body)) = read_request(&mut client).await else { return };
    let fault = note(&head, &body, &notes);
    let answer = match fault {
        Some(Fault::HangUp) => return,
        Some(Fault::Hang) => return hang(&notes).await,
        Some(Fault::Status(status)) => format!(
            "HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
        )
        .into_bytes(),
        other => {
            if let Some(Fault::Hold) = other {
                wait(&notes, &gate).await;
            }
            notes.lock().unwrap().in_flight += 1;
            let answer = forward(&head, &body, &upstream).await;
            notes.lock().unwrap().in_flight -= 1;
            match other {
                Some(Fault::HangAfter) => return hang(&notes).await,
                Some(Fault::Hold) => answer,
                Some(Fault::HoldAfter) => {
                    wait(&notes, &gate).await;
                    answer
                }
                Some(_) => return,
                None => answer,
            }
        }
    };
    let _ = client.into_inner().write_all(&answer).await;
}

async fn hang(notes: &Mutex<Shared>) {
    notes.lock().unwrap().hanging += 1;
    std::future::pending().await
}

async fn wait(notes: &Mutex<Shared>, gate: &Notify) {
    notes.lock().unwrap().hanging += 1;
    gate.notified().await;
}

async fn read_request(client: &mut BufReader<TcpStream>) -> Option<(Vec<String>, Vec<u8>)> {
    let mut head = Vec::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push(line);
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

fn note(head: &[String], body: &[u8], notes: &Mutex<Shared>) -> Option<Fault> {
    let mut words = head[0].split(' ');
    let method = words.next().unwrap();
    let path = words.next().unwrap();
    let path = path.strip_prefix("/api").unwrap();
    let line = format!("{method} {}", if path.is_empty() { "/" } else { path });
    let mut notes = notes.lock().unwrap();
    notes.bodies.push(format!("{line} {}", String::from_utf8_lossy(body)));
    let at =
        notes.faults.iter().position(|(begins, _, times)| *times > 0 && line.starts_with(begins.as_str()));
    notes.heard.push(line);
    let (_, fault, times) = &mut notes.faults[at?];
    *times -= 1;
    Some(fault.clone())
}

async fn forward(head: &[String], body: &[u8], upstream: &str) -> Vec<u8> {
    let mut server = TcpStream::connect(upstream).await.unwrap();
    let kept = head.iter().filter(|line| !line.to_lowercase().starts_with("connection:"));
    let head: String = kept.map(|line| format!("{line}\r\n")).collect();
    server.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
    server.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await.unwrap();
    answer
}
