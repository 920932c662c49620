//! [`Log`]: what a run does, as lines of a file; and [`Secrets`], which no line shows.
//!
//! A line begins with the time, the task and the kind of the event. Further lines of the same event are
//! indented, so no text of a model or of a page can pass for a line of the log.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

/// A shorter secret is not searched for: it may be a part of any word.
const SHORTEST: usize = 6;

/// Keys, which are removed from texts.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[SecretString]>);

impl Secrets {
    /// These keys.
    pub fn new(keys: impl IntoIterator<Item = SecretString>) -> Self {
        let long = |key: &SecretString| key.expose_secret().trim().len() >= SHORTEST;
        Secrets(keys.into_iter().filter(long).collect())
    }

    /// The text without the keys.
    ///
    /// ```
    /// use gaia_agent::log::Secrets;
    ///
    /// let secrets = Secrets::new(["sk-not-a-real-key".into()]);
    /// assert_eq!(secrets.mask("the key sk-not-a-real-key is wrong"), "the key [key] is wrong");
    /// ```
    pub fn mask(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, key| text.replace(key.expose_secret().trim(), "[key]"))
    }

    /// Whether a text has one of the keys.
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|key| text.contains(key.expose_secret().trim()))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Secrets({})", self.0.len())
    }
}

/// A log of a run, or none. Cheap to clone.
#[derive(Clone, Default)]
pub struct Log {
    file: Option<Arc<(PathBuf, Mutex<File>)>>,
    secrets: Secrets,
}

impl Log {
    /// Writes nothing.
    pub fn off(secrets: Secrets) -> Self {
        Log { file: None, secrets }
    }

    /// A new file in a folder, named after the time: `agent_run_20250930_142501.log`, in UTC.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(folder: &Path, now: SystemTime, secrets: Secrets) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let stamp =
            Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y%m%d_%H%M%S").to_string();
        for count in 1.. {
            let more = if count == 1 { String::new() } else { format!("_{count}") };
            let path = folder.join(format!("agent_run_{stamp}{more}.log"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Log { file: Some(Arc::new((path, Mutex::new(file)))), secrets }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("there is always a next number")
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.0.as_path())
    }

    /// The keys that no line shows.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Writes one event. A full disk loses the line, not the run.
    pub fn line(&self, task: &str, event: &str, text: &str) {
        let Some(file) = &self.file else { return };
        let now = Timestamp::now();
        let text = self.secrets.mask(text);
        let mut line = format!("{now:.3} [{}] {event}", one_line(task));
        let mut parts = text.lines();
        if let Some(first) = parts.next() {
            line += &format!(": {}", one_line(first));
        }
        for part in parts {
            line += &format!("\n    {}", one_line(part));
        }
        line.push('\n');
        let mut file = file.1.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = file.write_all(line.as_bytes());
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// An error with all its causes, as one text.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text += &format!("\ncaused by: {said}");
        }
        cause = error.source();
    }
    text
}

impl fmt::Debug for Log {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Log").field("path", &self.path()).finish_non_exhaustive()
    }
}
