//! Clauses: a change with a condition is made only if it holds.

use std::time::Duration;

use super::{Clause, Trial, Tried, listed_clauses, same, space};
use crate::error::{StoreCode, StoreError};
use crate::store::StoreExt;

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "a put `if_absent` is made only if there is no item": if_absent,
    "a put `if_version` is made only if the item has the version": if_version,
    "a delete `if_version` is made only if the item has the version": deletes,
    "an item whose time has ended is absent for conditions": ended,
];

fn is_conflict<T>(outcome: Result<T, StoreError>) -> Tried {
    same("the code", &outcome.err().map(|error| error.code()), &Some(StoreCode::ItemConflict))
}

async fn if_absent(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "k", 1).if_absent().await?;
    is_conflict(store.put(&at, "k", 2).if_absent().await)?;
    same("the value", &store.get_as(&at, "k").await?, &Some(1))
}

async fn if_version(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    is_conflict(store.put(&at, "k", 1).if_version(1).await)?;
    let first = store.put(&at, "k", 1).await?;
    let second = store.put(&at, "k", 2).if_version(first).await?;
    is_conflict(store.put(&at, "k", 3).if_version(first).await)?;
    same("the value", &store.get_as(&at, "k").await?, &Some(2))?;
    store.put(&at, "k", 4).if_version(second).await?;
    same("the value", &store.get_as(&at, "k").await?, &Some(4))
}

async fn deletes(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let first = store.put(&at, "k", 1).await?;
    let second = store.put(&at, "k", 2).await?;
    is_conflict(store.delete(&at, "k").if_version(first).await)?;
    same("the value", &store.get_as(&at, "k").await?, &Some(2))?;
    same("a delete", &store.delete(&at, "k").if_version(second).await?, &true)?;
    is_conflict(store.delete(&at, "k").if_version(second).await)
}

async fn ended(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    let first = store.put(&at, "k", 1).lifetime(Duration::from_secs(1)).await?;
    let second = store.put(&at, "l", 1).lifetime(Duration::from_secs(1)).await?;
    clock.advance(Duration::from_secs(1));
    is_conflict(store.put(&at, "k", 2).if_version(first).await)?;
    same("a delete of an ended item", &store.delete(&at, "l").await?, &false)?;
    is_conflict(store.delete(&at, "l").if_version(second).await)?;
    store.put(&at, "k", 3).if_absent().await?;
    same("the value", &store.get_as(&at, "k").await?, &Some(3))
}
