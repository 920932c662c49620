//! A collector for OpenTelemetry on a loopback port: it keeps what it receives over HTTP as JSON.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

pub(crate) struct Collector {
    address: String,
    received: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", socket.local_addr().unwrap());
        let received = Arc::default();
        let keeps = Arc::clone(&received);
        thread::spawn(move || {
            for connection in socket.incoming() {
                // An exporter reads the answer before it sends more, so one connection at a time is enough.
                receive(&connection.unwrap(), &keeps);
            }
        });
        Collector { address, received }
    }

    /// The address to which a signal is sent, such as `traces`.
    pub(crate) fn endpoint(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.address)
    }

    /// What was received for a signal.
    pub(crate) fn received(&self, signal: &str) -> Vec<Value> {
        let path = format!("/v1/{signal}");
        let received = self.received.lock().unwrap();
        received.iter().filter(|(to, _)| *to == path).map(|(_, body)| body.clone()).collect()
    }

    /// All spans that were received.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let requests = self.received("traces");
        let scopes = requests.iter().flat_map(|request| list(&request["resourceSpans"]));
        let scopes = scopes.flat_map(|resource| list(&resource["scopeSpans"]));
        scopes.flat_map(|scope| list(&scope["spans"])).cloned().collect()
    }
}

fn receive(connection: &TcpStream, received: &Mutex<Vec<(String, Value)>>) {
    let mut reader = BufReader::new(connection);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }
    let path = head[0].strip_prefix("post ").unwrap().strip_suffix(" http/1.1").unwrap().to_owned();
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    received.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let mut connection = connection;
    connection.write_all(answer.as_bytes()).unwrap();
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The spans below one, as lines: name, status and code of the error.
pub(crate) fn tree(spans: &[Value], parent: &str, depth: usize, lines: &mut Vec<String>) {
    let mut children: Vec<&Value> = spans.iter().filter(|span| span["parentSpanId"] == parent).collect();
    children.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap());
    for span in children {
        let error = if span["status"]["code"] == 2 {
            format!(" ERROR {}", span["status"]["message"].as_str().unwrap())
        } else {
            String::new()
        };
        let line = format!("{}{}{error}", "  ".repeat(depth), span["name"].as_str().unwrap());
        lines.push(line.trim_end().to_owned());
        tree(spans, span["spanId"].as_str().unwrap(), depth + 1, lines);
    }
}

/// An attribute of a span, a resource or a point of a metric.
pub(crate) fn attribute<'a>(of: &'a Value, key: &str) -> &'a Value {
    let found = list(&of["attributes"]).iter().find(|attribute| attribute["key"] == key);
    &found.unwrap_or_else(|| panic!("no {key} in {of:#}"))["value"]["stringValue"]
}
