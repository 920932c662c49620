//! Support for tests of the real program: temporary folders, processes that die with the test, and a proxy
//! that holds requests.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod gate;
mod leash;
#[cfg(unix)]
pub(crate) mod terminal;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use leash::Leash;
use serde_json::Value;
use upgrade_agent::client::{Experiment, UpgradeClient};

/// A folder that is removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("agent-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the program with this data folder, without the tester's own settings.
pub(crate) fn agent(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_upgrade-agent"));
    let kept: Vec<(String, String)> = std::env::vars().filter(|(name, _)| is_harmless(name)).collect();
    command
        .env_clear()
        .envs(kept)
        .env("HOME", folder.path())
        .arg("--data-dir")
        .arg(folder.file("data"))
        .args(args);
    command
}

/// Whether a process needs the variable to start on some platforms.
fn is_harmless(name: &str) -> bool {
    ["PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"].contains(&name)
}

/// Runs the program to its end with this input.
pub(crate) fn run(folder: &Folder, args: &[&str], input: &str) -> Ran {
    finish(agent(folder, args), input)
}

pub(crate) fn finish(mut command: Command, input: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _leash = Leash::on(&child);
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends early closes its input; the write then fails.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Ran(child.wait_with_output().unwrap())
}

/// A run that ended.
pub(crate) struct Ran(Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    /// Returns the output as one line of JSON.
    pub(crate) fn json(&self) -> Value {
        let out = self.out();
        assert_eq!(out.trim_end().lines().count(), 1, "{out}\n{}", self.err());
        serde_json::from_str(&out).unwrap()
    }

    /// Asserts that the program succeeded.
    pub(crate) fn good(self) -> Self {
        assert_eq!(self.code(), 0, "{}\n{}", self.out(), self.err());
        self
    }
}

/// Runs `ask TEXT --json`, which must succeed, and returns the turn.
pub(crate) fn ask(folder: &Folder, more: &[&str], text: &str) -> Value {
    let args: Vec<&str> = ["ask", "--json"].iter().chain(more).chain(&[text]).copied().collect();
    run(folder, &args, "").good().json()
}

pub(crate) fn reply(turn: &Value) -> &str {
    turn["reply"].as_str().unwrap()
}

/// A running program. It is killed at the end of the test, and if it runs for too long.
pub(crate) struct Running {
    _leash: Leash,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    seen: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running { _leash: Leash::on(&child), stdin: child.stdin.take(), stdout, child, seen: String::new() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads until the output contains a text, and returns the output up to its end.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let mut byte = [0];
        let mut bytes = Vec::new();
        loop {
            let so_far = String::from_utf8_lossy(&bytes).into_owned();
            if so_far.contains(text) {
                return so_far;
            }
            let read = self.stdout.read(&mut byte).unwrap();
            assert!(read > 0, "the program ended; expected {text:?}, got {so_far:?}");
            bytes.extend(byte);
        }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Kills the program with SIGKILL, and waits for its end.
    pub(crate) fn kill(mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.stdin.take());
    }

    /// Closes its input and waits for its end.
    pub(crate) fn end(mut self) -> (i32, String) {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }

    pub(crate) fn wait(mut self) -> i32 {
        self.child.wait().unwrap().code().expect("the program ended without a signal")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `upgrade-agent simulator` as a separate process.
pub(crate) struct Simulator {
    process: Running,
    pub(crate) url: String,
}

impl Simulator {
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::with(folder, &[])
    }

    /// Starts over the data of the agent's embedded server, which must not run.
    pub(crate) fn over_embedded_data(folder: &Folder) -> Self {
        let file = folder.file("data").join("server.db");
        Self::with(folder, &["--data-file", file.to_str().unwrap()])
    }

    pub(crate) fn with(folder: &Folder, more: &[&str]) -> Self {
        let args: Vec<&str> = ["simulator", "--port", "0"].iter().chain(more).copied().collect();
        let mut process = Running::start(agent(folder, &args));
        let url = process.line();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Simulator { process, url }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn wait(self) -> i32 {
        self.process.wait()
    }

    /// Returns the experiments, read over HTTP.
    pub(crate) fn experiments(&self) -> Vec<Experiment> {
        let client = UpgradeClient::builder(&self.url).build().unwrap();
        tokio::runtime::Runtime::new().unwrap().block_on(client.experiments()).unwrap()
    }
}

/// Returns the experiments of the agent's embedded server, read over HTTP.
pub(crate) fn embedded_experiments(folder: &Folder) -> Vec<Experiment> {
    Simulator::over_embedded_data(folder).experiments()
}

/// Returns a complete request for an experiment.
pub(crate) fn create(name: &str) -> String {
    format!(
        "create experiment {name} in assign-prog at SelectSection / absolute_value_plot_equality, 50/50, for everybody"
    )
}
