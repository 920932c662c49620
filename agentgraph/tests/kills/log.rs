//! The log outside of the store: one line an event, each appended by a single write. A kill may cut that
//! short where a page of the file ends, so each event begins a line of its own.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::mark::Mark;

/// What happened, and in which process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub by: u32,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A process begins, and finds these marks in the state, and those inside of subgraphs and waiting tasks.
    Found { marks: Vec<Mark>, inside: Vec<Mark> },
    /// It has the thread.
    Took { fence: u64 },
    /// A node did something to the world that it will not tell the state, since it fails.
    Tried { run: String, mark: Mark, attempt: u32 },
    /// A node did something to the world, or somebody gave an answer.
    Effect { run: String, mark: Mark, attempt: u32 },
    /// The store returned from storing what carries this mark.
    Stored { mark: Mark },
    /// A call returned, and left these marks in the state.
    Left { marks: Vec<Mark> },
    /// The process dies here, or a moment later.
    Dies { at: String },
    /// The process stands still here until somebody wakes it.
    Stops { at: String },
    /// The run is at its end. The process came by these points.
    Ended { marks: Vec<Mark>, passed: Vec<String> },
    /// A call failed, and the process gives up.
    Failed { code: String, message: String },
}

/// Where the events of one process go.
pub struct Log {
    by: u32,
    sink: Mutex<Sink>,
}

struct Sink {
    /// None for a log that is only kept in memory.
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

    /// Whether this process has said so.
    pub fn has_stored(&self, mark: &Mark) -> bool {
        self.sink.lock().unwrap().stored.contains(mark)
    }

    /// What was kept in memory; begins anew.
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
