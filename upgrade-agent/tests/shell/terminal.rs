//! The program at a real pseudo-terminal, with the screen that a person would see.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Pty, open};

use super::leash::Leash;

/// The longest wait, so that a test fails and does not hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";
pub(crate) const UP: &str = "\u{1b}[A";

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// Every received byte.
    pub(crate) raw: Vec<u8>,
}

impl Terminal {
    /// Runs the command in a terminal of this many columns.
    pub(crate) fn start(command: &Command, columns: u16) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(200, columns)).unwrap();
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let child = pty_process::blocking::Command::new(command.get_program())
            .args(command.get_args())
            .env_clear()
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .envs(set)
            .spawn(pts)
            .unwrap();
        let pty = Arc::new(pty);
        let (sender, output) = channel();
        let reader = Arc::clone(&pty);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A read fails once the program has ended.
            while let Ok(read @ 1..) = (&*reader).read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let parser = vt100::Parser::new(number(200), number(columns), 0);
        Terminal { pty, child, output, parser, raw: Vec::new() }
    }

    pub(crate) fn keys(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    pub(crate) fn say(&self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Returns the text on the screen.
    pub(crate) fn shown(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen shows a text.
    pub(crate) fn until(&mut self, text: &str) {
        self.until_screen(&format!("{text:?}"), |shown| shown.contains(text));
    }

    /// Types a line, again each second, until the screen shows a text: what is typed in the moment in which a
    /// question appears answers nothing.
    pub(crate) fn say_until(&mut self, line: &str, text: &str) {
        let begun = Instant::now();
        while !self.shown().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "{text:?} did not come:\n{}", self.shown());
            self.say(line);
            while let Ok(bytes) = self.output.recv_timeout(Duration::from_secs(1)) {
                self.take(&bytes);
                if self.shown().contains(text) {
                    return;
                }
            }
        }
    }

    /// Waits until the prompt is the last line, so that the editor gets the keys.
    pub(crate) fn until_prompt(&mut self) {
        self.until_screen("the prompt", |shown| shown.trim_end_matches(' ').ends_with("\n>"));
    }

    pub(crate) fn until_screen(&mut self, wanted: &str, is_there: impl Fn(&str) -> bool) {
        while !is_there(&self.shown()) {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(why) => panic!("{wanted} did not come ({why}):\n{}", self.shown()),
            }
        }
    }

    /// Waits until the program has ended, and returns its exit code.
    pub(crate) fn end(&mut self) -> i32 {
        let _leash = Leash::on(&self.child);
        let code = self.child.wait().unwrap().code().unwrap();
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        code
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend(bytes);
        self.parser.process(bytes);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}
