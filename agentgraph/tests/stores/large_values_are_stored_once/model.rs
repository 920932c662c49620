//! Random calls on a store and on a small model, and the invariants of the tables afterwards.
//!
//! The model keeps every row and write unchanged. The records here are not MessagePack, so a long record as a
//! whole is one large value. The values in the store must be the long records of the model, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Checkpointer, ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, RowKind, SqliteSaver,
};
use agentgraph::{CheckpointId, MemorySaver};
use proptest::prelude::*;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::sqlite_folder::Folder;

/// The least number of bytes in a large record.
pub(crate) const FROM: usize = 8;

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Put {
        thread: usize,
        branch: u32,
        record: usize,
        segment: Option<usize>,
        clears: bool,
    },
    /// Starts a new branch, as a fork does.
    Fork {
        thread: usize,
        record: usize,
    },
    /// A slot may occur more than once.
    Write {
        thread: usize,
        records: Vec<(u32, usize)>,
    },
    Copy {
        from: usize,
        to: usize,
    },
    /// Removes the first `steps` steps of the branch and makes the next one a full record.
    Prune {
        thread: usize,
        branch: u32,
        steps: u64,
        full: usize,
    },
    Delete {
        thread: usize,
    },
}

const THREADS: [&str; 4] = ["a", "b", "c", "d"];

/// Returns a record with this number. Some records are short, some long, and some almost equal.
fn record(number: usize) -> Vec<u8> {
    let mut bytes = vec![0xc1; 2 + 3 * (number % 6)];
    bytes.push((number % 9) as u8);
    bytes
}

pub(crate) fn calls() -> impl Strategy<Value = Vec<Call>> {
    let thread = 0..THREADS.len();
    let branch = 0..3_u32;
    let number = 0..54_usize;
    let call = prop_oneof![
        6 => (thread.clone(), branch.clone(), number.clone(), proptest::option::of(number.clone()), any::<bool>())
            .prop_map(|(thread, branch, record, segment, clears)| {
                Call::Put { thread, branch, record, segment, clears }
            }),
        2 => (thread.clone(), number.clone()).prop_map(|(thread, record)| Call::Fork { thread, record }),
        3 => (thread.clone(), proptest::collection::vec((0..4_u32, number.clone()), 1..4))
            .prop_map(|(thread, records)| Call::Write { thread, records }),
        1 => (thread.clone(), thread.clone()).prop_map(|(from, to)| Call::Copy { from, to }),
        2 => (thread.clone(), branch, 1..4_u64, number)
            .prop_map(|(thread, branch, steps, full)| Call::Prune { thread, branch, steps, full }),
        1 => thread.prop_map(|thread| Call::Delete { thread }),
    ];
    proptest::collection::vec(call, 1..60)
}

#[derive(Clone, Default)]
struct Thread {
    rows: BTreeMap<(u32, u64), (RowKind, Vec<u8>)>,
    segments: BTreeMap<(u32, u64), Vec<u8>>,
    writes: BTreeMap<(u32, u64, u32), Vec<u8>>,
}

impl Thread {
    fn newest(&self, branch: u32) -> Option<u64> {
        self.rows.range((branch, 0)..=(branch, u64::MAX)).next_back().map(|((_, step), _)| *step)
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.writes.is_empty()
    }

    fn put(&mut self, branch: u32, record: Vec<u8>, segment: Option<Vec<u8>>, clears: bool) -> u64 {
        let step = self.newest(branch).map_or(0, |step| step + 1);
        let kind = if step == 0 { RowKind::Full } else { RowKind::Delta };
        self.rows.insert((branch, step), (kind, record));
        self.segments.extend(segment.map(|segment| ((branch, step), segment)));
        if clears {
            let before = step.saturating_sub(1);
            self.writes.retain(|(of, step, _), _| *of != branch || *step != before);
        }
        step
    }

    fn all(&self) -> impl Iterator<Item = &Vec<u8>> {
        let rows = self.rows.values().map(|(_, record)| record);
        rows.chain(self.segments.values()).chain(self.writes.values())
    }
}

#[derive(Default)]
pub(crate) struct Model(BTreeMap<usize, Thread>);

