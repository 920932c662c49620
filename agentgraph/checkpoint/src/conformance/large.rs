//! Large values: stored once, kept while something holds them, and removed afterwards.
//!
//! A store chooses which values are large; a text of 120,000 bytes in a record must be one. The first clause
//! is optional: an encrypting store cannot hold it, since equal values differ once they are encrypted. It
//! holds the others.

use std::sync::Arc;

use super::crowds::run_all;
use super::extension::{catalog, upkeep};
use super::{Clause, Store, Tried, ensure, listed_clauses};
use crate::blob::Usage;
use crate::checkpointer::Checkpointer;
use crate::delta::{DeltaWriter, encode};
use crate::header::HeaderMap;
use crate::id::{CheckpointId, TaskId};
use crate::row::{PendingWrite, Place, Put, PutWrites, Rewrite, RowKind};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "a large value is stored once, however many records and pending writes hold it": store_once needing [Catalog, Upkeep] optional,
    "a large value is kept while any record or pending write holds it": keep_while_held needing [Catalog, Upkeep],
    "a large value that nothing holds is removed": remove_unheld needing [Catalog, Upkeep],
    "replaced and cleared pending writes release their large values": release_with_writes needing [Catalog],
    "a refused commit leaves no large value behind": refuse_without_trace needing [Catalog],
    "large values stay intact under concurrent writers and are removed with their threads": write_concurrently needing [Catalog],
];

const SIZE: usize = 120_000;

/// A text that shares no part with the text of another name.
fn text(name: &str) -> String {
    let mut text = String::new();
    for line in 0_u64.. {
        if text.len() >= SIZE {
            break;
        }
        text += &format!("{name} {line} ");
    }
    text
}

/// A record of a state: a number, and texts in a list.
fn record(number: u64, texts: &[&str]) -> Vec<u8> {
    let mut operations = DeltaWriter::new(2);
    operations.begin(CheckpointId::new(0, 0));
    // These types can be encoded.
    let _ = operations.channel(0).set(&number);
    let _ = operations.channel(1).append(texts);
    HeaderMap::default().to_record(operations.bytes())
}

fn write(number: u64, text: &str) -> PendingWrite {
    let mut bytes = Vec::new();
    let _ = encode(&mut bytes, &(number, text));
    PendingWrite { task: TaskId::from_u128(7), slot: 0, bytes }
}

fn put<'a>(thread: &'a str, branch: u32, step: u64, record: &'a [u8]) -> Put<'a> {
    let place = Place::root(thread);
    let id = CheckpointId::new(branch, step);
    Put::new(place, id, RowKind::Full, record)
}

async fn usage(store: &Store) -> Tried<Usage> {
    Ok(catalog(store)?.usage().await?)
}

/// Checks that a checkpoint and its pending writes are returned as they were stored.
async fn check_stored(
    store: &Store,
    thread: &str,
    id: CheckpointId,
    record: &[u8],
    writes: &[PendingWrite],
) -> Tried {
    let tail = store.get(Place::root(thread), Some(id)).await?.unwrap_or_default();
    let row = store.row(Place::root(thread), id).await?;
    ensure!(
        [tail.rows.last(), row.as_ref()].iter().all(|row| row.is_some_and(|row| row.record == record)),
        "checkpoint {id} of `{thread}` differs from the stored one"
    );
    ensure!(
        tail.writes == writes,
        "the pending writes on checkpoint {id} of `{thread}` differ from the stored ones"
    );
    Ok(())
}

