//! Leases that end: who waits for a thread is told, and who was dropped in the middle keeps none.

use std::pin::pin;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;

use super::extension::leases;
use super::values::store_failed;
use super::{Clause, Extension, Store};
use crate::lease::{Claim, LeaseTerms};
use crate::services::yield_now;

pub(super) const CLAUSES: [Clause; 2] = [
    Clause::code("who waits for the end of a lease is not told of it before, again and again", |store| {
        not_before(store).boxed()
    })
    .needing(&[Extension::Leases]),
    Clause::code("a lease that was let go is free with one of the next calls", |store| let_go(store).boxed())
        .needing(&[Extension::Leases]),
];

/// How often it is looked, with calls in between: a store may have to hear of it from elsewhere.
const LOOKS: usize = 200;

async fn take(store: &Store) -> Result<Option<u64>, String> {
    let terms =
        LeaseTerms { now: UNIX_EPOCH, until: UNIX_EPOCH + Duration::from_secs(1 << 32), seize: false };
    match leases(store)?.acquire("t", terms).await.map_err(store_failed)? {
        Claim::Granted { fence } => Ok(Some(fence)),
        Claim::Held { .. } => Ok(None),
    }
}

async fn not_before(store: Store) -> Result<(), String> {
    let fence = take(&store).await?.ok_or("a thread that nobody has is held")?;
    let mut returned = 0;
    // A store may be wrong about it now and then.
    while returned < 5 {
        let mut released = pin!(leases(&store)?.released("t", fence));
        let mut is_held = true;
        for _ in 0..LOOKS {
            if released.as_mut().now_or_never().is_some() {
                is_held = false;
                break;
            }
            store.threads().await.map_err(store_failed)?;
            yield_now().await;
        }
        if is_held {
            return Ok(());
        }
        returned += 1;
    }
    Err("it said again and again that a lease has ended which is held: who waits would ask without a pause"
        .into())
}

async fn let_go(store: Store) -> Result<(), String> {
    let fence = take(&store).await?.ok_or("a thread that nobody has is held")?;
    if take(&store).await?.is_some() {
        return Err("a thread that is held is granted to another writer".into());
    }
    leases(&store)?.let_go("t", fence);
    for _ in 0..LOOKS {
        if take(&store).await?.is_some() {
            return Ok(());
        }
        store.threads().await.map_err(store_failed)?;
        yield_now().await;
    }
    Err("a thread whose run was dropped stays held".into())
}
