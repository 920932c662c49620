//! Records behind an `EncryptedSaver` cannot be read without the key, cannot be changed, and cannot be
//! moved to another place.
//!
//! These tests caught three faults, which were inserted by hand: labels without the thread; answers in clear;
//! segments that stayed beside deltas after earlier deltas became full records.
#![cfg(all(feature = "encryption", feature = "sqlite"))]

#[cfg(feature = "postgres")]
mod in_postgres;
mod world;

use std::path::Path;
use std::sync::Arc;

use agentgraph::checkpoint::{
    Catalog, Claim, EncryptedSaver, EncryptionKey, KeyRing, LeaseTerms, Leases, ListQuery, MemorySaver,
    PendingWrite, Place, Put, PutWrites, Row, RowKind, SqliteSaver, Tail, Upkeep,
};
use agentgraph::prelude::*;
use agentgraph::{Checkpoint, CheckpointId, Checkpointer, Code, Durability};
use serde::{Deserialize, Serialize};
use world::{NEEDLE, run_all, run_dependencies};

use crate::common::saver::NotingSaver;
use crate::sqlite_folder::Folder;

fn key(number: u8) -> EncryptionKey {
    EncryptionKey::from_bytes([number; 32])
}

fn ring() -> KeyRing {
    KeyRing::new("current", key(1)).unwrap()
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Returns the files of a folder that contain the needle.
fn files_with_needle(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.is_empty() || !path.ends_with("t.db"), "nothing was stored");
        if contains(&bytes, NEEDLE.as_bytes()) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn an_sqlite_file_and_its_log_hold_no_clear_text() {
    let folder = Folder::new();
    let path = folder.file("t.db");
    {
        let store = Arc::new(SqliteSaver::open(&path).await.unwrap());
        let saver: Arc<dyn Checkpointer> = Arc::new(EncryptedSaver::new(store, ring()));
        run_all(|| Arc::clone(&saver)).await;
        assert!(folder.file("t.db-wal").exists(), "there is a log to search");
        assert_eq!(files_with_needle(path.parent().unwrap()), Vec::<String>::new());
    }
    assert_eq!(files_with_needle(path.parent().unwrap()), Vec::<String>::new());
}

#[tokio::test]
async fn the_needle_is_found_without_encryption() {
    let folder = Folder::new();
    let path = folder.file("t.db");
    let saver: Arc<dyn Checkpointer> = Arc::new(SqliteSaver::open(&path).await.unwrap());
    run_dependencies(Arc::clone(&saver), Durability::Sync).await;
    let found = files_with_needle(path.parent().unwrap());
    assert!(found.iter().any(|file| file.starts_with("t.db")), "{found:?}");
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Chat {
    #[reduce(append)]
    said: Vec<String>,
}

async fn asks(ctx: Ctx, chat: Snapshot<Chat>) -> Result<ChatUpdate> {
    match chat.said.len() {
        0..3 => Ok(Chat::update().said(["more"])),
        _ => Ok(Chat::update().said([ctx.interrupt::<String>("enough?")?])),
    }
}

fn chat(saver: impl Checkpointer) -> CompiledGraph<Chat> {
    let more = |chat: &Chat| if chat.said.last().is_some_and(|last| last == "more") { "asks" } else { END };
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").branch("asks", more, ["asks", END]);
    graph.compile().unwrap().checkpointer(saver)
}

type Store = Arc<MemorySaver>;

fn encrypted_chat(keys: KeyRing, store: &Store) -> CompiledGraph<Chat> {
    chat(EncryptedSaver::new(Arc::clone(store), keys))
}

/// Runs three supersteps on a new thread. The fourth one interrupts.
async fn make_waiting_thread(graph: &CompiledGraph<Chat>, thread: &str) {
    let asked = graph.invoke(Chat::update()).thread(thread).await.unwrap();
    assert_eq!(asked.interrupts().len(), 1);
}

/// Answers the interrupt of a thread and returns its texts when the run has finished.
async fn answer(graph: &CompiledGraph<Chat>, thread: &str) -> Vec<String> {
    graph.resume("yes").thread(thread).await.unwrap().into_finished().unwrap().said
}

#[tokio::test]
async fn old_records_are_read_with_old_keys_and_new_ones_written_with_the_current_one() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "t").await;
    let rotated = || KeyRing::new("next", key(2)).unwrap().older("current", key(1)).unwrap();
    assert_eq!(answer(&encrypted_chat(rotated(), &store), "t").await, ["more", "more", "more", "yes"]);
    assert_eq!(encrypted_chat(rotated(), &store).history("t").await.unwrap().len(), 5);
    let only_new = encrypted_chat(KeyRing::new("next", key(2)).unwrap(), &store);
    let error = only_new.state("t").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "E_UNKNOWN_KEY: checkpoint 0.0 cannot be read: it is encrypted with the key `current`, which the key ring does not have: add it as an older key (thread `t`)"
    );
    let only_old = encrypted_chat(ring(), &store);
    assert_eq!(only_old.state("t").await.unwrap_err().code(), Code::UnknownKey);
    assert_eq!(only_old.history("t").before(CheckpointId::new(0, 4)).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_resealed_thread_needs_no_old_key_and_reads_the_same() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "t").await;
    make_waiting_thread(&encrypted_chat(ring(), &store), "other").await;
    encrypted_chat(ring(), &store).update_state("t").at(CheckpointId::new(0, 1)).await.unwrap();
    let rotated = KeyRing::new("next", key(2)).unwrap().older("current", key(1)).unwrap();
    let before = encrypted_chat(rotated.clone(), &store).history("t").await.unwrap();
    let saver = EncryptedSaver::new(Arc::clone(&store), rotated);
    assert!(saver.reseal("t").await.unwrap() > 4);
    assert_eq!(saver.reseal("t").await.unwrap(), 0, "nothing is left to reseal");
    let only_new = encrypted_chat(KeyRing::new("next", key(2)).unwrap(), &store);
    let after = only_new.history("t").await.unwrap();
    let shown = |history: &[Checkpoint<Chat>]| format!("{history:?}");
    assert_eq!(shown(&after), shown(&before));
    assert_eq!(only_new.state("other").await.unwrap_err().code(), Code::UnknownKey);
    saver.reseal("other").await.unwrap();
    assert_eq!(answer(&only_new, "other").await, ["more", "more", "more", "yes"]);
}

