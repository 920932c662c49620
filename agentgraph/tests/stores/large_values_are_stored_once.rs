//! A store keeps a large value once, however many records hold it. It returns the value whole or reports the
//! damage, and deletes the value with the last record that holds it.
//!
//! The tests count bytes, rows and values, and read the tables with their own SQL.
#![cfg(feature = "sqlite")]

#[cfg(feature = "postgres")]
mod in_postgres;
mod model;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Catalog, Checkpointer, ListQuery, PendingWrite, Place, Put, PutWrites, Retention, RowKind, SqliteSaver,
    Upkeep, Usage,
};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Code};
use model::assert_sqlite_is_consistent;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::sqlite_folder::Folder;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Study {
    n: u64,
    page: String,
    #[reduce(append)]
    pages: Vec<String>,
    #[reduce(by_id)]
    notes: Vec<Note>,
    #[reduce(merge)]
    by_name: HashMap<String, String>,
    #[reduce(last)]
    note: Note,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    id: String,
    text: String,
}

impl Keyed for Note {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

fn note(id: impl ToString, text: &str) -> Note {
    Note { id: id.to_string(), text: text.to_owned() }
}

/// Returns a text of `bytes` bytes that shares no part with texts of other names.
fn text(name: &str, bytes: usize) -> String {
    let mut text = String::new();
    for line in 0_u64.. {
        if text.len() >= bytes {
            break;
        }
        text += &format!("{name} {line} ");
    }
    text.truncate(bytes);
    text
}

const LARGE: usize = 100_000;

fn graph(saver: impl Checkpointer) -> CompiledGraph<Study> {
    async fn read(study: Snapshot<Study>) -> StudyUpdate {
        Study::update().n(study.n + 1)
    }
    let graph = StateGraph::new().node("read", read).edge(START, "read").compile().unwrap();
    graph.checkpointer(saver)
}

/// Stores the same megabyte in three threads, a hundred forks and a copy. Returns the usage of the store.
async fn store_a_megabyte_many_times(saver: Arc<dyn Checkpointer>) -> Usage {
    let page = text("page", 1_000_000);
    let graph = graph(Arc::clone(&saver));
    for thread in ["a", "b", "c"] {
        graph.invoke(Study::update().page(page.clone())).thread(thread).await.unwrap();
    }
    for fork in 0..100 {
        let at = CheckpointId::new(0, fork % 2);
        graph.update_state("a").at(at).update(Study::update().n(fork)).await.unwrap();
    }
    graph.copy_thread("a", "d").await.unwrap();
    for thread in ["a", "b", "c", "d"] {
        assert_eq!(graph.state(thread).await.unwrap().unwrap().values.page, page);
    }
    assert_eq!(graph.state_at("d", CheckpointId::new(50, 2)).await.unwrap().unwrap().values.page, page);
    saver.catalog().unwrap().usage().await.unwrap()
}

async fn assert_a_megabyte_is_stored_once(store: Arc<dyn Checkpointer>) {
    let usage = store_a_megabyte_many_times(store).await;
    assert_eq!((usage.values, usage.value_bytes), (1, 1_000_000));
    assert!(usage.bytes < 200_000, "{usage:?}");
}

#[tokio::test]
async fn a_megabyte_in_three_threads_and_a_hundred_forks_is_stored_once() {
    let folder = Folder::new();
    let path = folder.fresh();
    assert_a_megabyte_is_stored_once(Arc::new(MemorySaver::new())).await;
    assert_a_megabyte_is_stored_once(Arc::new(SqliteSaver::open(&path).await.unwrap())).await;
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 1_500_000, "the file has {size} bytes");
    assert_sqlite_is_consistent(&path);
}

#[tokio::test]
async fn a_saver_that_is_configured_not_to_share_stores_every_copy() {
    let saver = Arc::new(MemorySaver::new().share_values_from(usize::MAX));
    let graph = graph(Arc::clone(&saver));
    for thread in ["a", "b"] {
        graph.invoke(Study::update().page(text("page", LARGE))).thread(thread).await.unwrap();
    }
    let usage = saver.usage().await.unwrap();
    assert!(usage.values == 0 && usage.bytes > 2 * LARGE as u64, "{usage:?}");
}