impl Model {
    /// Makes the call on the model and on the store.
    pub(crate) async fn make(&mut self, store: &dyn Checkpointer, call: &Call) {
        match call {
            Call::Put { thread, branch, record: number, segment, clears } => {
                let (record, segment) = (record(*number), segment.map(record));
                self.put(store, *thread, *branch, record, segment, *clears).await;
            }
            Call::Fork { thread, record: number } => {
                let last = self.0.get(thread).and_then(|found| found.rows.keys().next_back().copied());
                let branch = last.map_or(0, |(branch, _)| branch + 1);
                self.put(store, *thread, branch, record(*number), None, false).await;
            }
            Call::Write { thread, records } => {
                let place = Place::root(THREADS[*thread]);
                let found = self.0.entry(*thread).or_default();
                let at = CheckpointId::new(0, found.newest(0).unwrap_or(0));
                let writes: Vec<PendingWrite> = records
                    .iter()
                    .map(|(slot, number)| PendingWrite {
                        task: TaskId::from_u128(3),
                        slot: *slot,
                        bytes: record(*number),
                    })
                    .collect();
                store.put_writes(PutWrites::new(place, at, &writes)).await.unwrap();
                found
                    .writes
                    .extend(writes.into_iter().map(|write| ((at.branch, at.step, write.slot), write.bytes)));
            }
            Call::Copy { from, to } => {
                let copied = store.upkeep().unwrap().copy_thread(THREADS[*from], THREADS[*to]).await;
                let there = self.0.get(to).is_some_and(|thread| !thread.is_empty());
                let known = self.0.get(from).is_some_and(|thread| !thread.is_empty());
                assert_eq!(copied.is_ok(), !there && known, "{call:?}");
                if let (false, Some(thread)) = (there, self.0.get(from).cloned()) {
                    self.0.insert(*to, thread);
                }
            }
            Call::Prune { thread, branch, steps, full } => {
                self.prune(store, *thread, *branch, *steps, record(*full)).await;
            }
            Call::Delete { thread } => {
                store.delete_thread(THREADS[*thread]).await.unwrap();
                self.0.remove(thread);
            }
        }
    }

    async fn put(
        &mut self,
        store: &dyn Checkpointer,
        thread: usize,
        branch: u32,
        record: Vec<u8>,
        segment: Option<Vec<u8>>,
        clears_writes: bool,
    ) {
        let found = self.0.entry(thread).or_default();
        let step = found.put(branch, record.clone(), segment.clone(), clears_writes);
        let kind = if step == 0 { RowKind::Full } else { RowKind::Delta };
        let place = Place::root(THREADS[thread]);
        let id = CheckpointId::new(branch, step);
        let segment = segment.as_deref();
        let put = Put {
            place,
            id,
            fence: 0,
            kind,
            record: &record,
            segment,
            clears_writes,
            parent: None,
            writes: &[],
        };
        store.put(put).await.unwrap();
    }

    async fn prune(
        &mut self,
        store: &dyn Checkpointer,
        thread: usize,
        branch: u32,
        steps: u64,
        full: Vec<u8>,
    ) {
        let Some(found) = self.0.get_mut(&thread) else { return };
        let first =
            found.rows.range((branch, 0)..=(branch, u64::MAX)).next().map_or(0, |((_, step), _)| *step);
        let end = first + steps;
        let id = CheckpointId::new(branch, end);
        let fulls = [(id, full.clone())];
        let gone = [(branch, 0..end)];
        let place = Place::root(THREADS[thread]);
        let rewrite = Rewrite { place, fence: 0, fulls: &fulls, unfold: &[], gone: &gone };
        store.upkeep().unwrap().rewrite(rewrite).await.unwrap();
        found.rows.retain(|(of, step), _| *of != branch || *step >= end);
        found.segments.retain(|(of, step), _| *of != branch || *step > end);
        found.writes.retain(|(of, step, _), _| *of != branch || *step >= end);
        if let Some(row) = found.rows.get_mut(&(branch, end)) {
            *row = (RowKind::Full, full);
        }
    }