/// Writes more deltas than a segment folds, some before and some after the change of the key. Reads steps
/// around each boundary.
#[tokio::test]
async fn a_long_thread_is_resealed_across_its_segments() {
    async fn counts(chat: Snapshot<Chat>) -> ChatUpdate {
        Chat::update().said([chat.said.len().to_string()])
    }
    let long = |keys: KeyRing, store: &Store| {
        let more = |chat: &Chat| if chat.said.len() < 2_600 { "counts" } else { END };
        let graph = StateGraph::new().node("counts", counts).edge(START, "counts");
        let graph = graph.branch("counts", more, ["counts", END]).compile().unwrap();
        graph.checkpointer(EncryptedSaver::new(Arc::clone(store), keys))
    };
    let rotated = || KeyRing::new("next", key(2)).unwrap().older("current", key(1)).unwrap();
    for switch in [500, 1_024, 1_500] {
        let store = Store::default();
        let first = long(ring(), &store);
        first.invoke(Chat::update()).thread("t").max_supersteps(switch).await.unwrap();
        long(rotated(), &store).proceed().thread("t").max_supersteps(5_000).await.unwrap();
        EncryptedSaver::new(Arc::clone(&store), rotated()).reseal("t").await.unwrap();
        let graph = long(KeyRing::new("next", key(2)).unwrap(), &store);
        for step in [1, 499, 500, 501, 1_022, 1_024, 1_025, 1_499, 1_501, 2_047, 2_048, 2_049, 2_600] {
            let state = graph.state_at("t", CheckpointId::new(0, step)).await.unwrap().unwrap();
            let expected: Vec<String> = (0..step).map(|n| n.to_string()).collect();
            assert_eq!(state.values.said, expected, "step {step}, new key after {switch}");
        }
    }
}

#[tokio::test]
async fn a_busy_thread_is_not_resealed() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "t").await;
    let now = std::time::SystemTime::now();
    let hour = std::time::Duration::from_secs(3600);
    store.acquire("t", LeaseTerms { now, until: now + hour, seize: false }).await.unwrap();
    let saver =
        EncryptedSaver::new(store, KeyRing::new("next", key(2)).unwrap().older("current", key(1)).unwrap());
    assert_eq!(saver.reseal("t").await.unwrap_err().code(), Code::ThreadBusy);
}

fn from_current_to_next<C: Checkpointer>(store: C) -> EncryptedSaver<C> {
    EncryptedSaver::new(store, KeyRing::new("next", key(2)).unwrap().older("current", key(1)).unwrap())
}

