//! Rows that runs store at the same time become one transaction, and each caller gets its own result.
#![cfg(feature = "sqlite")]

use std::path::Path;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, SqliteSaver, StoreCode,
};
use futures_util::future::join_all;
use rusqlite::Connection;

use crate::sqlite_folder::Folder;

const RUNS: u64 = 40;

fn put(thread: &str, step: u64) -> Put<'_> {
    Put::new(Place::root(thread), CheckpointId::new(0, step), RowKind::Full, b"x")
}

/// Returns the number of pages in the log. A transaction writes every changed page once.
fn pages_in_log(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)).unwrap()
}

#[tokio::test]
async fn many_rows_at_the_same_time_take_few_page_writes() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    let names: Vec<String> = (0..RUNS).map(|run| format!("t{run}")).collect();
    for step in 0..3 {
        let before = if step == 0 { 0 } else { pages_in_log(&path) };
        for stored in join_all(names.iter().map(|name| saver.put(put(name, step)))).await {
            stored.unwrap();
        }
        let written = pages_in_log(&path) - before;
        assert!(written < RUNS as i64, "{written} pages for step {step} of {RUNS} runs");
    }
}

#[tokio::test]
async fn a_refused_row_does_not_affect_the_others() {
    let saver = SqliteSaver::in_memory().unwrap();
    saver.put(put("stale", 5)).await.unwrap();
    let rows = [
        ("a", 0),
        ("stale", 5),
        ("b", 0),
        ("stale", 4),
        ("impossible", u64::MAX),
        ("c", 0),
        ("a", 0),
        ("a", 1),
    ];
    let outcomes = join_all(rows.map(|(thread, step)| saver.put(put(thread, step)))).await;
    let codes: Vec<_> = outcomes.into_iter().map(|outcome| outcome.err().map(|error| error.code())).collect();
    let stale = Some(StoreCode::Stale);
    let store = Some(StoreCode::Store);
    assert_eq!(codes, [None, stale, None, stale, store, None, stale, None]);
    assert_eq!(saver.threads().await.unwrap(), ["a", "b", "c", "stale"]);
}

#[tokio::test]
async fn segments_and_cleared_writes_are_stored_with_their_row() {
    let saver = SqliteSaver::in_memory().unwrap();
    let names: Vec<String> = (0..RUNS).map(|run| format!("t{run}")).collect();
    for name in &names {
        saver.put(put(name, 0)).await.unwrap();
        let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: b"w".to_vec() };
        saver.put_writes(PutWrites::new(Place::root(name), CheckpointId::new(0, 0), &[write])).await.unwrap();
    }
    let puts = names.iter().map(|name| {
        let kind = RowKind::Delta;
        saver.put(Put { kind, segment: Some(b"folded"), clears_writes: true, ..put(name, 1) })
    });
    for stored in join_all(puts).await {
        stored.unwrap();
    }
    for name in &names {
        let tail = saver.get(Place::root(name), None).await.unwrap().unwrap();
        let kinds: Vec<RowKind> = tail.rows.iter().map(|row| row.kind).collect();
        assert_eq!(kinds, [RowKind::Full, RowKind::Segment], "{name}");
        let before = saver.get(Place::root(name), Some(CheckpointId::new(0, 0))).await.unwrap().unwrap();
        assert!(before.writes.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn more_rows_than_fit_into_one_transaction_are_stored_by_several() {
    let saver = SqliteSaver::in_memory().unwrap();
    let names: Vec<String> = (0..1_500).map(|run| format!("t{run:04}")).collect();
    for stored in join_all(names.iter().map(|name| saver.put(put(name, 0)))).await {
        stored.unwrap();
    }
    let large = vec![7; 400_000];
    let puts = names[..20].iter().map(|name| saver.put(Put { record: &large, ..put(name, 1) }));
    for stored in join_all(puts).await {
        stored.unwrap();
    }
    assert_eq!(saver.threads().await.unwrap(), names);
}
