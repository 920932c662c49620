//! The SQLite files on which a saver can be opened, and the errors for those that it cannot use.
#![cfg(feature = "sqlite")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "sqlite_files/cancelled.rs"]
mod cancelled;
mod cancelling;
#[cfg(unix)]
#[path = "sqlite_files/deleted.rs"]
mod deleted;
#[cfg(unix)]
#[path = "sqlite_files/full.rs"]
mod full;
#[path = "sqlite_files/opened_at_once.rs"]
mod opened_at_once;
#[cfg(unix)]
#[path = "sqlite_files/read_only.rs"]
mod read_only;
#[path = "sqlite_files/signs.rs"]
mod signs;
mod sqlite_folder;
mod two_processes;

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Checkpointer, LeaseTerms, PendingWrite, Place, Put, PutWrites, RowKind, SqliteSaver, StoreCode,
    StoreError, Synchronous, Upkeep,
};
use rusqlite::Connection;
use sqlite_folder::Folder;

fn put<'a>(thread: &'a str, step: u64, record: &'a [u8]) -> Put<'a> {
    let kind = if step == 0 { RowKind::Full } else { RowKind::Delta };
    let place = Place::root(thread);
    let id = CheckpointId::new(0, step);
    Put::new(place, id, kind, record)
}

async fn steps(saver: &SqliteSaver, thread: &str) -> usize {
    saver.get(Place::root(thread), None).await.unwrap().map_or(0, |tail| tail.rows.len())
}

/// Returns the text of an error without the folder of the test. Marks an error whose source is an error
/// of SQLite.
fn error_text(error: &StoreError, folder: &Folder) -> String {
    let shown = error.to_string().replace(&format!("{}", folder.file("").display()), "");
    match error.source().and_then(|source| source.downcast_ref::<rusqlite::Error>()) {
        Some(_) => shown + " (from SQLite)",
        None => shown,
    }
}

async fn refused(path: &Path, folder: &Folder) -> String {
    error_text(&SqliteSaver::open(path).await.unwrap_err(), folder)
}

#[tokio::test]
async fn opening_creates_the_file_and_missing_folders() {
    let folder = Folder::new();
    let path = folder.file("some/where/threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    saver.put(put("t", 0, b"a")).await.unwrap();
    assert!(path.is_file());
}

#[tokio::test]
async fn an_empty_file_is_accepted() {
    let folder = Folder::new();
    std::fs::write(folder.file("threads.db"), b"").unwrap();
    let saver = SqliteSaver::open(folder.file("threads.db")).await.unwrap();
    saver.put(put("t", 0, b"a")).await.unwrap();
}

#[tokio::test]
async fn names_with_a_meaning_for_sqlite_are_files() {
    let folder = Folder::new();
    for name in [":memory:", "file:x?mode=memory", "a b'c;.db", "名前.db"] {
        SqliteSaver::open(folder.file(name)).await.unwrap();
        assert!(folder.file(name).is_file(), "{name}");
    }
}

#[tokio::test]
async fn stored_rows_are_there_after_reopening() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    for step in 0..5 {
        let saver = SqliteSaver::builder(&path).synchronous(Synchronous::Full).open().await.unwrap();
        assert_eq!(steps(&saver, "t").await, step);
        saver.put(put("t", step as u64, b"x")).await.unwrap();
    }
}