/// A store of an earlier release or of another vendor may hold pending writes of a checkpoint that comes
/// later.
#[tokio::test]
async fn no_pending_write_under_the_old_key_appears_after_resealing() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "t").await;
    let at = raw(&store, "t").await.rows.last().unwrap().id;
    let next = CheckpointId::new(at.branch, at.step + 1);
    let early = PendingWrite {
        task: agentgraph::checkpoint::TaskId::from_u128(5),
        slot: 1,
        bytes: b"early".to_vec(),
    };
    let old = EncryptedSaver::new(Arc::clone(&store), ring());
    old.put_writes(PutWrites::new(Place::root("t"), next, &[early])).await.unwrap();
    from_current_to_next(Arc::clone(&store)).reseal("t").await.unwrap();
    let graph = encrypted_chat(KeyRing::new("next", key(2)).unwrap(), &store);
    graph.update_state("t").update(Chat::update()).await.unwrap();
    assert_eq!(graph.waiting().await.unwrap()[0].problem, None);
    answer(&graph, "t").await;
}

#[tokio::test]
async fn resealing_releases_the_thread_when_dropped_and_fails_when_the_lease_is_lost() {
    let store = NotingSaver::memory();
    make_waiting_thread(&chat(EncryptedSaver::new(store.clone(), ring())), "t").await;
    let clock = crate::common::clock::Clock::default();
    let saver = from_current_to_next(store.clone()).services(clock.clone());
    let mut resealing = Box::pin(saver.reseal("t"));
    assert!(futures_util::poll!(&mut resealing).is_pending());
    let now = std::time::UNIX_EPOCH;
    let terms = LeaseTerms { now, until: now + std::time::Duration::from_secs(60), seize: false };
    let Claim::Held { until, .. } = store.acquire("t", terms).await.unwrap() else {
        panic!("the thread is free")
    };
    assert_eq!(until, now + std::time::Duration::from_secs(30), "the lease ends by the given clock");
    drop(resealing);
    let Claim::Granted { fence } = store.acquire("t", terms).await.unwrap() else {
        panic!("the lease is kept")
    };
    store.release("t", fence).await.unwrap();
    let mut resealing = Box::pin(saver.reseal("t"));
    assert!(futures_util::poll!(&mut resealing).is_pending());
    store.acquire("t", LeaseTerms { seize: true, ..terms }).await.unwrap();
    assert_eq!(resealing.await.unwrap_err().code(), Code::LeaseLost);
}

#[tokio::test]
async fn a_wrong_key_and_a_missing_key_are_distinguished_from_damage() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "t").await;
    let wrong = encrypted_chat(KeyRing::new("current", key(9)).unwrap(), &store);
    for error in [
        wrong.state("t").await.unwrap_err(),
        wrong.history("t").await.unwrap_err(),
        wrong.resume("yes").thread("t").await.unwrap_err(),
        wrong.invoke(Chat::update()).thread("t").abandon().await.unwrap_err(),
    ] {
        assert_eq!((error.code(), error.thread()), (Code::WrongKey, Some("t")), "{error}");
        assert!(error.to_string().contains("checkpoint 0."), "{error}");
    }
    let problem = wrong.waiting().await.unwrap().remove(0).problem.unwrap();
    assert!(problem.code == Code::WrongKey && problem.message.contains("slot 1"), "{problem}");
    let without = chat(Arc::clone(&store));
    let error = without.state("t").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "E_UNKNOWN_KEY: checkpoint 0.0 cannot be read: it is encrypted: wrap the store in an `EncryptedSaver` with the key it was encrypted with (thread `t`)"
    );
    let problem = without.waiting().await.unwrap().remove(0).problem.unwrap();
    assert_eq!((problem.code, &*problem.thread), (Code::UnknownKey, "t"));
}

/// Returns the encrypted rows and writes of a thread.
async fn raw(store: &Store, thread: &str) -> Tail {
    store.get(Place::root(thread), None).await.unwrap().unwrap()
}

/// Stores a thread from given rows and writes, without a key.
async fn forge(thread: &str, rows: &[Row], writes: &[PendingWrite]) -> Store {
    let store = Store::default();
    let place = Place::root(thread);
    for row in rows {
        let Row { id, kind, record } = row;
        let put = Put::new(place, *id, *kind, record);
        store.put(put).await.unwrap();
    }
    let at = rows.last().unwrap().id;
    store.put_writes(PutWrites::new(place, at, writes)).await.unwrap();
    store
}

