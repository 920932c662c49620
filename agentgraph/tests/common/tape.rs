//! A thread as the rows that were stored of it. A tape can be recorded, written to a file as JSON with
//! hexadecimal digits, and played back into a saver.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use agentgraph::checkpoint::{
    Catalog, Leases, PendingWrite, Place, Put, PutWrites, RowKind, StoreError, Upkeep, delegate,
};
use agentgraph::{CheckpointId, Checkpointer, MemorySaver};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tape {
    pub commits: Vec<Commit>,
    pub writes: Vec<Write>,
}

/// A checkpoint, and the segment beside it if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub branch: u32,
    pub step: u64,
    /// 0 for a full, 1 for a delta.
    pub kind: u8,
    pub record: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
}

/// A pending write on the last checkpoint of a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub task: String,
    pub slot: u32,
    pub bytes: String,
}

fn is_zero(branch: &u32) -> bool {
    *branch == 0
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

impl Tape {
    fn add(&mut self, put: PutWrites<'_>) {
        self.writes.extend(put.writes.iter().map(|write| Write {
            namespace: put.place.namespace.to_owned(),
            task: write.task.to_string(),
            slot: write.slot,
            bytes: hex(&write.bytes),
        }));
    }

    /// The same thread in format 1, which has no checksums, so that damaged bytes reach their readers.
    pub fn unchecked(&self) -> Tape {
        let record = |text: &str| {
            let bytes = unhex(text);
            assert_eq!(bytes[0], 2, "a record of format 2");
            hex(&[&[1], &bytes[5..]].concat())
        };
        let commits = self.commits.iter().map(|commit| Commit {
            record: record(&commit.record),
            segment: commit.segment.as_deref().map(record),
            ..commit.clone()
        });
        let writes = self.writes.iter().map(|write| {
            let bytes = unhex(&write.bytes);
            let value = bytes.strip_prefix(&[0xd6, 2]).map_or(&bytes[..], |rest| &rest[4..]);
            Write { bytes: hex(value), ..write.clone() }
        });
        Tape { commits: commits.collect(), writes: writes.collect() }
    }

    /// Stores the tape on thread `t` of a new saver.
    pub async fn play(&self) -> Arc<MemorySaver> {
        let saver = Arc::new(MemorySaver::new());
        self.play_into(&*saver).await;
        saver
    }

    /// Plays the tape into the saver that `around` makes from a recorder, and returns what the recorder
    /// stored.
    pub async fn through<C: Checkpointer>(&self, around: impl Fn(Recorder) -> C) -> Tape {
        let recorder = Recorder::default();
        self.play_into(&around(recorder.clone())).await;
        recorder.tape()
    }

    async fn play_into(&self, saver: &dyn Checkpointer) {
        for commit in &self.commits {
            let record = unhex(&commit.record);
            let segment = commit.segment.as_deref().map(unhex);
            let put = Put {
                segment: segment.as_deref(),
                ..Put::new(
                    Place { thread: "t", namespace: &commit.namespace },
                    CheckpointId::new(commit.branch, commit.step),
                    RowKind::from_number(commit.kind).unwrap(),
                    &record,
                )
            };
            saver.put(put).await.unwrap();
        }
        for write in &self.writes {
            let place = Place { thread: "t", namespace: &write.namespace };
            let head = self.commits.iter().rfind(|commit| commit.namespace == write.namespace);
            let head =
                head.map_or_else(CheckpointId::default, |head| CheckpointId::new(head.branch, head.step));
            let write = PendingWrite {
                task: write.task.parse().unwrap(),
                slot: write.slot,
                bytes: unhex(&write.bytes),
            };
            saver.put_writes(PutWrites::new(place, head, &[write])).await.unwrap();
        }
    }
}

/// A saver that stores and records the rows of all threads.
#[derive(Clone, Default)]
pub struct Recorder {
    inner: Arc<MemorySaver>,
    tape: Arc<Mutex<Tape>>,
}

impl Recorder {
    /// Returns the recorded rows, without the pending writes that a later checkpoint made obsolete.
    pub fn tape(&self) -> Tape {
        self.tape.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Checkpointer for Recorder {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.inner.put(put).await?;
        let mut tape = self.tape.lock().unwrap();
        tape.writes.retain(|write| write.namespace != put.place.namespace);
        tape.commits.push(Commit {
            namespace: put.place.namespace.to_owned(),
            branch: put.id.branch,
            step: put.id.step,
            kind: put.kind.to_number(),
            record: hex(put.record),
            segment: put.segment.map(hex),
        });
        tape.add(put.own_writes());
        Ok(())
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.inner.put_writes(put).await?;
        self.tape.lock().unwrap().add(put);
        Ok(())
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        None
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }

    delegate!(self => &self.inner; get, row, list, threads, delete_thread);
}
