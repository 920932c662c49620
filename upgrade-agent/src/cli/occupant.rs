//! The process that serves a data file: a note beside the file, read by a program that finds it in use.
//!
//! The lock itself is SQLite's, on the data file. A note that a killed program left behind blocks nothing.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The program that serves a data file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Occupant {
    process: u32,
    url: String,
}

impl fmt::Display for Occupant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Occupant { process, url } = self;
        write!(
            out,
            "process {process}, which serves it: end that program, talk to its server with --url {url}"
        )
    }
}

/// A note that is deleted on drop.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    /// Writes the note for this process. A failure is ignored, because the note is only used in a message.
    pub(super) fn leave(data_file: &Path, url: &str) -> Self {
        let note = Note(beside(data_file));
        let text = serde_json::to_string(&Occupant { process: std::process::id(), url: url.to_owned() });
        let _ = std::fs::write(&note.0, text.unwrap_or_default());
        note
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The process in the note, if it can be read.
pub(super) fn of(data_file: &Path) -> Option<Occupant> {
    let text = std::fs::read_to_string(beside(data_file)).ok()?;
    serde_json::from_str(&text).ok()
}

fn beside(data_file: &Path) -> PathBuf {
    let mut name = data_file.as_os_str().to_owned();
    name.push(".in-use");
    name.into()
}
