//! A file that is not there yet, and is opened by many at the same moment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use agentgraph::checkpoint::{Checkpointer, SqliteSaver};

use super::put;
use super::sqlite_folder::Folder;

/// How many savers meet at one new file.
const CROWD: usize = 8;

/// So many savers open one file at once; each stores in it, and finds what all others of them stored.
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
async fn a_new_file_may_be_opened_by_many_at_once() {
    let folder = Folder::new();
    for file in 0..10 {
        // In a folder that is not there either.
        all_open(&folder.file(&format!("{file}/threads.db")), CROWD).await;
    }
}

/// The file of a process that opens it beside another.
const BESIDE: &str = "AGENTGRAPH_TEST_OPENS_BESIDE";

#[test]
fn a_new_file_may_be_opened_by_many_of_several_processes_at_once() {
    let folder = Folder::new();
    for file in 0..5 {
        let path = folder.file(&format!("{file}/threads.db"));
        let start = || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "opened_at_once::a_process_that_opens_beside_another"])
                .env(BESIDE, &path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut processes = [start(), start()];
        // Each waits for the end of its input.
        for process in &mut processes {
            drop(process.stdin.take());
        }
        for process in processes {
            let output = process.wait_with_output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
        }
    }
}

/// Does nothing unless the test above starts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_opens_beside_another() {
    let Some(path) = std::env::var_os(BESIDE).map(PathBuf::from) else { return };
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    all_open(&path, CROWD / 2).await;
}
