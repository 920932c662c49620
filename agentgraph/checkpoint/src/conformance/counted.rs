//! How much there is: lists without a limit are whole, and what a store says it holds is what it holds.

use futures_util::FutureExt;

use super::extension::catalog;
use super::values::{full, store_failed};
use super::{Clause, Extension, Store};
use crate::blob::Usage;
use crate::checkpointer::Checkpointer;
use crate::id::{CheckpointId, TaskId};
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, RowKind};

pub(super) const CLAUSES: [Clause; 2] = [
    Clause::code("a list without a limit is whole", |store| whole_lists(store).boxed()),
    Clause::code("a store says how much it holds", |store| holdings(store).boxed())
        .needing(&[Extension::Catalog]),
];

/// More than a page of any store.
const MANY: u64 = 1_100;

async fn whole_lists(store: Store) -> Result<(), String> {
    let place = Place::root("t");
    for step in 0..MANY {
        store.put(full(place, step, b"x")).await.map_err(store_failed)?;
    }
    for branch in [None, Some(0)] {
        let query = ListQuery { branch, ..ListQuery::default() };
        let found = store.list(place, query).await.map_err(store_failed)?.len();
        if found as u64 != MANY {
            return Err(format!("a list of branch {branch:?} has {found} rows of {MANY}"));
        }
    }
    Ok(())
}

async fn holdings(store: Store) -> Result<(), String> {
    check_usage(&store, "before anything was stored", 0, 0, 0).await?;
    let record = vec![7; 1_000];
    for thread in ["t", "u"] {
        let place = Place::root(thread);
        store.put(full(place, 0, &record)).await.map_err(store_failed)?;
        let id = CheckpointId::new(0, 1);
        let delta = Put { segment: Some(&record), ..Put::new(place, id, RowKind::Delta, &record) };
        store.put(delta).await.map_err(store_failed)?;
        let write = |slot| PendingWrite { task: TaskId::from_u128(1), slot, bytes: record.clone() };
        store.put_writes(PutWrites::new(place, id, &[write(0), write(2)])).await.map_err(store_failed)?;
    }
    check_usage(&store, "with two threads", 6, 4, 10_000).await?;
    store.delete_thread("t").await.map_err(store_failed)?;
    check_usage(&store, "after one of two was deleted", 3, 2, 5_000).await?;
    store.delete_thread("u").await.map_err(store_failed)?;
    check_usage(&store, "after all was deleted", 0, 0, 0).await
}

/// Exact numbers of rows and writes. Bytes may be more than were given, by what a store adds to each.
async fn check_usage(store: &Store, when: &str, rows: u64, writes: u64, bytes: u64) -> Result<(), String> {
    let held = catalog(store)?.usage().await.map_err(store_failed)?;
    let Usage { bytes: small, value_bytes, .. } = held;
    let counted = small.saturating_add(value_bytes);
    let fits = match bytes {
        0 => counted == 0,
        bytes => (bytes..2 * bytes).contains(&counted),
    };
    if held.rows == rows && held.writes == writes && fits {
        Ok(())
    } else {
        Err(format!("{when} it says {held:?}, and has {rows} rows and {writes} writes of {bytes} bytes"))
    }
}
