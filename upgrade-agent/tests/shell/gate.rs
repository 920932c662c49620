//! A proxy that holds one request: before the server gets it, or before the agent gets the response. The test
//! kills the agent meanwhile. It records all requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Where a request is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The server does not get the request.
    Before,
    /// The server has handled the request, and the agent does not get the response.
    After,
}

/// The proxy.
pub(crate) struct Gate {
    pub(crate) url: String,
    held: Receiver<()>,
    go: Sender<()>,
    told: Receiver<()>,
    requests: Requests,
}

/// Method and path of each request, in order.
type Requests = Arc<Mutex<Vec<String>>>;

impl Gate {
    /// Starts in front of the server whose API is at `url`, and holds the first request that begins with
    /// `line`, such as `POST /experiments `.
    pub(crate) fn before(url: &str, line: &str, hold: Hold) -> Self {
        let upstream = url.trim_start_matches("http://").trim_end_matches("/api").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api", listener.local_addr().unwrap());
        let ((tell_held, held), (go, wait)) = (channel(), channel());
        let (tell_told, told) = channel();
        let trap =
            Arc::new(Mutex::new(Some(Trap { line: line.to_owned(), hold, tell_held, wait, tell_told })));
        let requests = Requests::default();
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let upstream = upstream.clone();
                let (trap, seen) = (Arc::clone(&trap), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream.unwrap(), &upstream, &trap, &seen));
            }
        });
        Gate { url, held, go, told, requests }
    }

    /// Method and path of each request since the last call, in the order of their arrival.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Waits until the request is held.
    pub(crate) fn wait(&self) {
        self.held.recv().unwrap();
    }

    /// Whether the request has arrived.
    pub(crate) fn has_come(&self) -> bool {
        self.held.try_recv().is_ok()
    }

    /// Releases the held response, and waits until it is written to the agent.
    pub(crate) fn open(&self) {
        self.go.send(()).unwrap();
        self.told.recv().unwrap();
    }
}

struct Trap {
    line: String,
    hold: Hold,
    tell_held: Sender<()>,
    wait: Receiver<()>,
    tell_told: Sender<()>,
}

/// Serves one request per connection: the agent learns that it closes.
fn serve(stream: TcpStream, upstream: &str, trap: &Mutex<Option<Trap>>, requests: &Mutex<Vec<String>>) {
    let mut client = BufReader::new(stream);
    let Some((head, body)) = read_request(&mut client) else { return };
    let request = head[0].replacen(" /api", " ", 1);
    requests.lock().unwrap().push(request.trim_end_matches(" HTTP/1.1").to_owned());
    let caught = {
        let mut trap = trap.lock().unwrap();
        let fits = trap.as_ref().is_some_and(|trap| request.starts_with(&trap.line));
        if fits { trap.take() } else { None }
    };
    if let Some(trap) = caught.as_ref().filter(|trap| trap.hold == Hold::Before) {
        let _ = trap.tell_held.send(());
        // A released request is forwarded; if the test drops the gate, the request is dropped, too.
        if trap.wait.recv().is_err() {
            return;
        }
    }
    let answer = forward(&head, &body, upstream);
    if let Some(trap) = caught.as_ref().filter(|trap| trap.hold == Hold::After) {
        let _ = trap.tell_held.send(());
        if trap.wait.recv().is_err() {
            return;
        }
    }
    let mut client = client.into_inner();
    let _ = client.write_all(&answer);
    let _ = client.shutdown(Shutdown::Write);
    if let Some(trap) = caught {
        let _ = trap.tell_told.send(());
    }
}

fn read_request(client: &mut BufReader<TcpStream>) -> Option<(Vec<String>, Vec<u8>)> {
    let mut head = Vec::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).ok()? == 0 {
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
    client.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn forward(head: &[String], body: &[u8], upstream: &str) -> Vec<u8> {
    let mut server = TcpStream::connect(upstream).unwrap();
    let kept = head.iter().filter(|line| !line.to_lowercase().starts_with("connection:"));
    let head: String = kept.map(|line| format!("{line}\r\n")).collect();
    server.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).unwrap();
    server.write_all(body).unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).unwrap();
    answer
}

/// Starts a server that is healthy and rejects every token, for the lifetime of the test process.
/// Returns its URL.
pub(crate) fn refusing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut client = BufReader::new(stream.unwrap());
            let Some((head, _)) = read_request(&mut client) else { continue };
            let health = r#"{"name":"upgrade","version":"6.5.0","description":""}"#;
            let refusal =
                r#"{"name":"AuthorizationRequiredError","message":"Token is not valid","errorCode":401}"#;
            let is_health = head[0].starts_with("GET /api ") || head[0].starts_with("GET /api/ ");
            let (status, body) = if is_health { ("200 OK", health) } else { ("401 Unauthorized", refusal) };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = client.into_inner().write_all(answer.as_bytes());
        }
    });
    url
}

/// A server that reads requests and never answers.
pub(crate) struct Silent {
    pub(crate) url: String,
    asked: Receiver<()>,
}

impl Silent {
    /// Waits until a request has arrived.
    pub(crate) fn wait(&self) {
        self.asked.recv().unwrap();
    }
}

pub(crate) fn silent() -> Silent {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut client = BufReader::new(stream.unwrap());
            if read_request(&mut client).is_some() && tell.send(()).is_err() {
                return;
            }
            open.push(client);
        }
    });
    Silent { url, asked }
}
