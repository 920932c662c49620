//! [`Run`]: many questions, worked on several at once; and [`RunBook`], which remembers the runs.
//!
//! The file of a run has its questions, and nothing of what became of them: that is in the threads, one for
//! each question. So a run that was killed anywhere goes on with the questions whose threads have not ended.

mod runner;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use runner::{FileSource, Progress, RunEnd, Runner, content, fetch};

use crate::question::Question;

/// A run: its questions, and the settings that must stay the same while it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The name: the time of its beginning.
    pub id: String,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// Its subject. A run goes on only with the same.
    pub plan: Plan,
    /// The questions, in order.
    pub questions: Vec<Question>,
}

/// The subject of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Where the questions are from: `embedded`, an address or a file.
    pub source: String,
    /// The most questions, and their level.
    pub limit: Option<usize>,
    /// The level; `None` for all.
    pub level: Option<u8>,
    /// The primary model.
    pub model: String,
    /// The prompts: `a`, `b` or `ab`.
    pub prompts: String,
    /// Whether Python is allowed.
    pub python: bool,
    /// How often each question is run, if several times: the runs vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u8>,
}

impl Run {
    /// The thread of a question.
    pub fn thread(&self, task_id: &str) -> String {
        format!("{}/{task_id}", self.id)
    }
}

/// The runs of a folder, a file each.
#[derive(Clone, Debug)]
pub struct RunBook {
    folder: PathBuf,
}

impl RunBook {
    /// The runs of this folder, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        RunBook { folder: folder.into() }
    }

    /// Begins a run. Its file is there before its first question.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn begin(&self, plan: Plan, questions: Vec<Question>, now: SystemTime) -> io::Result<Run> {
        fs::create_dir_all(&self.folder)?;
        let stamp =
            Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y%m%d-%H%M%S").to_string();
        let ids = (1_u32..).map(|count| if count == 1 { stamp.clone() } else { format!("{stamp}-{count}") });
        let id = ids.into_iter().find(|id| !self.file(id).exists()).unwrap_or(stamp);
        let began = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let run = Run { id, began, plan, questions };
        crate::files::replace(&self.file(&run.id), &serde_json::to_vec_pretty(&run)?)?;
        Ok(run)
    }

    /// The run of this name; `None` if there is none.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn open(&self, id: &str) -> io::Result<Option<Run>> {
        if !is_id(id) {
            return Ok(None);
        }
        match fs::read(self.file(id)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names of all runs, the newest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        let names = entries.flatten().filter_map(name);
        let mut ids: Vec<_> = names
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .filter(|id| is_id(id))
            .collect();
        // A second run of the same second has a longer name.
        ids.sort_by_key(|id| std::cmp::Reverse((id.get(..15).map(str::to_owned), id.len(), id.clone())));
        Ok(ids)
    }

    /// The newest run.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn latest(&self) -> io::Result<Option<Run>> {
        match self.ids()?.first() {
            Some(id) => self.open(id),
            None => Ok(None),
        }
    }

    /// The file of a run's submission.
    pub fn submission(&self, run: &Run) -> PathBuf {
        self.folder.join(format!("{}.submission", run.id))
    }

    fn file(&self, id: &str) -> PathBuf {
        Path::new(&self.folder).join(format!("{id}.json"))
    }
}

/// A name leads nowhere else.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}
