//! Counts: a list without a limit returns every row, and `usage` reports what is stored.

use super::extension::catalog;
use super::values::full;
use super::{Clause, Store, Tried, ensure, listed_clauses};
use crate::blob::Usage;
use crate::checkpointer::Checkpointer;
use crate::id::{CheckpointId, TaskId};
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, RowKind};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "a list without a limit returns every row": list_every_row,
    "`usage` counts rows, pending writes and bytes": count_usage needing [Catalog],
];

/// More than a page of any store.
const MANY: u64 = 1_100;

async fn list_every_row(store: Store) -> Tried {
    let place = Place::root("t");
    for step in 0..MANY {
        store.put(full(place, step, b"x")).await?;
    }
    for branch in [None, Some(0)] {
        let query = ListQuery { branch, ..ListQuery::default() };
        let found = store.list(place, query).await?.len();
        ensure!(found as u64 == MANY, "a list of branch {branch:?} has {found} of {MANY} rows");
    }
    Ok(())
}

async fn count_usage(store: Store) -> Tried {
    check_usage(&store, "before anything was stored", 0, 0, 0).await?;
    let record = vec![7; 1_000];
    for thread in ["t", "u"] {
        let place = Place::root(thread);
        store.put(full(place, 0, &record)).await?;
        let id = CheckpointId::new(0, 1);
        let delta = Put { segment: Some(&record), ..Put::new(place, id, RowKind::Delta, &record) };
        store.put(delta).await?;
        let write = |slot| PendingWrite { task: TaskId::from_u128(1), slot, bytes: record.clone() };
        store.put_writes(PutWrites::new(place, id, &[write(0), write(2)])).await?;
    }
    check_usage(&store, "with two threads", 6, 4, 10_000).await?;
    store.delete_thread("t").await?;
    check_usage(&store, "after one of them was deleted", 3, 2, 5_000).await?;
    store.delete_thread("u").await?;
    check_usage(&store, "after both were deleted", 0, 0, 0).await
}

/// Compares the exact numbers of rows and writes. A store may count more bytes than it was given, up to twice
/// as many.
async fn check_usage(store: &Store, when: &str, rows: u64, writes: u64, bytes: u64) -> Tried {
    let held = catalog(store)?.usage().await?;
    let Usage { bytes: small, value_bytes, .. } = held;
    let counted = small.saturating_add(value_bytes);
    let fits = match bytes {
        0 => counted == 0,
        bytes => (bytes..2 * bytes).contains(&counted),
    };
    ensure!(
        held.rows == rows && held.writes == writes && fits,
        "{when} `usage` returns {held:?}, but {rows} rows and {writes} writes of {bytes} bytes are stored"
    );
    Ok(())
}
