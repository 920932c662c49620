//! [`Marks`]: what nodes have done, in a file that outlives the processes of the workers.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentgraph::prelude::Ctx;
use serde::{Deserialize, Serialize};

/// Where nodes write what they do: one line of the file for each mark, written at once.
#[derive(Clone)]
pub struct Marks(Option<Arc<File>>);

/// A task has begun or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub what: What,
    pub thread: String,
    pub node: String,
    pub task: String,
    pub attempt: u32,
    pub process: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    Began,
    Ended,
    /// A durable step was done.
    Step,
}

impl Marks {
    /// No marks.
    pub fn none() -> Self {
        Marks(None)
    }

    pub fn in_file(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        Marks(Some(Arc::new(file)))
    }

    pub fn mark(&self, ctx: &Ctx, what: What) {
        let Some(file) = &self.0 else { return };
        let mark = Mark {
            what,
            thread: ctx.thread().unwrap_or_default().to_owned(),
            node: ctx.node().to_owned(),
            task: ctx.task_id().to_string(),
            attempt: ctx.attempt(),
            process: std::process::id(),
        };
        let line = serde_json::to_string(&mark).unwrap() + "\n";
        (&**file).write_all(line.as_bytes()).unwrap();
    }
}

/// The file of marks of one test.
pub struct MarkFile(PathBuf);

impl MarkFile {
    pub fn new(folder: &Path) -> Self {
        let path = folder.join("marks");
        File::create(&path).unwrap();
        MarkFile(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn read(&self) -> Vec<Mark> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        // The last line may be on its way into the file.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The marks of one thread.
    pub fn of(&self, thread: &str) -> Vec<Mark> {
        self.read().into_iter().filter(|mark| mark.thread == thread).collect()
    }
}
