//! Kills programs that do not end, so that the test that waits for them fails and does not hang.

use std::process::{Child, Command};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A limit that no program of a test comes near, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Kills the program if it runs for too long; does nothing after it is dropped.
pub(crate) struct Leash {
    _held: Sender<()>,
}

impl Leash {
    pub(crate) fn on(child: &Child) -> Self {
        let (held, gone) = channel::<()>();
        let id = child.id().to_string();
        std::thread::spawn(move || {
            if gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        Leash { _held: held }
    }
}
