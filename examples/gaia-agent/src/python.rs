//! [`Python`]: code of a model, in a process of its own.
//!
//! It is off unless the person allows it. Code runs in a child process that has
//!
//! - an empty environment, so no key;
//! - a new folder as its working directory, which is removed at the end. The question's files are in it,
//!   read-only, and a file that is downloaded later is there for the next call;
//! - limits: of time, processor time, memory, the size of its files and of its output.
//!
//! On Linux it is also confined: see [`helper`]. It reads its folder and its libraries, writes its folder,
//! starts no other program, has no network and no hold on other processes, and everything that it started
//! ends with the session. Where the system cannot confine it, [`PythonError::Refused`] says why, unless
//! [`unconfined`](PythonSettings::unconfined) allows it with the limits alone.
//!
//! One [`Python`] belongs to one question. Its session lives as long as the question is worked on by this
//! process.

#[cfg(target_os = "linux")]
mod confine;
mod interpreter;
#[cfg(target_os = "linux")]
mod keeper;
mod process;
mod settings;
#[cfg(target_os = "linux")]
mod tree;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::files::link;
use process::Process;

pub use settings::{PythonSettings, Sandbox};

/// Copies the files that the code may read into a folder, and returns the names of those that are too large.
pub type Files = Arc<dyn Fn(&Path) -> Vec<String> + Send + Sync>;

/// Runs as the helper that confines Python, if the program was started as one; a program calls this first.
///
/// The helper is a second process of the program. It watches what Python starts, and ends all of it past a
/// limit, at the end of the session, or when the program is gone. Its child, the program once more, gives up
/// its rights and becomes Python: Landlock decides which files it may open, a filter of system calls denies
/// the rest, such as sockets.
///
/// ```
/// fn main() -> std::process::ExitCode {
///     if let Some(ended) = gaia_agent::python::helper() {
///         return ended;
///     }
///     let settings = gaia_agent::python::PythonSettings::new("data").helper(std::env::current_exe().ok());
///     assert_eq!(settings.processes, 32);
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn helper() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    {
        let arguments: Option<Vec<String>> =
            std::env::args_os().skip(1).take(2).map(|argument| argument.into_string().ok()).collect();
        keeper::run(&arguments?)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The Python of one question.
pub struct Python {
    settings: PythonSettings,
    files: Option<Files>,
    session: Mutex<Option<Process>>,
}

/// The result of a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ran {
    /// The printed text.
    pub output: String,
    /// The number of characters that were cut.
    pub lost: u64,
    /// The value of its last expression.
    pub value: Option<String>,
    /// The error that ended it.
    pub error: Option<String>,
    /// Whether a new session was begun for it.
    #[serde(skip)]
    pub is_new_session: bool,
    /// The files that are too large to be in its folder.
    #[serde(skip)]
    pub left_out: Vec<String>,
}

/// What a session may have too much of, beside time and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Processes, or threads.
    Processes,
    /// Memory of all processes.
    Memory,
    /// Bytes on disk, those of removed files that are still open among them.
    Disk,
}

/// Why code did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PythonError {
    /// It took too long and was ended, with all that its session held.
    #[error("the code took longer than {0:?} and was ended, with its session")]
    TooSlow(Duration),
    /// Its session passed a limit, and was ended with all that it started.
    #[error("the session of the code was ended, with all that it started: it had too {}", match .0 {
        Limit::Processes => "many processes",
        Limit::Memory => "much memory in use",
        Limit::Disk => "many bytes on disk",
    })]
    TooMuch(Limit),
    /// It ended its own process, or the system did.
    #[error(
        "the process of the code ended: it used too much memory or processor time, or ended itself; its session ended with it"
    )]
    Ended,
    /// It could not be started.
    #[error("Python could not be started: {0}")]
    NotStarted(String),
    /// This system cannot keep code in its folder.
    #[error(
        "Python code cannot be confined here: {0}; use a Linux kernel with Landlock (6.2 or later with user namespaces, else 6.12), or \
         set `PythonSettings::unconfined` to run it with limits of time, memory and output alone"
    )]
    Refused(String),
}

impl Python {
    /// Nothing runs yet.
    pub fn new(settings: PythonSettings) -> Self {
        Python { settings, files: None, session: Mutex::default() }
    }

    /// Sets the files that the code sees in its folder.
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.files = Some(files);
        self
    }

    /// The warning that belongs to each result: see [`Sandbox::warning`].
    pub async fn warning(&self) -> Option<&'static str> {
        self.settings.sandbox().await.ok().and_then(|sandbox| sandbox.warning())
    }

    /// Runs code in the session of the question, which is begun if there is none.
    ///
    /// # Errors
    /// If the process cannot be started, or ends.
    pub async fn run(&self, code: &str) -> Result<Ran, PythonError> {
        let mut session = self.session.lock().await;
        let (mut process, is_new) = match session.take() {
            Some(process) => (process, false),
            None => (Process::start(&self.settings).await?, true),
        };
        let left_out = self.show_files(&process).await;
        let ran = process.call(json!({ "code": code }), self.settings.timeout).await?;
        // A call that failed, or was dropped, leaves no session: its process ends with it.
        *session = Some(process);
        Ok(Ran { is_new_session: is_new, left_out, ..ran })
    }

    /// Runs a file in a process of its own.
    ///
    /// # Errors
    /// If the process cannot be started, or ends.
    pub async fn run_file(&self, name: &str, source: &[u8]) -> Result<Ran, PythonError> {
        let mut process = Process::start(&self.settings).await?;
        let left_out = self.show_files(&process).await;
        let path = process.folder.work().join(name);
        // The link of its name, if there is one, leads to a copy that stays as it is.
        let _ = tokio::fs::remove_file(&path).await;
        let written = tokio::fs::write(&path, source).await;
        written.map_err(|error| PythonError::NotStarted(error.to_string()))?;
        let ran = process.call(json!({ "file": name }), self.settings.timeout).await?;
        Ok(Ran { is_new_session: true, left_out, ..ran })
    }

    /// Brings the files beside the working folder of the code up to date, and links them into it.
    async fn show_files(&self, process: &Process) -> Vec<String> {
        let Some(files) = self.files.clone() else { return Vec::new() };
        let (shown, work) = (process.folder.files(), process.folder.work());
        let copied = tokio::task::spawn_blocking(move || {
            let left_out = files(&shown);
            for entry in shown.read_dir().into_iter().flatten().flatten() {
                // A name that the code has taken is its own.
                let _ = link(&Path::new("../files").join(entry.file_name()), &work.join(entry.file_name()));
            }
            left_out
        });
        copied.await.unwrap_or_default()
    }
}

impl fmt::Debug for Python {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Python").field("settings", &self.settings).finish_non_exhaustive()
    }
}