/// Asserts that reading and resuming a thread fail because a seal is broken.
async fn assert_seal_broken(store: &Store, thread: &str, what: &str) {
    let graph = encrypted_chat(ring(), store);
    for error in [
        graph.state(thread).await.expect_err(what),
        graph.resume("yes").thread(thread).await.expect_err(what),
    ] {
        assert_eq!((error.code(), error.thread()), (Code::SealBroken, Some(thread)), "{what}: {error}");
        assert!(error.to_string().contains("checkpoint 0."), "{what}: {error}");
    }
}

#[tokio::test]
async fn records_moved_to_another_thread_or_place_are_refused() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "a").await;
    make_waiting_thread(&encrypted_chat(ring(), &store), "b").await;
    let a = raw(&store, "a").await;
    let b = raw(&store, "b").await;
    assert!(
        encrypted_chat(ring(), &forge("a", &a.rows, &a.writes).await).state("a").await.is_ok(),
        "an unchanged copy can be read"
    );
    assert_seal_broken(&forge("b", &a.rows, &a.writes).await, "b", "a whole thread").await;
    let mut rows = b.rows.clone();
    rows[2].record.clone_from(&a.rows[2].record);
    assert_seal_broken(&forge("b", &rows, &b.writes).await, "b", "one record of another thread").await;
    let mut rows = b.rows.clone();
    rows[2].record.clone_from(&b.rows[3].record);
    assert_seal_broken(&forge("b", &rows, &b.writes).await, "b", "a record of another step").await;
    let mut rows = b.rows.clone();
    rows[0].kind = RowKind::Delta;
    rows[1].kind = RowKind::Full;
    assert_seal_broken(&forge("b", &rows, &b.writes).await, "b", "a record of another kind").await;
    let mut writes = b.writes.clone();
    writes[0].bytes.clone_from(&a.writes[0].bytes);
    assert_seal_broken(&forge("b", &b.rows, &writes).await, "b", "a question of another thread").await;
    let mut writes = b.writes.clone();
    writes[0].slot += 2;
    assert_seal_broken(&forge("b", &b.rows, &writes).await, "b", "a question in another place").await;
    let mut writes = b.writes.clone();
    writes[0].bytes.clone_from(&b.rows[1].record);
    assert_seal_broken(&forge("b", &b.rows, &writes).await, "b", "a record in the place of a question").await;
}

#[tokio::test]
async fn changed_or_truncated_records_are_refused() {
    let store = Store::default();
    make_waiting_thread(&encrypted_chat(ring(), &store), "t").await;
    let tail = raw(&store, "t").await;
    let whole = tail.rows[1].record.clone();
    for at in 0..whole.len() {
        for damage in ["flip", "cut"] {
            let mut rows = tail.rows.clone();
            match damage {
                "flip" => rows[1].record[at] ^= 0x20,
                _ => rows[1].record.truncate(at),
            }
            let graph = encrypted_chat(ring(), &forge("t", &rows, &tail.writes).await);
            let error = graph.state("t").await.expect_err("a damaged record is refused");
            let expected =
                [Code::SealBroken, Code::UnknownKey, Code::WrongKey, Code::NotEncrypted, Code::UnknownFormat];
            assert!(expected.contains(&error.code()), "{damage} at {at}: {error}");
            assert!(error.to_string().contains("checkpoint 0.1 cannot be read"), "{error}");
            let first = graph.state_at("t", CheckpointId::new(0, 0)).await.unwrap();
            assert!(first.is_some(), "the checkpoint before it can be read");
        }
    }
}

#[tokio::test]
async fn records_in_clear_are_read_only_if_configured() {
    let store = Store::default();
    make_waiting_thread(&chat(Arc::clone(&store)), "t").await;
    let error = encrypted_chat(ring(), &store).state("t").await.unwrap_err();
    assert_eq!(error.code(), Code::NotEncrypted);
    let both = chat(EncryptedSaver::new(Arc::clone(&store), ring()).reads_clear(true));
    assert_eq!(answer(&both, "t").await, ["more", "more", "more", "yes"]);
    let newest = raw(&store, "t").await.rows.pop().unwrap();
    assert_eq!(newest.record[0], 0xc1, "new records are encrypted");
    let saver = EncryptedSaver::new(Arc::clone(&store), ring()).reads_clear(true);
    saver.reseal("t").await.unwrap();
    assert_eq!(encrypted_chat(ring(), &store).history("t").await.unwrap().len(), 5);
}