/// One text in three threads, a hundred branches of one of them, a segment, a pending write and a copy.
async fn store_once(store: Store) -> Tried {
    let text = text("once");
    let beside = write(300, &text);
    for thread in ["a", "b", "c"] {
        let record = record(70_000, &["small", &text]);
        store.put(Put { segment: Some(&record), ..put(thread, 0, 0, &record) }).await?;
        let writes = std::slice::from_ref(&beside);
        let at = CheckpointId::new(0, 0);
        store.put_writes(PutWrites::new(Place::root(thread), at, writes)).await?;
    }
    for branch in 1..=100 {
        let record = record(u64::from(branch), &[&text]);
        store.put(put("a", branch, 1, &record)).await?;
    }
    upkeep(&store)?.copy_thread("a", "d").await?;
    let held = usage(&store).await?;
    let bytes = held.bytes + held.value_bytes;
    ensure!(bytes <= 2 * SIZE as u64, "a text of {SIZE} bytes takes {bytes} bytes when many records hold it");
    for thread in ["a", "b", "c", "d"] {
        let record = record(70_000, &["small", &text]);
        check_stored(&store, thread, CheckpointId::new(0, 0), &record, std::slice::from_ref(&beside)).await?;
    }
    for thread in ["a", "d"] {
        check_stored(&store, thread, CheckpointId::new(7, 1), &record(7, &[&text]), &[]).await?;
    }
    Ok(())
}

async fn keep_while_held(store: Store) -> Tried {
    let shared = text("shared");
    let other = text("other");
    let kept = record(1, &[&shared, &other]);
    for thread in ["deleted", "pruned", "kept"] {
        store.put(put(thread, 0, 0, &kept)).await?;
    }
    upkeep(&store)?.copy_thread("kept", "copy").await?;
    store.delete_thread("deleted").await?;
    check_stored(&store, "kept", CheckpointId::new(0, 0), &kept, &[]).await?;
    store.put(put("pruned", 0, 1, b"newer")).await?;
    let gone = [(0, 0..1)];
    let rewrite = Rewrite { place: Place::root("pruned"), fence: 0, fulls: &[], unfold: &[], gone: &gone };
    upkeep(&store)?.rewrite(rewrite).await?;
    check_stored(&store, "kept", CheckpointId::new(0, 0), &kept, &[]).await?;
    // The rewritten full holds only one of the two texts.
    let fulls = [(CheckpointId::new(0, 0), record(2, &[&shared]))];
    let rewrite = Rewrite { place: Place::root("kept"), fence: 0, fulls: &fulls, unfold: &[], gone: &[] };
    upkeep(&store)?.rewrite(rewrite).await?;
    check_stored(&store, "kept", CheckpointId::new(0, 0), &fulls[0].1, &[]).await?;
    check_stored(&store, "copy", CheckpointId::new(0, 0), &kept, &[]).await?;
    store.delete_thread("copy").await?;
    check_stored(&store, "kept", CheckpointId::new(0, 0), &fulls[0].1, &[]).await?;
    let bytes = usage(&store).await?.value_bytes;
    ensure!(
        bytes < 3 * SIZE as u64 / 2,
        "{bytes} bytes of values are stored, but only one of {SIZE} bytes is held"
    );
    Ok(())
}

async fn remove_unheld(store: Store) -> Tried {
    let text = text("unheld");
    let record = record(1, &[&text]);
    let beside = [write(1, &text)];
    for thread in ["a", "b"] {
        store.put(Put { segment: Some(&record), ..put(thread, 0, 0, &record) }).await?;
        let at = CheckpointId::new(0, 0);
        store.put_writes(PutWrites::new(Place::root(thread), at, &beside)).await?;
        store.put_writes(PutWrites::new(Place { thread, namespace: "n" }, at, &beside)).await?;
    }
    store.delete_thread("a").await?;
    let gone = [(0, 0..9)];
    for namespace in ["", "n"] {
        let place = Place { thread: "b", namespace };
        let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &gone };
        upkeep(&store)?.rewrite(rewrite).await?;
    }
    let left = usage(&store).await?;
    ensure!(left == Usage::default(), "after everything was deleted the store still has {left:?}");
    Ok(())
}

