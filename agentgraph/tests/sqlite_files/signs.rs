//! The files beside a database that show which savers live.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{Claim, LeaseTerms, Leases, SqliteSaver};

use super::sqlite_folder::Folder;

/// The environment variable with the file of a process that is to die.
const DIES: &str = "AGENTGRAPH_TEST_DIES_WITH_A_LEASE";

fn signs(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.file("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("-owner-")).collect()
}

async fn take(saver: &SqliteSaver, thread: &str) -> Claim {
    let now = SystemTime::now();
    let terms = LeaseTerms { now, until: now + Duration::from_secs(600), seize: false };
    saver.acquire(thread, terms).await.unwrap()
}

#[tokio::test]
async fn the_signs_of_killed_processes_are_removed_at_the_next_opening() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let living = SqliteSaver::open(&path).await.unwrap();
    assert!(matches!(take(&living, "alive").await, Claim::Granted { .. }));
    for _ in 0..3 {
        let died = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signs::a_process_that_dies"])
            .env(DIES, &path)
            .output()
            .unwrap();
        assert!(!died.status.success());
    }
    // Each process has removed the sign of the one before.
    assert_eq!(signs(&folder).len(), 2);
    // The names of other databases begin with the name of this one, or contain it.
    for other in ["threads.db-owner-x-owner-0123456789abcdef", "my-threads.db-owner-0123456789abcdef"] {
        std::fs::write(folder.file(other), "").unwrap();
    }
    let reader = SqliteSaver::builder(&path).read_only().open().await.unwrap();
    assert_eq!(signs(&folder).len(), 4, "a reader changes nothing");
    drop(reader);

    let next = SqliteSaver::open(&path).await.unwrap();
    assert_eq!(signs(&folder).len(), 3);
    assert!(matches!(take(&next, "alive").await, Claim::Held { .. }), "its owner lives");
    assert!(matches!(take(&next, "dead").await, Claim::Granted { .. }), "its owner is dead");
    drop((living, next));
    assert_eq!(signs(&folder).len(), 2);
}

/// Does nothing unless the test above starts it.
#[tokio::test]
async fn a_process_that_dies() {
    let Some(path) = std::env::var_os(DIES) else { return };
    let saver = SqliteSaver::open(Path::new(&path)).await.unwrap();
    assert!(matches!(take(&saver, "dead").await, Claim::Granted { .. }));
    std::process::abort();
}