/// The text is a field, an item of a list, part of a struct, or the value of a map.
#[tokio::test]
async fn a_large_text_is_shared_whatever_value_contains_it() {
    let saver = Arc::new(MemorySaver::new());
    let graph = graph(Arc::clone(&saver));
    let page = text("page", LARGE);
    let ways: [fn(&str) -> StudyUpdate; 6] = [
        |page| Study::update().page(page),
        |page| Study::update().pages(["one", page, "other"].map(str::to_owned)),
        |page| Study::update().overwrite_pages(vec!["one".to_owned(), page.to_owned()]),
        |page| Study::update().notes([note(1, page), note(2, "small"), note(3, page)]),
        |page| Study::update().by_name([("some name".to_owned(), page.to_owned())]),
        |page| Study::update().note(note(7, page)),
    ];
    for (thread, way) in ways.iter().enumerate() {
        graph.invoke(way(&page)).thread(thread.to_string()).await.unwrap();
        let usage = saver.usage().await.unwrap();
        assert_eq!((usage.values, usage.value_bytes), (1, LARGE as u64), "way {thread}");
    }
    // The id beside the text changes, the text does not.
    for n in 0..50 {
        graph.invoke(Study::update().note(note(n, &page))).thread("beside").await.unwrap();
    }
    let usage = saver.usage().await.unwrap();
    assert!(usage.values == 1 && usage.bytes < LARGE as u64, "{usage:?}");
}

#[derive(Serialize, Deserialize, Default)]
struct Seen(String);

/// Covers inputs of dispatches, results of tasks with waiting siblings, requests, answers and sessions.
#[tokio::test]
async fn inputs_results_requests_and_answers_of_tasks_are_shared() {
    async fn split(study: Snapshot<Study>) -> Command<Study> {
        let page = study.page.clone();
        Command::to([false, true].map(|asks| Dispatch::new("work", (asks, page.clone()))).to_vec())
    }
    async fn work(
        Input((asks, page)): Input<(bool, String)>,
        seen: Session<Seen>,
        ctx: Ctx,
    ) -> Result<StudyUpdate> {
        seen.with(|seen| seen.0.clone_from(&page));
        let page = if asks { ctx.interrupt::<String>(page)? } else { page };
        Ok(Study::update().pages([page]))
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = StateGraph::new().session::<Seen>("seen").node("split", split).node("work", work);
    let graph = graph.edge(START, "split").compile().unwrap().checkpointer(Arc::clone(&saver));
    let page = text("page", LARGE);
    let outcome = graph.invoke(Study::update().page(page.clone())).thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().len(), 1);
    assert_eq!(graph.waiting().await.unwrap()[0].interrupts[0].value, page.as_str());
    let waits = saver.usage().await.unwrap();
    assert!(waits.values == 1 && waits.uses >= 5 && waits.bytes < LARGE as u64, "{waits:?}");
    let end = graph.resume(page.clone()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(end.pages, [page.clone(), page.clone()]);
    let usage = saver.usage().await.unwrap();
    assert!(usage.values == 1 && usage.writes == 0, "{usage:?}");
    assert_eq!(graph.state("t").await.unwrap().unwrap().values, end);
}

/// The engine writes a full record after many replacements, but does not write unchanged large values again.
#[tokio::test]
async fn full_records_do_not_write_large_values_again() {
    async fn step(study: Snapshot<Study>) -> StudyUpdate {
        let update = Study::update().n(study.n + 1);
        match study.n {
            n @ 0..10 => update.pages([text(&n.to_string(), LARGE)]).notes([note(n, &text("n", 70_000))]),
            // The next full record writes a list that grew as a whole, without a reference.
            n if n % 60 == 0 => update.pages(["small".to_owned()]),
            n => update.note(note(n, &"x".repeat(50_000))),
        }
    }
    let more = |study: &Study| if study.n < 300 { "step" } else { END };
    let graph = StateGraph::new().node("step", step).edge(START, "step").branch("step", more, ["step", END]);
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Study::update()).thread("t").max_supersteps(1000).await.unwrap();
    let rows = saver.list(Place::root("t"), ListQuery::default()).await.unwrap();
    let fulls: Vec<_> = rows.iter().filter(|row| row.kind == RowKind::Full).collect();
    assert!(fulls.iter().filter(|row| row.record.len() > 10 * LARGE).count() > 1, "{}", fulls.len());
    let usage = saver.usage().await.unwrap();
    assert_eq!((usage.values, usage.value_bytes), (11, 10 * LARGE as u64 + 70_000));
}

