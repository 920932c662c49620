//! Names and values of every kind.

use super::extension::catalog;
use super::{Clause, Store, Tried, ensure, listed_clauses};
use crate::checkpointer::Checkpointer;
use crate::error::StoreError;
use crate::id::{CheckpointId, TaskId};
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, RowKind, WaitingQuery};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "any text can name a thread, and different texts name different threads": name_threads,
    "any text can name a namespace, and different texts name different namespaces": name_namespaces needing [Catalog],
    "records and pending writes of 0 bytes to 10 megabytes are returned unchanged": return_any_size,
    "queries accept any number and any text": accept_any_query needing [Catalog],
    "`try_put` obeys the same rules as `put`": put_at_once,
];

/// Names that stores have stumbled over: empty, blank, quotes, SQL, NUL, other scripts, one letter in two
/// spellings, case, wildcards, parameters, separators, the characters at the ends of planes, long ones.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "",
        " ",
        "  ",
        "'",
        "\"",
        "`",
        "\\",
        "\\'",
        "; DROP TABLE checkpoint; --",
        "' OR '1'='1",
        "a\0b",
        "a\0",
        "\0",
        "a",
        "A",
        "名前",
        "é",
        "e\u{301}",
        "\u{feff}a",
        "\u{202e}a",
        "\u{ffff}",
        "\u{10ffff}",
        "😀",
        "%",
        "_",
        "?1",
        "$1",
        ":a",
        "a/b",
        "a|b",
        "..",
        "/",
        "NULL",
        "0",
        "00",
        "1e3",
        "\n",
        "\t",
        "line\nbreak",
    ]
    .map(str::to_owned)
    .into();
    names.push("long ".repeat(400));
    names.push("long ".repeat(399) + "lonG ");
    names
}

pub(super) fn full<'a>(place: Place<'a>, step: u64, record: &'a [u8]) -> Put<'a> {
    let id = CheckpointId::new(0, step);
    Put::new(place, id, RowKind::Full, record)
}

/// Stores different data under each of the places, then reads all of it back.
async fn check_separate(store: &dyn Checkpointer, places: &[Place<'_>]) -> Tried {
    let record = |at: usize| format!("record {at}").into_bytes();
    let write = |at: usize| PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: record(at) };
    let id = CheckpointId::new(0, 0);
    let failed = |place: &Place<'_>, error: StoreError| format!("{place:?}: {error}");
    for (at, place) in places.iter().enumerate() {
        let failed = |error| failed(place, error);
        store.put(full(*place, 0, &record(at))).await.map_err(failed)?;
        store.put_writes(PutWrites::new(*place, id, &[write(at)])).await.map_err(failed)?;
    }
    for (at, place) in places.iter().enumerate() {
        let tail = store.get(*place, None).await.map_err(|error| failed(place, error))?;
        let found = tail.is_some_and(|tail| {
            tail.rows.len() == 1 && tail.rows[0].record == record(at) && tail.writes == [write(at)]
        });
        ensure!(found, "the data stored under {place:?} is not returned for it");
    }
    Ok(())
}

async fn name_threads(store: Store) -> Tried {
    let names = names();
    let places: Vec<Place<'_>> = names.iter().map(|name| Place::root(name)).collect();
    check_separate(&*store, &places).await?;
    let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
    expected.sort_unstable();
    let listed = store.threads().await?;
    ensure!(
        listed == expected,
        "threads are listed as {listed:?} instead of in order of their bytes: {expected:?}"
    );
    for (at, name) in names.iter().enumerate() {
        store.delete_thread(name).await?;
        let left = store.threads().await?.len();
        ensure!(left == names.len() - at - 1, "deleting thread {name:?} left {left} threads");
    }
    Ok(())
}

async fn name_namespaces(store: Store) -> Tried {
    let names = names();
    let places: Vec<Place<'_>> = names.iter().map(|namespace| Place { thread: "t", namespace }).collect();
    check_separate(&*store, &places).await?;
    let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
    expected.sort_unstable();
    let listed = catalog(&store)?.namespaces("t").await?;
    ensure!(
        listed == expected,
        "namespaces are listed as {listed:?} instead of in order of their bytes: {expected:?}"
    );
    Ok(())
}

