//! The program, run to its end or killed.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::common::Folder;

/// A limit that no program of a test comes near, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The program with this data folder, without the tester's own settings.
pub fn program(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gaia-agent"));
    let is_harmless =
        |name: &str| ["PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"].contains(&name);
    let kept: Vec<(String, String)> = std::env::vars().filter(|(name, _)| is_harmless(name)).collect();
    let work = folder.file("work");
    std::fs::create_dir_all(&work).unwrap();
    command.env_clear().envs(kept).env("HOME", folder.path()).current_dir(work);
    command.args(args).arg("--data-dir").arg(folder.file("data"));
    command
}

/// Kills a program that runs for too long, so that its test fails and does not hang.
struct Leash(#[allow(dead_code)] Sender<()>);

impl Leash {
    fn on(child: &Child) -> Self {
        let (held, gone) = channel::<()>();
        let id = child.id().to_string();
        std::thread::spawn(move || {
            if gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        Leash(held)
    }
}

/// A run that ended.
pub struct Ran(Output);

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    pub fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    /// Asserts that the program succeeded.
    #[track_caller]
    pub fn good(self) -> Self {
        assert_eq!(self.code(), Some(0), "{}\n{}", self.out(), self.err());
        self
    }
}

/// Runs the program to its end.
pub fn run(folder: &Folder, args: &[&str]) -> Ran {
    finish(program(folder, args))
}

pub fn finish(mut command: Command) -> Ran {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _leash = Leash::on(&child);
    Ran(child.wait_with_output().unwrap())
}

/// A running program. It is killed at the end of the test.
pub struct Running {
    _leash: Leash,
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { _leash: Leash::on(&child), child, out }
    }

    /// The next line of its output; empty at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    pub fn wait(mut self) -> Option<i32> {
        let mut rest = String::new();
        while self.out.read_line(&mut rest).unwrap() > 0 {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