#[tokio::test]
async fn copies_of_copies_are_readable_and_independent() {
    let folder = Folder::new();
    let file = Arc::new(SqliteSaver::open(folder.fresh()).await.unwrap());
    for store in [Arc::new(MemorySaver::new()) as Arc<dyn Checkpointer>, file] {
        let graph = chat(EncryptedSaver::new(Arc::clone(&store), ring()));
        make_waiting_thread(&graph, "a").await;
        graph.copy_thread("a", "b").await.unwrap();
        graph.copy_thread("b", "c").await.unwrap();
        graph.delete_thread("a").await.unwrap();
        for thread in ["c", "b"] {
            assert_eq!(
                graph.waiting().after("").await.unwrap().iter().filter(|one| one.thread == thread).count(),
                1
            );
            assert_eq!(answer(&graph, thread).await, ["more", "more", "more", "yes"], "{thread}");
            assert!(graph.history(thread).await.unwrap().len() >= 5);
        }
        assert_eq!(graph.copy_thread("b", "c").await.unwrap_err().code(), Code::ThreadExists);
        assert_eq!(graph.state("c").await.unwrap().unwrap().values.said.len(), 4);
        let saver = EncryptedSaver::new(Arc::clone(&store), ring());
        assert_eq!(saver.namespaces("c").await.unwrap(), [""], "permissions are not listed as a namespace");
        let permissions = Place { thread: "c", namespace: "||origins" };
        assert_eq!(store.list(permissions, ListQuery::default()).await.unwrap().len(), 2);
        assert!(saver.reseal("c").await.unwrap() > 0);
        // The permission of `b` was copied along. It is of no use to `c`, so `reseal` removed it.
        assert_eq!(store.list(permissions, ListQuery::default()).await.unwrap().len(), 1);
        assert_eq!(text_of(&graph, "c").await, "more more more yes");
    }
}

async fn text_of(graph: &CompiledGraph<Chat>, thread: &str) -> String {
    graph.state(thread).await.unwrap().unwrap().values.said.join(" ")
}

#[tokio::test]
async fn a_copy_made_by_the_store_alone_is_refused() {
    let store = Store::default();
    let graph = encrypted_chat(ring(), &store);
    make_waiting_thread(&graph, "a").await;
    graph.copy_thread("a", "b").await.unwrap();
    store.copy_thread("a", "stolen").await.unwrap();
    store.copy_thread("b", "stolen too").await.unwrap();
    assert_seal_broken(&store, "stolen", "a copy without a permission").await;
    assert_seal_broken(&store, "stolen too", "a copy with the permission of another").await;
}

#[tokio::test]
async fn debug_output_and_errors_do_not_show_keys() {
    let saver = EncryptedSaver::new(MemorySaver::new(), ring().older("old", key(0xab)).unwrap());
    let digits = "ab".repeat(32);
    let shown = format!("{saver:?} {:?} {:?}", ring(), EncryptionKey::from_hex(&digits).unwrap());
    assert!(shown.contains("\"old\"") && !shown.contains("abab") && !shown.contains("171"), "{shown}");
    for wrong in ["", "ab", &"ab".repeat(33), &"zz".repeat(32), &format!("{}\u{e9}", "a".repeat(62))] {
        let error = EncryptionKey::from_hex(wrong).unwrap_err().to_string();
        assert_eq!(error, "E_UNKNOWN_KEY: an encryption key is written as 64 hexadecimal digits");
    }
    for ring in
        [ring().older("current", key(3)), KeyRing::new("", key(1)), KeyRing::new("n".repeat(256), key(1))]
    {
        assert_eq!(ring.unwrap_err().code(), Code::UnknownKey);
    }
    assert!(KeyRing::new("n".repeat(255), key(1)).is_ok());
}

#[tokio::test]
async fn equal_values_are_never_encrypted_to_equal_bytes() {
    let store = Store::default();
    let graph = encrypted_chat(ring(), &store);
    let mut seen = std::collections::HashSet::new();
    for thread in 0..200 {
        let thread = format!("t{thread}");
        make_waiting_thread(&graph, &thread).await;
        let tail = raw(&store, &thread).await;
        let records = tail.rows.iter().map(|row| &row.record);
        for bytes in records.chain(tail.writes.iter().map(|write| &write.bytes)) {
            // Salt and nonce follow the marker, the version, the name of the key and its check.
            assert!(seen.insert(bytes[14..38].to_vec()), "two records have the same salt and nonce");
            assert_eq!(&bytes[..10], b"\xc1\x01\x07current");
        }
    }
    assert!(seen.len() > 900);
}
