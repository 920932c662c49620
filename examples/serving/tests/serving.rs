//! The real program on a real socket: a report is written, published, and goes on after a drain and a kill.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The server, on a port of its own.
struct Server {
    process: Child,
    lines: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(file: &Path) -> Self {
        Server::start_with(file, &[])
    }

    fn start_with(file: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serving"));
        let mut process =
            command.args(options).arg(file).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut server = Server { process, lines, address: String::new() };
        while server.address.is_empty() {
            let mut line = String::new();
            assert!(server.lines.read_line(&mut line).unwrap() > 0, "the server has ended");
            server.address = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        }
        server
    }

    /// Sends a request, and reads the answer until the server closes the connection.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.0\r\ncontent-type: application/json\r\n");
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask("GET", path, None)).unwrap()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.ask("POST", path, Some(body))).unwrap()
    }

    /// A new thread with a run on it.
    fn begin(&self, input: &Value) -> (String, Value) {
        let thread = self.post("/threads", &json!({}))["thread_id"].as_str().unwrap().to_owned();
        let body = json!({ "assistant_id": "report", "input": input });
        (thread.clone(), self.post(&format!("/threads/{thread}/runs"), &body))
    }

    /// Waits for the end of a run, and returns the state.
    fn join(&self, run: &Value) -> Value {
        let text = |name: &str| run[name].as_str().unwrap();
        self.get(&format!("/threads/{}/runs/{}/join", text("thread_id"), text("run_id")))
    }

    fn signal(&mut self, signal: Signal) -> bool {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        self.process.wait().unwrap().success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder for the database, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("agentgraph-serving-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("reports.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sections(shown: &Value) -> Vec<&str> {
    shown["text"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn a_report_is_written_watched_and_published() {
    let folder = Folder::new("written");
    let server = Server::start(&folder.file());
    let (thread, run) = server.begin(&json!({ "topic": "tea", "sections": 40, "pause": 1 }));
    let run_id = run["run_id"].as_str().unwrap();
    let events = server.ask("GET", &format!("/threads/{thread}/runs/{run_id}/stream"), None);
    assert!(events.starts_with("event: metadata") && events.contains("event: end"), "{events}");
    let waits = server.join(&run);
    assert_eq!(sections(&waits).len(), 40);
    assert_eq!(waits["__interrupt__"][0]["value"], "publish it?");
    let answer = json!({ "assistant_id": "report", "command": { "resume": true } });
    let published = server.post(&format!("/threads/{thread}/runs/wait"), &answer);
    assert_eq!(published["published"], true);
}

#[test]
fn a_named_model_writes_the_sections() {
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", model.local_addr().unwrap());
    let answers = thread::spawn(move || {
        let (mut connection, _) = model.accept().unwrap();
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).unwrap() > 2 {
            length = line
                .to_lowercase()
                .strip_prefix("content-length: ")
                .map_or(length, |it| it.trim().parse().unwrap());
            line.clear();
        }
        let mut asked = vec![0; length];
        reader.read_exact(&mut asked).unwrap();
        let answer = json!({"choices": [{"message": {"role": "assistant", "content": "Tea is old."}, "finish_reason": "stop"}]});
        let (answer, head) = (answer.to_string(), "HTTP/1.1 200 OK\r\ncontent-type: application/json");
        write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        serde_json::from_slice::<Value>(&asked).unwrap()
    });
    let folder = Folder::new("named");
    let server = Server::start_with(&folder.file(), &["--model", "ollama:qwen3:8b", "--base-url", &url]);
    let (_, run) = server.begin(&json!({ "topic": "tea", "sections": 1, "pause": 0 }));
    let shown = server.join(&run);
    assert_eq!(sections(&shown), ["Tea is old."]);
    let asked = answers.join().unwrap();
    assert_eq!((&asked["model"], &asked["messages"][1]["content"]), (&json!("qwen3:8b"), &json!("tea 1")));
}

/// Stops the server in the middle of reports, and starts another one on its file.
fn stopped_by(signal: Signal) {
    let folder = Folder::new(if signal == Signal::TERM { "drained" } else { "killed" });
    let mut server = Server::start(&folder.file());
    let begun = [300, 200]
        .map(|count| (count, server.begin(&json!({ "topic": "tea", "sections": count, "pause": 2 }))));
    for (_, (thread, _)) in &begun {
        while server.get(&format!("/threads/{thread}/state"))["values"]["text"]
            .as_array()
            .is_none_or(|text| text.len() < 5)
        {}
    }
    let ended_well = server.signal(signal);
    assert_eq!(ended_well, signal == Signal::TERM, "a drain is a success");
    let server = Server::start(&folder.file());
    for (count, (_, run)) in begun {
        let expected: Vec<String> = (1..=count).map(|section| format!("tea {section}")).collect();
        assert_eq!(sections(&server.join(&run)), expected, "each section once, in order");
    }
}

#[test]
fn a_drained_server_loses_nothing() {
    stopped_by(Signal::TERM);
}

#[test]
fn a_killed_server_loses_nothing_that_was_stored() {
    stopped_by(Signal::KILL);
}