/// Each fork writes a list of many small items as a whole.
#[tokio::test]
async fn forks_share_most_bytes_of_lists_of_small_items() {
    let saver = Arc::new(MemorySaver::new());
    let graph = graph(Arc::clone(&saver));
    for n in 0..40 {
        let items = (0..100).map(|item| format!("{n}.{item} {}", "x".repeat(item)));
        graph.invoke(Study::update().pages(items)).thread("t").await.unwrap();
    }
    let before = saver.usage().await.unwrap();
    for fork in 0..20 {
        let at = CheckpointId::new(0, 40 + 2 * (fork % 10));
        graph.update_state("t").at(at).update(Study::update().n(fork)).await.unwrap();
    }
    let after = saver.usage().await.unwrap();
    let lists = graph.history("t").await.unwrap()[0].values.pages.iter().map(String::len).sum::<usize>();
    let added = (after.bytes + after.value_bytes) - (before.bytes + before.value_bytes);
    assert!(added < 6 * lists as u64, "twenty forks of {lists} bytes added {added}");
}

#[tokio::test]
async fn pruning_and_deleting_keep_only_values_that_other_records_hold() {
    let folder = Folder::new();
    let path = folder.fresh();
    let saver = Arc::new(SqliteSaver::open(&path).await.unwrap());
    let graph = graph(Arc::clone(&saver));
    let pages: Vec<String> = (0..4).map(|n| text(&n.to_string(), LARGE)).collect();
    for (thread, page) in [("a", 0), ("a", 1), ("b", 1), ("b", 2), ("c", 2), ("c", 3)] {
        graph.invoke(Study::update().page(pages[page].clone())).thread(thread).await.unwrap();
    }
    graph.copy_thread("a", "d").await.unwrap();
    graph.update_state("a").at(CheckpointId::new(0, 1)).update(Study::update().n(9)).await.unwrap();
    let values = async || {
        assert_sqlite_is_consistent(&path);
        saver.usage().await.unwrap().values
    };
    assert_eq!(values().await, 4);
    // `a` keeps its fork with page 0, `b` keeps page 2 and `c` page 3. The copy `d` holds pages 0 and 1.
    graph.prune(Retention::keep_latest_per_thread()).thread("a").await.unwrap();
    graph.prune(Retention::keep_latest_per_thread()).thread("b").await.unwrap();
    graph.prune(Retention::keep_latest_per_thread()).thread("c").await.unwrap();
    assert_eq!(values().await, 4);
    assert_eq!(graph.state("a").await.unwrap().unwrap().values.page, pages[0]);
    graph.delete_thread("d").await.unwrap();
    assert_eq!(values().await, 3);
    assert_eq!(graph.state("a").await.unwrap().unwrap().values.page, pages[0]);
    graph.delete_thread("a").await.unwrap();
    graph.delete_thread("c").await.unwrap();
    assert_eq!(values().await, 1);
    assert_eq!(graph.state("b").await.unwrap().unwrap().values.page, pages[2]);
    graph.delete_thread("b").await.unwrap();
    assert_eq!(saver.usage().await.unwrap(), Usage::default());
    saver.compact().await.unwrap();
    drop((graph, saver));
    let bytes = std::fs::read(&path).unwrap();
    let left = pages.iter().filter(|page| bytes.windows(64).any(|part| part == &page.as_bytes()[500..564]));
    assert_eq!(left.count(), 0, "deleted values are overwritten");
}

/// The record that replaces the result of a task uses the same large value, which stays in its place in the
/// file.
#[tokio::test]
async fn a_commit_takes_over_the_large_values_of_the_writes_it_clears() {
    let folder = Folder::new();
    let path = folder.fresh();
    let saver = Arc::new(SqliteSaver::open(&path).await.unwrap());
    async fn read() -> StudyUpdate {
        Study::update().page(text("page", LARGE))
    }
    async fn ask(ctx: Ctx) -> Result<()> {
        ctx.interrupt::<bool>("go on?")?;
        Ok(())
    }
    let graph = StateGraph::new().node("read", read).node("ask", ask).edge(START, "read").edge(START, "ask");
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    let blobs = || {
        let connection = Connection::open(&path).unwrap();
        let mut found = connection.prepare("SELECT id, length(bytes) FROM blob").unwrap();
        let found = found.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).unwrap();
        found.collect::<Result<Vec<_>, _>>().unwrap()
    };
    graph.invoke(Study::update()).thread("t").await.unwrap();
    let pending = blobs();
    assert_eq!(pending.len(), 1);
    graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((blobs(), saver.usage().await.unwrap().writes), (pending, 0));
    assert_sqlite_is_consistent(&path);
}

