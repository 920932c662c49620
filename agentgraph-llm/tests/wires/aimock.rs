//! `aimock`, a mock of the providers that others wrote. `.ci/aimock` installs it and runs its tests.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use agentgraph_llm::prelude::*;
use serde_json::{Value, json};

use crate::wires::server::Waits;
use crate::wires::wire::{Settings, Wire};

pub struct Aimock {
    pub url: String,
    process: Child,
    /// Kept open: the server writes into it.
    _output: BufReader<ChildStdout>,
}

impl Aimock {
    /// Starts a server on a free port of the loopback address. `name` is that of the test.
    pub fn start(name: &str, fixtures: &[Value]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aimock").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (config, answers) = (folder.join("config.json"), folder.join("fixtures.json"));
        std::fs::write(&answers, json!({ "fixtures": fixtures }).to_string()).unwrap();
        std::fs::write(&config, json!({"llm": {"fixtures": answers}}).to_string()).unwrap();

        let program = std::env::var("AIMOCK").expect("run `.ci/aimock`, which sets the program's path");
        let mut command = Command::new("node");
        command.args([program.as_str(), "--host", "127.0.0.1", "--port", "0", "--config"]).arg(&config);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("node starts");
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let url = output
            .by_ref()
            .lines()
            .find_map(|line| line.unwrap().split_once("listening on ").map(|(_, url)| url.trim().to_owned()));
        Aimock { url: url.expect("aimock starts"), process, _output: output }
    }

    /// A model of the wire. Its requests are counted apart from those of others.
    pub fn model(&self, wire: &dyn Wire) -> Arc<dyn ChatModel> {
        wire.model(&self.settings(wire)).unwrap()
    }

    pub fn settings(&self, wire: &dyn Wire) -> Settings {
        let header = Some(("X-Test-Id", wire.name()));
        Settings { header, waits: Waits::default(), ..Settings::at(&self.url) }
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// An answer to messages that have the text.
pub fn fixture(text: &str, response: Value) -> Value {
    json!({"match": {"userMessage": text}, "response": response})
}

/// Like [`fixture`], sent one UTF-16 unit in a delta.
pub fn in_pieces(text: &str, response: Value) -> Value {
    json!({"match": {"userMessage": text}, "response": response, "chunkSize": 1})
}

pub fn find() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolSpec::new("find", "Finds files.", schema)
}