#[tokio::test]
async fn a_saver_sees_at_once_what_another_stored() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let (one, two) = tokio::join!(SqliteSaver::open(&path), SqliteSaver::open(&path));
    let one = one.unwrap();
    let two = two.unwrap();
    one.put(put("t", 0, b"a")).await.unwrap();
    two.put(put("t", 1, b"b")).await.unwrap();
    assert_eq!(one.put(put("t", 1, b"c")).await.unwrap_err().code(), StoreCode::Stale);
    assert_eq!(steps(&one, "t").await, 2);
    assert_eq!(steps(&two, "t").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savers_on_one_file_wait_for_each_other() {
    let folder = Folder::new();
    let mut runs = Vec::new();
    for saver in 0..2 {
        let path = folder.file("threads.db");
        let builder = SqliteSaver::builder(path).busy_timeout(Duration::from_secs(120));
        let saver = (saver, Arc::new(builder.open().await.unwrap()));
        for run in 0..4 {
            let number = saver.0;
            let saver = Arc::clone(&saver.1);
            runs.push(tokio::spawn(async move {
                let thread = format!("{number}.{run}");
                for step in 0..25 {
                    saver.put(put(&thread, step, b"x")).await.unwrap();
                }
                steps(&saver, &thread).await
            }));
        }
    }
    for run in runs {
        assert_eq!(run.await.unwrap(), 25);
    }
}

/// A stand-in for another process that writes: it holds the lock of the file until it is dropped.
struct Writer(Connection);

impl Writer {
    fn new(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Writer(connection)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_locked_file() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    saver.put(put("t", 0, b"a")).await.unwrap();
    let writer = Writer::new(&path);
    let release = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(steps(&saver, "t").await, 1, "reads go on meanwhile");
        drop(writer);
    };
    let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: b"w".to_vec() };
    let writes = std::slice::from_ref(&write);
    let (stored, other, pending, deleted, ()) = tokio::join!(
        saver.put(put("t", 1, b"b")),
        saver.put(put("u", 0, b"c")),
        saver.put_writes(PutWrites::new(Place::root("t"), CheckpointId::new(0, 0), writes)),
        saver.delete_thread("v"),
        release
    );
    stored.unwrap();
    other.unwrap();
    pending.unwrap();
    deleted.unwrap();
    assert_eq!(steps(&saver, "t").await, 2);
    assert_eq!(steps(&saver, "u").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_stays_locked_is_reported_after_the_timeout() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let timeout = Duration::from_secs(7);
    let saver = SqliteSaver::builder(&path).busy_timeout(timeout).open().await.unwrap();
    let _writer = Writer::new(&path);
    let begin = tokio::time::Instant::now();
    let attempts = (0..20).map(|run| {
        let saver = &saver;
        async move { saver.put(put(&format!("t{run}"), 0, b"a")).await.unwrap_err() }
    });
    let errors = futures_util::future::join_all(attempts).await;
    let waited = begin.elapsed();
    assert!(
        waited >= timeout && waited < timeout + Duration::from_secs(1),
        "{waited:?} for all attempts together"
    );
    for (run, error) in errors.iter().enumerate() {
        assert_eq!(error.code(), StoreCode::Store);
        assert_eq!(
            error_text(error, &folder),
            format!(
                "E_STORE: the checkpoint database `threads.db` stayed locked by another process for longer than the \
                 busy timeout: end that process, or raise `SqliteSaverBuilder::busy_timeout` (thread `t{run}`) \
                 (from SQLite)"
            )
        );
    }
    assert!(saver.threads().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_timeout_of_zero_does_not_wait() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::builder(&path).busy_timeout(Duration::ZERO).open().await.unwrap();
    let writer = Writer::new(&path);
    assert_eq!(saver.put(put("t", 0, b"a")).await.unwrap_err().code(), StoreCode::Store);
    assert_eq!(saver.delete_thread("t").await.unwrap_err().code(), StoreCode::Store);
    drop(writer);
    saver.put(put("t", 0, b"a")).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.file("notes.txt");
    let text = "these are my notes, and they are longer than the header of a database. ".repeat(20);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(
        refused(&path, &folder).await,
        "E_STORE: the checkpoint database `notes.txt` is not an SQLite database: choose another path, or move that \
         file away (from SQLite)"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.file("app.db");
    let make = "CREATE TABLE users (name TEXT); INSERT INTO users VALUES ('ada');";
    Connection::open(&path).unwrap().execute_batch(make).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(
        refused(&path, &folder).await,
        "E_STORE: the checkpoint database `app.db` is the database of another program: choose a path of its own"
    );
    assert!(std::fs::read(&path).unwrap() == before);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    SqliteSaver::open(&path).await.unwrap().put(put("t", 0, b"a")).await.unwrap();
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    let error = SqliteSaver::open(&path).await.unwrap_err();
    assert_eq!(error.code(), StoreCode::UnknownFormat);
    assert_eq!(
        error_text(&error, &folder),
        "E_UNKNOWN_FORMAT: the checkpoint database `threads.db` was written by a newer release of agentgraph (schema \
         version 9, this one reads 5): update agentgraph, or choose another path"
    );
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 5").unwrap();
    assert_eq!(steps(&SqliteSaver::open(&path).await.unwrap(), "t").await, 1);
}

/// A database of the first schema.
const FIRST_SCHEMA: &str = "
CREATE TABLE place (id INTEGER PRIMARY KEY, thread TEXT NOT NULL, namespace TEXT NOT NULL, UNIQUE (thread, namespace));
CREATE TABLE checkpoint (
    place INTEGER NOT NULL, branch INTEGER NOT NULL, step INTEGER NOT NULL, part INTEGER NOT NULL, kind INTEGER NOT NULL,
    record BLOB NOT NULL, PRIMARY KEY (place, branch, step, part));
CREATE INDEX base ON checkpoint (place, branch, step, kind) WHERE kind <> 1;
CREATE TABLE pending (
    place INTEGER NOT NULL, branch INTEGER NOT NULL, step INTEGER NOT NULL, task BLOB NOT NULL, slot INTEGER NOT NULL,
    bytes BLOB NOT NULL, PRIMARY KEY (place, branch, step, task, slot));
PRAGMA application_id = 0x61676370;
PRAGMA user_version = 1;
INSERT INTO place VALUES (7, 't', '');
INSERT INTO checkpoint VALUES (7, 0, 0, 0, 0, x'61'), (7, 0, 1, 0, 1, zeroblob(3000000));
INSERT INTO pending VALUES (7, 0, 1, zeroblob(16), 1, x'62');";

#[tokio::test]
async fn a_file_of_the_first_schema_is_brought_up_to_date_and_can_shrink() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    Connection::open(&path).unwrap().execute_batch(FIRST_SCHEMA).unwrap();
    let (one, two) = tokio::join!(SqliteSaver::open(&path), SqliteSaver::open(&path));
    let saver = one.unwrap();
    let _ = two.unwrap();
    assert_eq!(steps(&saver, "t").await, 2);
    saver.put(put("t", 2, b"c")).await.unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    saver.delete_thread("t").await.unwrap();
    saver.compact().await.unwrap();
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(before > 3_000_000 && after < 100_000, "{before} bytes became {after}");
}

#[tokio::test]
async fn missing_tables_are_found_on_opening() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    drop(SqliteSaver::open(&path).await.unwrap());
    Connection::open(&path).unwrap().execute_batch("DROP TABLE pending").unwrap();
    let shown = refused(&path, &folder).await;
    assert!(
        shown.starts_with("E_STORE: the checkpoint database `threads.db` failed: no such table"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_never_a_panic() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    for step in 0..200 {
        saver.put(put("t", step, &[7; 500])).await.unwrap();
    }
    drop(saver);
    let whole = std::fs::read(&path).unwrap();
    let mut failed = 0;
    for page in 0..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096 + 100..(page + 1) * 4096].fill(0xa5);
        std::fs::write(&path, damaged).unwrap();
        match SqliteSaver::open(&path).await {
            Ok(saver) => {
                for outcome in [
                    saver.get(Place::root("t"), None).await.err(),
                    saver.put(put("t", 200, b"x")).await.err(),
                ] {
                    failed += usize::from(outcome.is_some());
                    let shown = outcome.map_or(String::new(), |error| error_text(&error, &folder));
                    assert!(
                        shown.is_empty() || shown.contains("`threads.db` is damaged: restore a backup"),
                        "{shown}"
                    );
                }
            }
            Err(error) => {
                failed += 1;
                assert!(error_text(&error, &folder).contains("`threads.db`"), "{error}");
            }
        }
    }
    assert!(failed > whole.len() / 4096 / 2, "only {failed} calls noticed the damage");
}

#[tokio::test]
async fn values_that_no_release_wrote_are_corrupt() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    let edits = [
        ("kind = 9", "E_CORRUPT_CHECKPOINT: checkpoint 0.0 cannot be read: its row is of the unknown kind 9"),
        ("record = 'text'", "E_CORRUPT_CHECKPOINT: the checkpoint database `threads.db` holds a value"),
        ("step = -1", "E_CORRUPT_CHECKPOINT: the checkpoint database `threads.db` holds a value"),
        ("step = 0.5", "E_CORRUPT_CHECKPOINT: the checkpoint database `threads.db` holds a value"),
    ];
    for (thread, (edit, expected)) in edits.iter().enumerate() {
        let thread = thread.to_string();
        saver.put(put(&thread, 0, b"a")).await.unwrap();
        let other = Connection::open(&path).unwrap();
        let which = "place = (SELECT id FROM place WHERE thread = ?1)";
        other.execute(&format!("UPDATE checkpoint SET {edit} WHERE {which}"), [&thread]).unwrap();
        let error = saver.list(Place::root(&thread), Default::default()).await.unwrap_err();
        assert!(error_text(&error, &folder).starts_with(expected), "{edit}: {error}");
        assert_eq!(error.thread(), Some(&thread[..]));
        assert!(saver.get(Place::root(&thread), None).await.map_or(true, |tail| tail.is_none()), "{edit}");
    }
}

