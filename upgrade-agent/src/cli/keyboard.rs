//! Lines from standard input, read on a thread of their own: a turn can be listened to and stopped meanwhile.

use std::io::BufRead;

use tokio::sync::mpsc::{Receiver, channel};

/// The lines of standard input.
pub(super) struct Keyboard {
    lines: Receiver<String>,
}

impl Keyboard {
    pub(super) fn new() -> Self {
        let (sender, lines) = channel(1);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            let mut bytes = Vec::new();
            while input.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
                let line = String::from_utf8_lossy(&bytes).trim().to_owned();
                bytes.clear();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Keyboard { lines }
    }

    /// The next line; `None` at the end of the input.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
