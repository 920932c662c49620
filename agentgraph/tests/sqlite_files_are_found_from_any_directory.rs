//! A saver finds its file however the file was named: by a relative path before the process changed its
//! directory, or by a link.
#![cfg(all(feature = "sqlite", unix))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sqlite_folder;

use std::fs;
use std::time::{Duration, SystemTime};

use agentgraph::CheckpointId;
use agentgraph::checkpoint::{
    Checkpointer, Claim, LeaseTerms, Leases, Place, Put, RowKind, SqliteSaver, StoreError,
};
use sqlite_folder::Folder;

async fn put(saver: &SqliteSaver, step: u64) -> Result<(), StoreError> {
    saver.put(Put::new(Place::root("t"), CheckpointId::new(0, step), RowKind::Full, b"x")).await
}

async fn take(saver: &SqliteSaver, seize: bool) -> Claim {
    let now = SystemTime::now();
    let terms = LeaseTerms { now, until: now + Duration::from_secs(3600), seize };
    saver.acquire("t", terms).await.unwrap()
}

/// The current directory belongs to the whole process, so this is the only test here that changes it.
#[tokio::test]
async fn a_relative_path_refers_to_the_directory_in_which_the_file_was_opened() {
    let folder = Folder::new();
    std::env::set_current_dir(folder.file("")).unwrap();
    let saver = SqliteSaver::open("threads.db").await.unwrap();
    put(&saver, 0).await.unwrap();
    std::env::set_current_dir("/").unwrap();
    put(&saver, 1).await.unwrap();

    // The sign of life of the other saver is stored beside the file. This saver finds it there.
    let other = SqliteSaver::open(folder.file("threads.db")).await.unwrap();
    let Claim::Granted { fence } = take(&other, false).await else { panic!("the thread is free") };
    assert!(matches!(take(&saver, false).await, Claim::Held { fence: held, .. } if held == fence));
    other.release("t", fence).await.unwrap();
    assert!(matches!(take(&saver, false).await, Claim::Granted { .. }));
    assert!(
        matches!(take(&other, false).await, Claim::Held { .. }),
        "the thread of a living saver is not taken"
    );
}

#[tokio::test]
async fn the_log_of_a_linked_file_is_beside_the_file() {
    let folder = Folder::new();
    let elsewhere = folder.file("elsewhere");
    let link = folder.file("link.db");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("threads.db"), b"").unwrap();
    std::os::unix::fs::symlink(elsewhere.join("threads.db"), &link).unwrap();
    let saver = SqliteSaver::open(&link).await.unwrap();
    put(&saver, 0).await.unwrap();
    fs::remove_file(elsewhere.join("threads.db-wal")).unwrap();
    let mut stored = 1..1_000_000;
    let error = loop {
        let step = stored.next().expect("the loss is noticed within a millisecond");
        if let Err(error) = put(&saver, step).await {
            break error;
        }
    };
    assert!(error.to_string().contains("was deleted, moved or replaced"), "{error}");
}