    /// Asserts that the store returns everything in the model unchanged and keeps each large value once.
    pub(crate) async fn check(&self, store: &dyn Checkpointer) {
        let mut large: Vec<&Vec<u8>> = Vec::new();
        for (thread, held) in &self.0 {
            let place = Place::root(THREADS[*thread]);
            for ((branch, step), (kind, record)) in &held.rows {
                let id = CheckpointId::new(*branch, *step);
                let row = store.row(place, id).await.unwrap().unwrap();
                assert_eq!((row.kind, &row.record), (*kind, record));
                let Some(tail) = store.get(place, Some(id)).await.unwrap() else { continue };
                assert_eq!(
                    tail.rows
                        .iter()
                        .rfind(|row| row.kind != RowKind::Segment || row.id == id)
                        .map(|row| row.id),
                    Some(id)
                );
                for row in tail.rows.iter().filter(|row| row.kind == RowKind::Segment) {
                    assert_eq!(Some(&row.record), held.segments.get(&(row.id.branch, row.id.step)));
                }
                let writes = held.writes.range((*branch, *step, 0)..=(*branch, *step, u32::MAX));
                let writes: Vec<_> = writes.map(|(_, bytes)| bytes).collect();
                assert_eq!(tail.writes.iter().map(|write| &write.bytes).collect::<Vec<_>>(), writes);
            }
            for branch in 0..3 {
                let query = ListQuery { branch: Some(branch), ..ListQuery::default() };
                let listed = store.list(place, query).await.unwrap();
                let held = held.rows.range((branch, 0)..=(branch, u64::MAX)).rev();
                assert!(listed.iter().map(|row| &row.record).eq(held.map(|(_, (_, record))| record)));
            }
            large.extend(held.all().filter(|bytes| bytes.len() >= FROM));
        }
        let once: BTreeSet<&Vec<u8>> = large.iter().copied().collect();
        let usage = store.catalog().unwrap().usage().await.unwrap();
        let bytes: usize = once.iter().map(|bytes| bytes.len()).sum();
        assert_eq!(
            (usage.uses, usage.values, usage.value_bytes),
            (large.len() as u64, once.len() as u64, bytes as u64)
        );
    }
}

pub(crate) fn run<F: Future<Output = ()>>(work: F) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_are_there_as_long_as_something_holds_them(calls in calls()) {
        run(async {
            let folder = Folder::new();
            let path = folder.fresh();
            let sqlite = SqliteSaver::builder(&path).share_values_from(FROM).open().await.unwrap();
            let stores: [Arc<dyn Checkpointer>; 2] =
                [Arc::new(MemorySaver::new().share_values_from(FROM)), Arc::new(sqlite)];
            for store in stores {
                let mut model = Model::default();
                for call in &calls {
                    model.make(&*store, call).await;
                }
                model.check(&*store).await;
            }
            assert_sqlite_is_consistent(&path);
        });
    }
}

/// Asserts that every reference resolves, every value is referred to and matches its hash, and every row and
/// write has the right number of pieces.
pub(crate) fn assert_sqlite_is_consistent(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    for (what, sql) in INVARIANTS {
        let sql = sql.replace("OF_ROW", "hex(piece.owner) = printf('%02X', checkpoint.part)");
        let write = "hex(piece.owner) = '02' || hex(pending.task) || printf('%08X', pending.slot)";
        let sql = sql.replace("OF_WRITE", write);
        assert_eq!(count(&sql.replace("BLOB", "blob.id")), 0, "{what}");
    }
    let mut found = connection.prepare("SELECT hash, bytes FROM blob").unwrap();
    let mut found = found.query([]).unwrap();
    while let Some(row) = found.next().unwrap() {
        let (hash, bytes): (Vec<u8>, Vec<u8>) = (row.get(0).unwrap(), row.get(1).unwrap());
        assert_eq!(Sha256::digest(&bytes)[..], hash[..]);
    }
}

pub(crate) const INVARIANTS: [(&str, &str); 5] = [
    ("a value without a piece", "SELECT count(*) FROM blob WHERE NOT EXISTS (SELECT 1 FROM piece WHERE piece.blob = BLOB)"),
    ("a piece without a value", "SELECT count(*) FROM piece WHERE NOT EXISTS (SELECT 1 FROM blob WHERE piece.blob = BLOB)"),
    (
        "a row with a wrong number of pieces",
        "SELECT count(*) FROM checkpoint WHERE pieces <> (SELECT count(*) FROM piece WHERE piece.place = checkpoint.place
         AND piece.branch = checkpoint.branch AND piece.step = checkpoint.step AND OF_ROW)",
    ),
    (
        "a write with a wrong number of pieces",
        "SELECT count(*) FROM pending WHERE pieces <> (SELECT count(*) FROM piece WHERE piece.place = pending.place
         AND piece.branch = pending.branch AND piece.step = pending.step AND OF_WRITE)",
    ),
    (
        "a piece without a row or write",
        "SELECT (SELECT count(*) FROM piece) - (SELECT coalesce(sum(pieces), 0) FROM checkpoint)
         - (SELECT coalesce(sum(pieces), 0) FROM pending)",
    ),
];
