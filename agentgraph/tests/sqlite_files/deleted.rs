//! A file that is deleted, moved or replaced while it is open.

use std::fs;
use std::path::Path;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Checkpointer, LeaseTerms, Leases, PendingWrite, Place, PutWrites, SqliteSaver, StoreCode, StoreError,
    Upkeep,
};
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use super::put;
use super::sqlite_folder::Folder;

/// Stores until the saver refuses. A saver does not check its file before every commit, so some may
/// succeed.
async fn first_refusal(saver: &SqliteSaver) -> StoreError {
    for step in 1..1_000_000 {
        if let Err(error) = saver.put(put("t", step, b"x")).await {
            return error;
        }
    }
    panic!("the saver noticed nothing");
}

async fn assert_stores_nothing_more(saver: &SqliteSaver) {
    let error = first_refusal(saver).await;
    assert_eq!((error.code(), error.thread()), (StoreCode::Store, Some("t")), "{error}");
    assert!(error.to_string().contains("was deleted, moved or replaced"), "{error}");
    let now = std::time::SystemTime::now();
    let terms = LeaseTerms { now, until: now, seize: false };
    let write = [PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: Vec::new() }];
    let writes = PutWrites::new(Place::root("t"), CheckpointId::new(0, 0), &write);
    for error in [
        saver.put(put("u", 0, b"x")).await.unwrap_err(),
        saver.put_writes(writes).await.unwrap_err(),
        saver.acquire("t", terms).await.unwrap_err(),
        saver.copy_thread("t", "v").await.unwrap_err(),
        saver.delete_thread("t").await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("was deleted, moved or replaced"), "{error}");
    }
}

#[tokio::test]
async fn storing_fails_after_the_file_was_deleted_moved_or_replaced() {
    let folder = Folder::new();
    let changes: [fn(&Path); 6] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::remove_file(path.with_extension("db-wal")).unwrap(),
        |path| fs::remove_file(path.with_extension("db-shm")).unwrap(),
        |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
        |path| fs::rename(path, path.with_extension("bak")).unwrap(),
        |path| {
            fs::copy(path, path.with_extension("bak")).unwrap();
            fs::rename(path.with_extension("bak"), path).unwrap();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let path = folder.file(&format!("{number}/threads.db"));
        let saver = SqliteSaver::open(&path).await.unwrap();
        saver.put(put("t", 0, b"x")).await.unwrap();
        change(&path);
        assert_stores_nothing_more(&saver).await;
    }
}

#[tokio::test]
async fn a_saver_stores_again_after_the_file_was_put_back() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let elsewhere = folder.file("elsewhere.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    saver.put(put("t", 0, b"x")).await.unwrap();
    fs::rename(&path, &elsewhere).unwrap();
    assert_stores_nothing_more(&saver).await;
    fs::rename(&elsewhere, &path).unwrap();
    saver.put(put("u", 0, b"x")).await.unwrap();
    let other = SqliteSaver::open(&path).await.unwrap();
    assert_eq!(other.threads().await.unwrap(), ["t", "u"]);
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Count {
    n: u64,
}

#[tokio::test]
async fn a_run_whose_file_is_deleted_fails() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    let deletes = move |count: Snapshot<Count>| {
        if count.n == 5 {
            fs::remove_file(&path).unwrap();
        }
        async move { Count::update().n(count.n + 1) }
    };
    let graph = StateGraph::new().node("deletes", deletes).edge(START, "deletes").edge("deletes", "deletes");
    let graph = graph.compile().unwrap().checkpointer(saver);
    let error = graph.invoke(Count::update()).thread("t").max_supersteps(1_000_000).await.unwrap_err();
    assert_eq!(error.code(), StoreCode::Store, "{error}");
    assert!(error.to_string().contains("was deleted, moved or replaced"), "{error}");
}

/// A log that another connection empties and moves into the file is not lost.
#[tokio::test]
async fn an_emptied_log_is_not_a_lost_file() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    let other = SqliteSaver::open(&path).await.unwrap();
    for step in 0..200 {
        saver.put(put("t", step, &[7; 9_000])).await.unwrap();
        if step % 20 == 0 {
            other.put(put("u", step, b"x")).await.unwrap();
            other.compact().await.unwrap();
        }
    }
    drop(other);
    assert_eq!(first_refused_step(&saver).await, None);
}

/// Returns the first of 1,000 steps at which the saver refuses to store.
async fn first_refused_step(saver: &SqliteSaver) -> Option<u64> {
    for step in 1_000..2_000 {
        if saver.put(put("t", step, b"x")).await.is_err() {
            return Some(step);
        }
    }
    None
}