/// The last write wins, whichever of the writes are large. The next commit clears it.
#[tokio::test]
async fn the_last_of_two_writes_of_one_key_in_one_call_wins() {
    assert_the_last_write_wins([
        Arc::new(MemorySaver::new()) as Arc<dyn Checkpointer>,
        Arc::new(SqliteSaver::in_memory().unwrap()),
    ])
    .await;
}

async fn assert_the_last_write_wins(stores: impl IntoIterator<Item = Arc<dyn Checkpointer>>) {
    let large = |name| rmp_serde::to_vec(&text(name, LARGE)).unwrap();
    let small = rmp_serde::to_vec("small").unwrap();
    let rounds = [
        vec![large("a"), large("b")],
        vec![large("a"), small.clone()],
        vec![small.clone(), large("c")],
        vec![large("d"), small, large("d")],
    ];
    for store in stores {
        let place = Place::root("t");
        for (step, bytes) in rounds.iter().enumerate() {
            let at = CheckpointId::new(0, step as u64);
            let kind = if step == 0 { RowKind::Full } else { RowKind::Delta };
            let put = Put { clears_writes: step > 0, ..Put::new(place, at, kind, b"r") };
            store.put(put).await.unwrap();
            let write =
                |bytes: &Vec<u8>| PendingWrite { task: TaskId::from_u128(7), slot: 2, bytes: bytes.clone() };
            let writes: Vec<_> = bytes.iter().map(write).collect();
            store.put_writes(PutWrites::new(place, at, &writes)).await.unwrap();
            let read = store.get(place, None).await.unwrap().unwrap().writes;
            assert!(read == writes[writes.len() - 1..], "{step}");
            let usage = store.catalog().unwrap().usage().await.unwrap();
            let is_large = u64::from(bytes[bytes.len() - 1].len() > 100);
            assert_eq!((usage.writes, usage.values, usage.uses), (1, is_large, is_large), "{step}");
        }
    }
}

/// Changes a file with SQL that no saver runs.
fn edit(path: &Path, statements: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {statements}")).unwrap();
}

/// Damages the large value of the newest checkpoint. Returns the errors of reading it and of proceeding.
async fn errors_after_damage(saver: impl Checkpointer, damage: impl AsyncFnOnce()) -> (String, String) {
    let graph = graph(saver);
    for name in ["first", "second"] {
        graph.invoke(Study::update().page(text(name, LARGE))).thread("t").await.unwrap();
    }
    graph.invoke(Study::update().page(text("other", LARGE))).thread("u").await.unwrap();
    damage().await;
    let newest = graph.state("t").await.unwrap_err();
    assert_eq!((newest.code(), newest.thread()), (Code::CorruptCheckpoint, Some("t")));
    let at = graph.state_at("t", CheckpointId::new(0, 2)).await.unwrap_err();
    assert_eq!(at.to_string(), newest.to_string());
    let proceed = graph.proceed().thread("t").await.unwrap_err();
    // Earlier checkpoints and other threads can be read. The thread can be forked and deleted.
    let before = graph.state_at("t", CheckpointId::new(0, 1)).await.unwrap().unwrap();
    assert_eq!(before.values.page, text("first", LARGE));
    assert_eq!(graph.history("t").before(CheckpointId::new(0, 2)).await.unwrap().len(), 2);
    assert_eq!(graph.state("u").await.unwrap().unwrap().values.page, text("other", LARGE));
    let fork =
        graph.update_state("t").at(CheckpointId::new(0, 1)).update(Study::update().n(7)).await.unwrap();
    assert_eq!(graph.state_at("t", fork).await.unwrap().unwrap().values.n, 7);
    graph.delete_thread("t").await.unwrap();
    assert!(graph.state("t").await.unwrap().is_none());
    (newest.to_string(), proceed.to_string())
}

#[tokio::test]
async fn a_damaged_or_missing_large_value_is_an_error_that_names_its_checkpoint() {
    let second = "(SELECT blob FROM piece WHERE step = 2)";
    for (damage, expected) in [
        (format!("UPDATE blob SET bytes = zeroblob(100000) WHERE id = {second}"), "has changed"),
        (format!("UPDATE blob SET bytes = substr(bytes, 2) WHERE id = {second}"), "has changed"),
        (format!("DELETE FROM blob WHERE id = {second}"), "is missing from the store"),
        ("DELETE FROM piece WHERE step = 2".into(), "it has 1 large values, and the store has 0 of them"),
        ("UPDATE piece SET at = 100000 WHERE step = 2".into(), "do not fit into it"),
    ] {
        let folder = Folder::new();
        let path = folder.fresh();
        let saver = SqliteSaver::open(&path).await.unwrap();
        assert_both_contain(errors_after_damage(saver, async || edit(&path, &damage)).await, expected);
    }
}

