//! The log outside of the store. Each event is one line, appended by a single write. A kill may cut the write
//! short at the end of a page of the file, so each event begins with a line break.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::mark::Mark;

/// An event, and the number of its process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub by: u32,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A process begins. It finds `marks` in the state, and `inside` in subgraphs and waiting tasks.
    Found { marks: Vec<Mark>, inside: Vec<Mark> },
    /// The process took the thread.
    Took { fence: u64 },
    /// An attempt of a node failed, so it writes nothing to the state.
    Tried { run: String, mark: Mark, attempt: u32 },
    /// A node had its effect, or an interrupt was answered.
    Effect { run: String, mark: Mark, attempt: u32 },
    /// The store returned after storing this mark.
    Stored { mark: Mark },
    /// A call returned with these marks in the state.
    Left { marks: Vec<Mark> },
    /// The process dies here, or a moment later.
    Dies { at: String },
    /// The process stops here until the trial wakes it.
    Stops { at: String },
    /// The run finished. `passed` are the points that the process passed.
    Ended { marks: Vec<Mark>, passed: Vec<String> },
    /// A call failed, and the process gives up.
    Failed { code: String, message: String },
}

/// The log of one process.
pub struct Log {
    by: u32,
    sink: Mutex<Sink>,
}

struct Sink {
    /// `None` for a log that is kept only in memory.
    file: Option<File>,
    kept: Vec<Line>,
    stored: HashSet<Mark>,
}

impl Log {
    pub fn to_file(path: &Path, by: u32) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        Self::new(Some(file), by)
    }

    pub fn in_memory() -> Self {
        Self::new(None, 0)
    }

    fn new(file: Option<File>, by: u32) -> Self {
        Log { by, sink: Mutex::new(Sink { file, kept: Vec::new(), stored: HashSet::new() }) }
    }

    pub fn write(&self, event: Event) {
        let mut sink = self.sink.lock().unwrap();
        if let Event::Stored { mark } = &event {
            sink.stored.insert(mark.clone());
        }
        let line = Line { by: self.by, event };
        match &mut sink.file {
            None => sink.kept.push(line),
            Some(file) => {
                let text = format!("\n{}\n", serde_json::to_string(&line).unwrap());
                file.write_all(text.as_bytes()).unwrap();
            }
        }
    }

    /// Whether this process has logged the mark as stored.
    pub fn has_stored(&self, mark: &Mark) -> bool {
        self.sink.lock().unwrap().stored.contains(mark)
    }

    /// Returns the lines kept in memory and clears the log.
    pub fn take(&self) -> Vec<Line> {
        let mut sink = self.sink.lock().unwrap();
        sink.stored.clear();
        std::mem::take(&mut sink.kept)
    }
}

pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty());
    let events = lines.map(serde_json::from_str).filter(|event| !was_cut_short(event));
    events.map(Result::unwrap).collect()
}

fn was_cut_short(event: &serde_json::Result<Line>) -> bool {
    event.as_ref().is_err_and(serde_json::Error::is_eof)
}
