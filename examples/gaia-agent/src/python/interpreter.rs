//! [`Interpreter`]: where Python is, what it reads to run, and which libraries it has.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use tokio::process::Command;

use super::PythonError;

const DESCRIBE: &str = include_str!("describe.py");
/// The most libraries that the model is told of.
const MOST_NAMED: usize = 80;

/// What the interpreter says about itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Interpreter {
    pub(super) program: PathBuf,
    version: String,
    /// The names of those that are not of Python itself.
    libraries: Vec<String>,
    /// The folders and files that it reads.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) read: Vec<PathBuf>,
    /// Itself and its loader.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) execute: Vec<PathBuf>,
}

impl Interpreter {
    pub(super) async fn find(program: &Path) -> Result<Self, PythonError> {
        let why = || {
            let name = program.display();
            PythonError::NotStarted(format!("`{name}` is not installed, or no Python 3.8 or later"))
        };
        let mut asked = Command::new(which(program).ok_or_else(why)?);
        asked.args(["-I", "-c", DESCRIBE]).stdin(Stdio::null()).kill_on_drop(true);
        let said = asked.output().await.map_err(|_| why())?;
        serde_json::from_slice(&said.stdout).map_err(|_| why())
    }

    pub(super) fn introduction(&self) -> String {
        let named: Vec<_> = self.libraries.iter().take(MOST_NAMED).map(String::as_str).collect();
        let libraries = match (named.join(", "), self.libraries.len() - named.len()) {
            (none, _) if none.is_empty() => "no other libraries than its own".to_owned(),
            (named, 0) => format!("these libraries beside its own: {named}"),
            (named, more) => format!("these libraries beside its own: {named}, and {more} more"),
        };
        format!("Python code runs in Python {} with {libraries}.", self.version)
    }
}

/// The whole path of a program, since the child's environment has no path to search.
pub(super) fn which(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