#[tokio::test]
async fn a_path_to_a_folder_and_a_path_through_a_file_are_refused() {
    let folder = Folder::new();
    std::fs::create_dir(folder.file("folder")).unwrap();
    std::fs::write(folder.file("file"), b"x").unwrap();
    assert_eq!(
        refused(&folder.file("folder"), &folder).await,
        "E_STORE: the checkpoint database `folder` cannot be opened: its path must name a file, and this process must \
         be allowed to write it and its folder (from SQLite)"
    );
    assert_eq!(
        refused(&folder.file("file/threads.db"), &folder).await,
        "E_STORE: the checkpoint database `file/threads.db` needs the folder `file`, which cannot be created"
    );
    assert!(refused(Path::new(""), &folder).await.starts_with("E_STORE: the checkpoint database `` "));
}

#[tokio::test]
async fn a_step_beyond_the_integers_of_sqlite_is_refused() {
    let saver = SqliteSaver::in_memory().unwrap();
    let t = Place::root("t");
    let above = CheckpointId::new(0, u64::MAX);
    let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: Vec::new() };
    for error in [
        saver.put(put("t", u64::MAX, b"a")).await.unwrap_err(),
        saver.put_writes(PutWrites::new(t, above, &[write])).await.unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "E_STORE: step 18446744073709551615 is above 9223372036854775807, the largest that SQLite can hold \
             (thread `t`)"
        );
    }
    saver.put(put("t", 0, b"a")).await.unwrap();
    let largest = CheckpointId::new(0, i64::MAX as u64);
    saver.put(put("t", largest.step, b"b")).await.unwrap();
    assert_eq!(saver.row(t, largest).await.unwrap().unwrap().record, b"b");
    assert_eq!(saver.row(t, above).await.unwrap(), None);
    assert_eq!(saver.get(t, Some(above)).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_at_its_maximum_size_keeps_its_rows_and_takes_more_after_deletions() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let open = |pages: u64| SqliteSaver::builder(&path).max_size(pages * 4096).open();
    let saver = open(60).await.unwrap();
    let record = vec![7; 20_000];
    let mut stored = 0;
    let error = loop {
        match saver.put(put("t", stored, &record)).await {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 60, "the limit does not hold");
    };
    assert_eq!((error.code(), error.thread()), (StoreCode::Store, Some("t")));
    let shown = error_text(&error, &folder);
    assert!(
        shown.contains("has no room left") && shown.contains("`SqliteSaverBuilder::max_size`"),
        "{shown}"
    );
    let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: record.clone() };
    let place = Place::root("t");
    let at = CheckpointId::new(0, stored - 1);
    let refused = saver.put_writes(PutWrites::new(place, at, &[write])).await.unwrap_err();
    assert_eq!(refused.code(), StoreCode::Store);
    assert_eq!(steps(&saver, "t").await as u64, stored, "exactly the stored rows are there");
    drop(saver);
    let larger = open(120).await.unwrap();
    larger.put(put("t", stored, &record)).await.unwrap();
    drop(larger);
    let same = open(60).await.unwrap();
    assert_eq!(steps(&same, "t").await as u64, stored + 1);
    same.put(put("u", 0, &record)).await.unwrap_err();
    same.delete_thread("t").await.unwrap();
    same.put(put("u", 0, &record)).await.unwrap();
}

