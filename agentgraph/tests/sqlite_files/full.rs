//! A file that there is no more room for.

use std::process::Command;

use super::*;

const PATH: &str = "AGENTGRAPH_TEST_FULL";

/// A limit on the size of files stands for a disk that is full; the signal that goes with it is ignored.
#[tokio::test]
async fn a_thread_is_readable_after_there_was_no_room_for_more() {
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
    let told = error.to_string();
    assert!(told.contains("no room left") || told.contains("could not be read or written"), "{told}");
    assert_eq!(steps(&saver, "t").await as u64, stored, "what was stored is there, and nothing else");
    assert_eq!(saver.put(put("t", stored, &record)).await.unwrap_err().code(), StoreCode::Store);
    saver.delete_thread("nobody").await.unwrap();
}