async fn release_with_writes(store: Store) -> Tried {
    let one = text("one");
    let other = text("other");
    let place = Place::root("t");
    let at = CheckpointId::new(0, 0);
    let first = record(0, &[]);
    store.put(put("t", 0, 0, &first)).await?;
    let writes = [write(1, &one), PendingWrite { slot: 2, ..write(1, "small") }];
    for written in [&writes[..], &[write(2, &other)], &[write(2, &one)], &[write(3, "small")], &writes[..1]] {
        store.put_writes(PutWrites::new(place, at, written)).await?;
    }
    check_stored(&store, "t", at, &first, &writes).await?;
    let held = usage(&store).await?;
    ensure!(
        held.value_bytes <= 3 * SIZE as u64 / 2,
        "the values of replaced pending writes are still stored: {held:?}"
    );
    let second = record(1, &[&one]);
    store.put(Put { clears_writes: true, ..put("t", 0, 1, &second) }).await?;
    check_stored(&store, "t", CheckpointId::new(0, 1), &second, &[]).await?;
    store.put_writes(PutWrites::new(place, CheckpointId::new(0, 1), &[write(4, &other)])).await?;
    store.put(Put { clears_writes: true, ..put("t", 0, 2, &first) }).await?;
    let left = usage(&store).await?;
    ensure!(
        left.writes == 0 && left.value_bytes < 3 * SIZE as u64 / 2,
        "the values of cleared pending writes are still stored: {left:?}"
    );
    Ok(())
}

async fn refuse_without_trace(store: Store) -> Tried {
    let small = record(0, &[]);
    store.put(put("t", 0, 3, &small)).await?;
    let before = usage(&store).await?;
    let late = record(1, &[&text("late")]);
    let beside = [write(1, &text("beside"))];
    let outcomes = [
        store.put(put("t", 0, 3, &late)).await,
        store.put(Put { fence: u64::MAX, ..put("t", 0, 4, &late) }).await,
        store.put(Put { segment: Some(&late), clears_writes: true, ..put("t", 0, 2, &late) }).await,
        store
            .put_writes(PutWrites {
                fence: u64::MAX,
                ..PutWrites::new(Place::root("t"), CheckpointId::new(0, 3), &beside)
            })
            .await,
    ];
    ensure!(outcomes.iter().all(Result::is_err), "a commit or pending write that must be refused is stored");
    let after = usage(&store).await?;
    ensure!(after == before, "refused commits changed the usage from {before:?} to {after:?}");
    Ok(())
}

async fn write_concurrently(store: Store) -> Tried {
    const WRITERS: u64 = 8;
    let texts = [Arc::new(text("one")), Arc::new(text("two")), Arc::new(text("three"))];
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(&store);
        let mut texts = texts.clone();
        async move {
            let thread = format!("t{writer}");
            let at = CheckpointId::new(0, 0);
            for round in 0..6 {
                texts.rotate_left(1 + (writer % 2) as usize);
                let record = record(round, &[&texts[0], &texts[1]]);
                let beside = [write(round, &texts[2])];
                store.put(put(&thread, 0, 0, &record)).await?;
                store.put_writes(PutWrites::new(Place::root(&thread), at, &beside)).await?;
                check_stored(&store, &thread, at, &record, &beside).await?;
                let cleared = record_of_two(round, &texts);
                let commit = Put { clears_writes: true, ..put(&thread, 0, 1, &cleared) };
                store.put(commit).await?;
                check_stored(&store, &thread, CheckpointId::new(0, 1), &cleared, &[]).await?;
                store.delete_thread(&thread).await?;
            }
            Ok(())
        }
    });
    run_all(writers).await?;
    let left = usage(&store).await?;
    ensure!((left.values, left.uses) == (0, 0), "after everything was deleted the store still has {left:?}");
    Ok(())
}

fn record_of_two(round: u64, texts: &[Arc<String>; 3]) -> Vec<u8> {
    record(round, &[&texts[2], &texts[0]])
}