/// The saver stays open, so that the log exists.
#[tokio::test]
async fn a_deleted_thread_leaves_no_word_in_the_file_or_its_log() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let saver = SqliteSaver::open(&path).await.unwrap();
    let left = || {
        let files = ["threads.db", "threads.db-wal"].map(|name| std::fs::read(folder.file(name)).unwrap());
        let holds = |bytes: &Vec<u8>, word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        let words = [&b"my secret"[..], b"of-ada", b"a large secret"];
        words.map(|word| files.iter().any(|file| holds(file, word)))
    };
    let large = [&[0xdb, 0, 1, 0x86, 0xa0][..], &b"a large secret".repeat(10_000)[..100_000]].concat();
    for record in [&b"my secret"[..], &large] {
        let step = steps(&saver, "of-ada").await as u64;
        saver.put(put("of-ada", step, record)).await.unwrap();
    }
    saver.put(put("other", 0, b"stays")).await.unwrap();
    assert_eq!(left(), [true; 3]);
    saver.delete_thread("of-ada").await.unwrap();
    assert_eq!(left(), [false; 3]);
    assert_eq!(steps(&saver, "other").await, 1);
    // A reader keeps the log from being emptied, and the next deletion empties it.
    saver.put(put("of-ada", 0, b"my secret")).await.unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM checkpoint").unwrap();
    saver.delete_thread("of-ada").await.unwrap();
    assert_eq!(steps(&saver, "of-ada").await, 0);
    assert!(left()[0]);
    drop(reader);
    saver.delete_thread("nobody").await.unwrap();
    assert_eq!(left(), [false; 3]);
}