async fn return_any_size(store: Store) -> Tried {
    let place = Place::root("t");
    for (step, size) in (0..).zip([0, 1, 255, 1_000, 4_061, 4_096, 70_000, 10_000_000]) {
        let record: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let id = CheckpointId::new(0, step);
        store.put(Put { segment: Some(&record), ..full(place, step, &record) }).await?;
        let write = PendingWrite { task: TaskId::from_u128(7), slot: 1, bytes: record.clone() };
        let writes = std::slice::from_ref(&write);
        store.put_writes(PutWrites::new(place, id, writes)).await?;
        let row = store.row(place, id).await?;
        let tail = store.get(place, Some(id)).await?.unwrap_or_default();
        let rows_hold = tail.rows.len() == 2 && tail.rows.iter().all(|row| row.record == record);
        ensure!(
            rows_hold && row.is_some_and(|row| row.record == record),
            "a record of {size} bytes is not returned unchanged"
        );
        ensure!(tail.writes == writes, "a pending write of {size} bytes is not returned unchanged");
    }
    Ok(())
}

async fn accept_any_query(store: Store) -> Tried {
    let place = Place::root("t");
    for step in 0..3 {
        store.put(full(place, step, b"x")).await?;
    }
    let asks = PendingWrite { task: TaskId::from_u128(1), slot: 1, bytes: b"x".to_vec() };
    let writes = PutWrites::new(place, CheckpointId::new(0, 2), std::slice::from_ref(&asks));
    store.put_writes(writes).await?;
    let largest = i64::MAX as u64;
    for (before, limit, expected) in [
        (Some(u64::MAX), None, 3),
        (Some(largest), Some(usize::MAX), 3),
        (Some(largest + 1), Some(largest as usize), 3),
        (None, Some(0), 0),
        (Some(0), Some(usize::MAX), 0),
        (Some(1), Some(usize::MAX), 1),
    ] {
        let query = ListQuery { before, limit, ..ListQuery::default() };
        let found = store.list(place, query).await?.len();
        ensure!(
            found == expected,
            "a list before {before:?} with the limit {limit:?} has {found} rows instead of {expected}"
        );
    }
    for id in [CheckpointId::new(u32::MAX, 0), CheckpointId::new(0, u64::MAX), CheckpointId::new(0, largest)]
    {
        let query = ListQuery { branch: Some(u32::MAX), before: Some(id.step), limit: None };
        let found = store.row(place, id).await?.is_some()
            || store.get(place, Some(id)).await?.is_some()
            || !store.list(place, query).await?.is_empty();
        ensure!(!found, "checkpoint {id} is found and was never stored");
    }
    for name in names() {
        for limit in [None, Some(0), Some(1), Some(usize::MAX)] {
            let query = WaitingQuery { after: Some(&name), limit };
            let found = catalog(&store)?.waiting(query).await?.len();
            let expected = usize::from(name.as_str() < "t" && limit != Some(0));
            ensure!(
                found == expected,
                "`waiting` after {name:?} (limit {limit:?}) returns {found} requests instead of {expected}"
            );
        }
    }
    Ok(())
}

/// A store may answer some calls of `try_put` and not others.
async fn put_at_once(store: Store) -> Tried {
    let place = Place::root("t");
    for step in 0..200 {
        let record = step.to_string();
        let put = full(place, step, record.as_bytes());
        match store.try_put(&put) {
            None => store.put(put).await?,
            Some(stored) => stored?,
        }
        for again in [&full(place, step, b"late"), &put] {
            let stored = store.try_put(again);
            ensure!(!matches!(stored, Some(Ok(()))), "`try_put` stored step {step} twice");
        }
        let parent = Some(CheckpointId::new(0, step + 7));
        let follows = store.try_put(&Put { parent, ..full(place, step + 1, b"late") });
        ensure!(!matches!(follows, Some(Ok(()))), "`try_put` stored a row whose parent is missing");
        let lost = store.try_put(&Put { fence: u64::MAX, ..full(place, step + 1, b"late") });
        ensure!(!matches!(lost, Some(Ok(()))), "`try_put` stored a row with a fence that was never granted");
        let row = store.row(place, put.id).await?;
        ensure!(
            row.is_some_and(|row| row.record == record.as_bytes()),
            "step {step} differs from the stored one"
        );
    }
    Ok(())
}
