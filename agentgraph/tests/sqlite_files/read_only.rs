//! Files that a process may read but not write.

use std::fs::{OpenOptions, Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use agentgraph::checkpoint::Leases;

use super::*;

const PATH: &str = "AGENTGRAPH_TEST_READ_ONLY";

#[tokio::test]
async fn a_read_only_file_is_refused() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    SqliteSaver::open(&path).await.unwrap().put(put("t", 0, b"a")).await.unwrap();
    set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    if OpenOptions::new().write(true).open(&path).is_err() {
        assert_refused(&path).await;
    } else {
        check_as_unprivileged_user(&folder, &path);
    }
}

/// Asserts the refusal in a process without the rights of the superuser. [`check_as_unprivileged_user`]
/// starts it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    if let Some(path) = std::env::var_os(PATH) {
        assert_refused(Path::new(&path)).await;
    }
}

async fn assert_refused(path: &Path) {
    let error = SqliteSaver::open(path).await.unwrap_err();
    assert_eq!(error.code(), StoreCode::Store);
    let expected = "is read-only: make the file and its folder writable for this process, choose another path, or open \
                    it with `SqliteSaverBuilder::read_only` to read from it";
    assert!(error.to_string().ends_with(expected), "{error}");
    let reader = SqliteSaver::builder(path).read_only().open().await.unwrap();
    assert_eq!(reader.threads().await.unwrap(), ["t"]);
    assert_eq!(reader.row(Place::root("t"), CheckpointId::new(0, 0)).await.unwrap().unwrap().record, b"a");
    assert_stores_nothing(&reader).await;
}

async fn assert_stores_nothing(reader: &SqliteSaver) {
    let now = std::time::SystemTime::now();
    let terms = LeaseTerms { now, until: now + Duration::from_secs(60), seize: false };
    let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: b"w".to_vec() };
    for error in [
        reader.put(put("t", 1, b"b")).await.unwrap_err(),
        reader.put(put("new", 0, b"b")).await.unwrap_err(),
        reader
            .put_writes(PutWrites::new(Place::root("t"), CheckpointId::new(0, 0), &[write]))
            .await
            .unwrap_err(),
        reader.acquire("t", terms).await.unwrap_err(),
        reader.delete_thread("t").await.unwrap_err(),
    ] {
        assert_eq!(error.code(), StoreCode::Store);
        assert!(error.to_string().contains("is read-only"), "{error}");
    }
}

#[tokio::test]
async fn a_read_only_saver_sees_new_rows_of_others_and_leaves_no_files() {
    let folder = Folder::new();
    let path = folder.file("some/100%?#.db");
    let missing = SqliteSaver::builder(&path).read_only().open().await.unwrap_err();
    assert!(missing.to_string().contains("cannot be opened") && !folder.file("some").exists(), "{missing}");
    let writer = SqliteSaver::open(&path).await.unwrap();
    writer.put(put("t", 0, b"a")).await.unwrap();
    let reader = SqliteSaver::builder(&path).read_only().open().await.unwrap();
    assert_eq!(steps(&reader, "t").await, 1);
    writer.put(put("t", 1, b"b")).await.unwrap();
    assert_eq!(steps(&reader, "t").await, 2);
    assert_stores_nothing(&reader).await;
    drop((reader, writer));
    let left: Vec<_> =
        std::fs::read_dir(folder.file("some")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["100%?#.db"]);
    let older = folder.file("older.db");
    Connection::open(&older).unwrap().execute_batch(FIRST_SCHEMA).unwrap();
    let refused = SqliteSaver::builder(&older).read_only().open().await.unwrap_err();
    assert!(refused.to_string().contains("has no tables of this release"), "{refused}");
}

/// Repeats the check as an unprivileged user, since the superuser may write every file.
fn check_as_unprivileged_user(folder: &Folder, path: &Path) {
    let program = folder.file("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    set_permissions(folder.file(""), Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&program)
        .args(["--exact", "read_only::in_a_process_of_its_own"])
        .env(PATH, path)
        .uid(65_534)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}
