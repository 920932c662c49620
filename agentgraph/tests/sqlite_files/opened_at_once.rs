//! A new file that many savers open at the same moment.

use std::path::Path;
use std::time::Duration;

use agentgraph::checkpoint::{Checkpointer, SqliteSaver};

use super::sqlite_folder::Folder;
use super::{put, two_processes};

/// The number of savers that open one new file.
const CROWD: usize = 8;

/// Opens one file with `count` savers at once. Asserts that each can store, and finds what all others
/// stored.
async fn all_open(path: &Path, count: usize) {
    let opening = (0..count).map(|_| {
        let builder = SqliteSaver::builder(path).busy_timeout(Duration::from_secs(120));
        tokio::spawn(async move { builder.open().await.unwrap() })
    });
    let mut savers = Vec::new();
    for saver in opening.collect::<Vec<_>>() {
        savers.push(saver.await.unwrap());
    }
    let process = std::process::id();
    let threads: Vec<String> = (0..count).map(|saver| format!("{process}.{saver}")).collect();
    for (saver, thread) in savers.iter().zip(&threads) {
        saver.put(put(thread, 0, b"x")).await.unwrap();
    }
    for saver in &savers {
        let found = saver.threads().await.unwrap();
        assert!(threads.iter().all(|thread| found.contains(thread)), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_savers_may_open_a_new_file_at_once() {
    let folder = Folder::new();
    for file in 0..10 {
        // The folder does not exist either.
        all_open(&folder.file(&format!("{file}/threads.db")), CROWD).await;
    }
}

#[test]
fn many_savers_of_several_processes_may_open_a_new_file_at_once() {
    let folder = Folder::new();
    for file in 0..5 {
        let path = folder.file(&format!("{file}/threads.db"));
        two_processes::run("opened_at_once::a_process_that_opens_beside_another", path);
    }
}

/// Does nothing unless the test above starts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_opens_beside_another() {
    let Some(path) = two_processes::orders() else { return };
    all_open(Path::new(&path), CROWD / 2).await;
}
