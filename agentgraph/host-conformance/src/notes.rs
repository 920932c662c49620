//! [`Notes`]: a file in which nodes of the kit note that they run. All processes share it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use agentgraph::BoxError;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

/// The file in which the nodes of the kit note that they run. Every process that runs them opens the same
/// one, on one machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Notes {
    file: Arc<NotesFile>,
    patience: Duration,
}

#[derive(Debug)]
struct NotesFile {
    path: PathBuf,
    is_temporary: bool,
}

impl Drop for NotesFile {
    fn drop(&mut self) {
        if self.is_temporary {
            // A file that is left over does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) thread: String,
    pub(super) node: String,
    pub(super) task: String,
    pub(super) attempt: u32,
    pub(super) what: String,
    /// The time of the machine's clock, in microseconds since 1970.
    pub(super) at: u64,
}

/// How long a node waits for another one before it goes on without.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a file is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Notes {
    /// A new file in the machine's folder for temporary files. It is removed when the last clone is dropped.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn temporary() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.notes", fresh_prefix());
        let path = std::env::temp_dir().join(name);
        File::create_new(&path)?;
        Ok(Notes::of(path, true))
    }

    /// The file with this path, which another process has made, or makes when its first node runs.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Notes::of(path.into(), false)
    }

    fn of(path: PathBuf, is_temporary: bool) -> Self {
        Notes { file: Arc::new(NotesFile { path, is_temporary }), patience: PATIENCE }
    }

    /// How long nodes wait for each other where a clause is about tasks that run at the same time; 10 seconds
    /// if not set. A host that does not let them fails such a clause after this time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(super) fn longest_wait(&self) -> Duration {
        self.patience
    }

    /// The path of the file, to be passed to other processes.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Notes something about a task.
    pub(super) fn note(&self, ctx: &Ctx, what: &str) -> Result<(), BoxError> {
        self.write(&Note {
            thread: ctx.thread().unwrap_or_default().to_owned(),
            node: ctx.node().to_owned(),
            task: ctx.task_id().to_string(),
            attempt: ctx.attempt(),
            what: what.to_owned(),
            at: now(),
        })
    }

    /// Notes something about a thread, in the name of the kit.
    pub(super) fn say(&self, thread: &str, what: &str) -> Result<(), BoxError> {
        let (node, task) = ("the kit".to_owned(), String::new());
        self.write(&Note {
            thread: thread.to_owned(),
            node,
            task,
            attempt: 0,
            what: what.to_owned(),
            at: now(),
        })
    }

    fn write(&self, note: &Note) -> Result<(), BoxError> {
        let mut line = serde_json::to_vec(note)?;
        line.push(b'\n');
        // One write to a file that is opened for appending is not divided by those of other processes.
        OpenOptions::new().create(true).append(true).open(&self.file.path)?.write_all(&line)?;
        Ok(())
    }

    /// The notes about a thread, in the order in which they were written.
    pub(super) fn of_thread(&self, thread: &str) -> Result<Vec<Note>, BoxError> {
        let text = match fs::read_to_string(&self.file.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let notes = text.lines().map(serde_json::from_str::<Note>).collect::<Result<Vec<_>, _>>()?;
        Ok(notes.into_iter().filter(|note| note.thread == thread).collect())
    }

    /// Waits until the notes about a thread are so, and says whether they became so in time.
    pub(super) async fn wait(
        &self,
        thread: &str,
        are_so: impl Fn(&[Note]) -> bool + Send,
    ) -> Result<bool, BoxError> {
        let begun = Instant::now();
        loop {
            if are_so(&self.of_thread(thread)?) {
                return Ok(true);
            }
            if begun.elapsed() > self.patience {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits, in a node, until a node of the same thread has noted something.
    pub(super) async fn wait_in(&self, ctx: &Ctx, node: &str, what: &str) -> Result<bool, BoxError> {
        self.wait(ctx.thread().unwrap_or_default(), |notes| count(notes, node, what) > 0).await
    }
}

/// How often a node has noted something.
pub(super) fn count(notes: &[Note], node: &str, what: &str) -> usize {
    notes.iter().filter(|note| note.node == node && note.what == what).count()
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A name that no other process and no earlier call has.
pub(crate) fn fresh_prefix() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("kit-{:x}-{:x}", since.as_micros(), std::process::id())
}