fn assert_both_contain((newest, proceed): (String, String), expected: &str) {
    for error in [&newest, &proceed] {
        assert!(error.starts_with("E_CORRUPT_CHECKPOINT: checkpoint 0.2 cannot be read: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn savers_with_different_thresholds_share_a_file() {
    let folder = Folder::new();
    let path = folder.fresh();
    let page = text("page", LARGE);
    for (number, size) in [usize::MAX, 1_000, 200_000, 64 * 1024].into_iter().enumerate() {
        let saver = SqliteSaver::builder(&path).share_values_from(size).open().await.unwrap();
        let graph = graph(saver);
        for thread in 0..number {
            let read = graph.state(&thread.to_string()).await.unwrap().unwrap();
            assert_eq!(read.values.page, page, "thread {thread}, size {size}");
        }
        graph.invoke(Study::update().page(page.clone())).thread(number.to_string()).await.unwrap();
    }
    assert_sqlite_is_consistent(&path);
}

/// Uses two savers, each with its own connections, like two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writing_pruning_and_deleting_of_the_same_values_is_safe() {
    let folder = Folder::new();
    let path = folder.fresh();
    let patient = || SqliteSaver::builder(&path).busy_timeout(std::time::Duration::from_secs(120));
    let one = patient().open().await.unwrap();
    let two = patient().open().await.unwrap();
    assert_concurrent_use_is_safe([Arc::new(one), Arc::new(two)]).await;
    let memory: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    assert_concurrent_use_is_safe([Arc::clone(&memory), memory]).await;
    assert_sqlite_is_consistent(&path);
}

async fn assert_concurrent_use_is_safe(pair: [Arc<dyn Checkpointer>; 2]) {
    let runs =
        (0..6).map(|run: usize| tokio::spawn(write_and_delete(graph(Arc::clone(&pair[run % 2])), run)));
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
    let usage = pair[0].catalog().unwrap().usage().await.unwrap();
    assert_eq!((usage.rows, usage.values, usage.uses), (0, 0, 0), "{usage:?}");
}

/// Writes, copies, prunes and deletes a thread of its own. Other runs use the same values in another order.
async fn write_and_delete(graph: CompiledGraph<Study>, run: usize) {
    let thread = format!("t{run}");
    let other = format!("copy {run}");
    let pages = |round: usize| {
        let names = [run + round, run + 2 * round + 1, round].map(|n| (n % 5).to_string());
        names.map(|name| text(&name, 70_000))
    };
    for round in 0..5 {
        let expected = pages(round);
        graph.invoke(Study::update().overwrite_pages(expected.to_vec())).thread(&*thread).await.unwrap();
        assert_eq!(graph.state(&thread).await.unwrap().unwrap().values.pages, expected);
        graph.copy_thread(&thread, &other).await.unwrap();
        graph.prune(Retention::keep_latest_per_thread()).thread(&thread).await.unwrap();
        assert_eq!(graph.state(&thread).await.unwrap().unwrap().values.pages, expected);
        if round % 2 == 1 {
            graph.delete_thread(&thread).await.unwrap();
        }
        assert_eq!(graph.state(&other).await.unwrap().unwrap().values.pages, expected);
        graph.delete_thread(&other).await.unwrap();
    }
    graph.delete_thread(&thread).await.unwrap();
}

#[test]
fn the_consistency_check_detects_damaged_tables() {
    let folder = Folder::new();
    let path = folder.fresh();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let graph = graph(SqliteSaver::open(&path).await.unwrap());
        graph.invoke(Study::update().page(text("page", LARGE))).thread("t").await.unwrap();
    });
    drop(runtime);
    let broken = |damage: &str| {
        let copy = folder.fresh();
        std::fs::copy(&path, &copy).unwrap();
        edit(&copy, damage);
        std::panic::catch_unwind(|| assert_sqlite_is_consistent(Path::new(&copy))).is_err()
    };
    assert!(!broken(""));
    assert!(broken("DELETE FROM piece"));
    assert!(broken("DELETE FROM blob"));
    assert!(broken("DELETE FROM checkpoint"));
    assert!(broken("INSERT INTO blob (hash, bytes) VALUES (x'00', x'01')"));
    assert!(broken("UPDATE blob SET bytes = x'01'"));
}
