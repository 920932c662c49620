//! Who serves a data file: a note beside it, read by the program that finds the file in use.
//!
//! The lock is SQLite's and lies on the data file; a note that a killed program left behind keeps nobody out.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The program that has a data file.
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

/// A note that is gone with this value.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    /// Says that this process serves the file. Without the note all goes on: it is for a message only.
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

/// Who has the file, as far as he has told.
pub(super) fn of(data_file: &Path) -> Option<Occupant> {
    let text = std::fs::read_to_string(beside(data_file)).ok()?;
    serde_json::from_str(&text).ok()
}

fn beside(data_file: &Path) -> PathBuf {
    let mut name = data_file.as_os_str().to_owned();
    name.push(".in-use");
    name.into()
}
