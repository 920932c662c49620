//! The real program on a real socket: its answers, its events, and what is left of a run after a cancel, a
//! drain and a kill.
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
    /// The lines that it printed before it listened.
    said: Vec<String>,
}

impl Server {
    fn start(file: &Path) -> Self {
        Server::start_with(file, &[])
    }

    fn start_with(file: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serving"));
        let mut process =
            command.args(options).arg(file).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the server has ended: {said:?}");
            match line.trim().strip_prefix("listening on ") {
                Some(address) => {
                    let address = address.to_owned();
                    return Server { process, lines, address, said };
                }
                None => said.push(line.trim().to_owned()),
            }
        }
    }

    /// Sends a request. The answer is read until the server closes the connection.
    fn open(&self, method: &str, path: &str, body: Option<&Value>) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let length = body.len();
        let head = format!("{method} /threads/{path} HTTP/1.0\r\ncontent-type: application/json\r\n");
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
        BufReader::new(stream)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut answer = String::new();
        self.open(method, path, body).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")))
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).1
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, Some(body))
    }

    /// Asks for a thread until its report contains `text`.
    fn wait_for(&self, thread: &str, text: &str) -> Value {
        loop {
            let shown = self.get(thread);
            if shown["report"].as_str().is_some_and(|report| report.contains(text)) {
                return shown;
            }
        }
    }

    /// Asks for a thread until so many sections are written.
    fn wait_for_sections(&self, thread: &str, sections: usize) {
        while self.get(thread)["state"]["text"].as_array().is_none_or(|text| text.len() < sections) {}
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

const HOUR: u64 = 3_600_000;

fn sections(shown: &Value) -> Vec<&str> {
    shown["state"]["text"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn a_report_is_written_watched_and_published() {
    let folder = Folder::new("written");
    let server = Server::start(&folder.file());
    assert_eq!(server.get("7")["report"], Value::Null);
    let new = json!({"topic": "tea", "sections": 40, "pause": 5});
    assert_eq!(server.post("7", &new), (200, json!({"thread": "7"})));
    let mut read = String::new();
    server.open("GET", "7/events", None).read_to_string(&mut read).unwrap();
    let events: Vec<Value> = read
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert!(events.windows(2).all(|two| two[0]["seq"].as_u64() < two[1]["seq"].as_u64()));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "ended", "{last}");
    assert!(events.iter().any(|event| event["type"] == "update"), "{read}");

    let shown = server.wait_for("7", "waits for the answer to \"publish it?\"");
    assert_eq!(sections(&shown).len(), 40);
    // A stream of a thread that does not run ends at once.
    server.open("GET", "7/events", None).read_to_string(&mut read).unwrap();
    assert_eq!(server.post("7/answer", &json!(true)).0, 200);
    let shown = server.wait_for("7", "finished");
    assert_eq!(shown["state"]["published"], true);
    let (status, refused) = server.post("7/answer", &json!(true));
    assert_eq!((status, &refused["code"]), (409, &json!("E_NOTHING_TO_RESUME")));
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
    server.post("7", &json!({"topic": "tea", "sections": 1}));
    let shown = server.wait_for("7", "waits for the answer");
    assert_eq!(sections(&shown), ["Tea is old."]);
    let asked = answers.join().unwrap();
    assert_eq!((&asked["model"], &asked["messages"][1]["content"]), (&json!("qwen3:8b"), &json!("tea 1")));
}

#[test]
fn a_run_is_cancelled_and_can_go_on() {
    let folder = Folder::new("cancelled");
    let server = Server::start(&folder.file());
    assert_eq!(server.post("7/cancel", &json!(null)).1, json!({"cancel": "NotRunning"}));
    server.post("7", &json!({"topic": "tea", "sections": 2, "pause": HOUR}));
    let (status, busy) = server.post("7/proceed", &json!(null));
    assert_eq!((status, &busy["code"]), (409, &json!("E_THREAD_BUSY")));
    assert_eq!(server.post("7/cancel", &json!(null)), (200, json!({"cancel": "Requested"})));
    let shown = server.get("7");
    assert!(shown["report"].as_str().unwrap().ends_with("not running\n- node `write` is next"), "{shown}");
    assert_eq!(server.post("7/proceed", &json!(null)).0, 200);
    server.wait_for("7", "running");
    assert_eq!(server.post("7/cancel", &json!(null)).1, json!({"cancel": "Requested"}));
}

/// Stops the server in the middle of a report, and starts another one on its file.
fn stopped_by(signal: Signal) {
    let folder = Folder::new(if signal == Signal::TERM { "drained" } else { "killed" });
    let mut server = Server::start(&folder.file());
    for (thread, count) in [("7", 300), ("8", 200)] {
        server.post(thread, &json!({"topic": "tea", "sections": count, "pause": 2}));
    }
    server.post("waits", &json!({"topic": "tea", "sections": 1}));
    server.wait_for("waits", "waits for the answer");
    let mut reader = server.open("GET", "7/events", None);
    server.wait_for_sections("7", 5);
    let ended_well = server.signal(signal);
    assert_eq!(ended_well, signal == Signal::TERM, "a drain is a success");
    let mut read = String::new();
    let _ = reader.read_to_string(&mut read);
    if signal == Signal::TERM {
        let last = read.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!((&last["type"], &last["reason"]), (&json!("ended"), &json!("drained")), "{last}");
    }
    let server = Server::start(&folder.file());
    let went_on = |thread: &str| server.said.iter().any(|line| line.contains(&format!("`{thread}`")));
    assert!(went_on("7") && went_on("8") && !went_on("waits"), "{:?}", server.said);
    for (thread, count) in [("7", 300), ("8", 200)] {
        let shown = server.wait_for(thread, "waits for the answer");
        let expected: Vec<String> = (1..=count).map(|section| format!("tea {section}")).collect();
        assert_eq!(sections(&shown), expected, "each section once, in order");
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
