//! A file on a full disk.

use std::process::Command;

use super::*;

const PATH: &str = "AGENTGRAPH_TEST_FULL";

/// A limit on the size of files simulates a full disk. The process ignores the signal that comes with
/// the limit.
#[tokio::test]
async fn a_thread_is_readable_after_the_disk_was_full() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    SqliteSaver::open(&path).await.unwrap().put(put("t", 0, b"a")).await.unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full::in_a_process_of_its_own", "--nocapture"])
        .env(PATH, &path)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    let saver = SqliteSaver::open(&path).await.unwrap();
    let stored = steps(&saver, "t").await;
    assert!(stored > 1, "{stored}");
    saver.put(put("t", stored as u64, b"there is room again")).await.unwrap();
}

#[tokio::test]
async fn in_a_process_of_its_own() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let saver = SqliteSaver::open(&path).await.unwrap();
    let record = vec![7; 20_000];
    let mut stored = 1;
    let error = loop {
        match saver.put(put("t", stored, &record)).await {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1_000, "the limit does not hold");
    };
    assert_eq!((error.code(), error.thread()), (StoreCode::Store, Some("t")));
    let text = error.to_string();
    assert!(text.contains("no room left") || text.contains("could not be read or written"), "{text}");
    assert_eq!(steps(&saver, "t").await as u64, stored, "exactly the stored rows are there");
    assert_eq!(saver.put(put("t", stored, &record)).await.unwrap_err().code(), StoreCode::Store);
    saver.delete_thread("nobody").await.unwrap();
}
