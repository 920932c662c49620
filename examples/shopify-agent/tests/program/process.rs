//! The program as a child process, and calls to it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use shopify_agent::embedded::EmbeddedShop;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// A bound on waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("shop-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running program. It is killed on drop.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    client: reqwest::Client,
}

pub(crate) fn program(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shopify-agent"));
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", folder.path()).arg("--data-dir").arg(folder.path()).kill_on_drop(true);
    command
}

impl Server {
    /// Starts the program on a free port, with its embedded shop.
    pub(crate) async fn start(folder: &Folder) -> Self {
        Self::start_with(program(folder).args(["--listen", "127.0.0.1:0"])).await
    }

    /// Starts the program on a free port, with a shop of the test, which outlives it.
    pub(crate) async fn for_shop(folder: &Folder, shop: &EmbeddedShop, more: &[&str]) -> Self {
        let settings = shop.settings();
        let mut command = program(folder);
        let listen: &[&str] = if more.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        command.args(listen).args(["--shop-url", &settings.url]).args(more);
        Self::start_with(command.env("SHOPIFY_ACCESS_TOKEN", settings.token.expose_secret())).await
    }

    pub(crate) async fn start_with(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it starts").unwrap();
        let url = first.expect("it says its address").strip_prefix("The shop is open: ").unwrap().to_owned();
        // What else it prints is read, so that it can go on.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Server { child, url, client: agentgraph_llm::http_client_builder().build().unwrap() }
    }

    /// As `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// As `kill`.
    pub(crate) async fn terminate(mut self) -> bool {
        let id = rustix::process::Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap().success()
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(format!("{}{path}", self.url)).send().await.unwrap()
    }

    pub(crate) fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.post(format!("{}{path}", self.url))
    }

    /// Begins a turn.
    pub(crate) async fn run(&self, body: &Value) -> Reply {
        let call = self.post("run-reasoning-agent").header("accept", "text/event-stream");
        Reply::new(call.json(body).send().await.unwrap())
    }

    /// What is kept of a task, once it has ended.
    pub(crate) async fn ended(&self, task: &str) -> Value {
        let mut report = json!(null);
        for _ in 0..600 {
            let answer = self.get(&format!("tasks/{task}")).await;
            if answer.status().is_success() {
                report = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
                if report["status"] != "running" {
                    return report;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{task} does not end: {report}");
    }
}

/// The stream of a turn.
pub(crate) struct Reply {
    pub(crate) response: reqwest::Response,
    pub(crate) task: String,
    rest: String,
}

impl Reply {
    fn new(response: reqwest::Response) -> Self {
        let task = response.headers()["x-task-id"].to_str().unwrap().to_owned();
        Reply { response, task, rest: String::new() }
    }

    /// The next frame; `None` at the end, or if the connection breaks.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let frame = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
                self.rest = rest.to_owned();
                return Some(frame);
            }
            let chunk =
                tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("a frame or the end");
            self.rest.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    pub(crate) async fn all(mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// Reads until a node has sent its frame.
    pub(crate) async fn until(&mut self, node: &str) -> Value {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("no frame of {node}"));
            if frame["node"] == node {
                return frame;
            }
        }
    }
}

/// A message in a conversation.
pub(crate) fn message(guid: &str, text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }], "session": { "guid": guid } })
}

/// A click in a conversation.
pub(crate) fn click(session: &Value, tool: &str, parameters: &Value) -> Value {
    let action = json!({ "type": "tool", "details": { "tool": tool, "parameters": parameters } });
    json!({ "messages": [], "session": session, "action": action })
}

/// The chunks of a response as they arrive.
pub(crate) async fn chunks(response: reqwest::Response) -> Vec<String> {
    let chunks = response.bytes_stream().map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap());
    chunks.collect().await
}

/// What a program that does not start says, and its exit code.
pub(crate) async fn refused(command: &mut Command) -> (String, Option<i32>) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    (said, child.wait().await.unwrap().code())
}
