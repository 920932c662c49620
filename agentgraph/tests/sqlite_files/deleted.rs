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

/// A saver does not look before every commit, so some may pass.
async fn refused(saver: &SqliteSaver) -> StoreError {
    for step in 1..1_000_000 {
        if let Err(error) = saver.put(put("t", step, b"x")).await {
            return error;
        }
    }
    panic!("nothing was noticed");
}

async fn stores_nothing_more(saver: &SqliteSaver) {
    let error = refused(saver).await;
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
async fn who_stores_is_told() {
    let folder = Folder::new();
    let ways: [fn(&Path); 6] = [
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
    for (number, goes) in ways.iter().enumerate() {
        let path = folder.file(&format!("{number}/threads.db"));
        let saver = SqliteSaver::open(&path).await.unwrap();
        saver.put(put("t", 0, b"x")).await.unwrap();
        goes(&path);
        stores_nothing_more(&saver).await;
    }
}

#[tokio::test]
async fn a_file_that_is_put_back_is_stored_to_again() {
    let folder = Folder::new();
    let (path, elsewhere) = (folder.file("threads.db"), folder.file("elsewhere.db"));
    let saver = SqliteSaver::open(&path).await.unwrap();
    saver.put(put("t", 0, b"x")).await.unwrap();
    fs::rename(&path, &elsewhere).unwrap();
    stores_nothing_more(&saver).await;
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

/// What others do to the log is no loss: they empty it, and move it into the file.
#[tokio::test]
async fn a_log_that_is_emptied_is_not_lost() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let (saver, other) = (SqliteSaver::open(&path).await.unwrap(), SqliteSaver::open(&path).await.unwrap());
    for step in 0..200 {
        saver.put(put("t", step, &[7; 9_000])).await.unwrap();
        if step % 20 == 0 {
            other.put(put("u", step, b"x")).await.unwrap();
            other.compact().await.unwrap();
        }
    }
    drop(other);
    assert_eq!(refuses_at(&saver).await, None);
}

/// The step at which a store is refused, of very many.
async fn refuses_at(saver: &SqliteSaver) -> Option<u64> {
    for step in 1_000..2_000 {
        if saver.put(put("t", step, b"x")).await.is_err() {
            return Some(step);
        }
    }
    None
}
