//! Signals about leases: `released` waits for their ends, `let_go` ends the lease of a dropped run, and
//! `hear_stops` tells of requests to stop.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;

use super::extension::leases;
use super::{Clause, Store, Tried, ensure, listed_clauses};
use crate::lease::{Claim, HearsStops, LeaseTerms};
use crate::lock::Lock;
use crate::services::yield_now;

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "`released` does not return repeatedly while the lease is held": wait_while_held needing [Leases],
    "`let_go` frees the lease during one of the next calls": free_with_let_go needing [Leases],
    "a store that ends with its process tells its listeners of requests to stop": tell_of_stops needing [Leases],
];

/// How often a clause looks, with calls in between: the store may learn of the end from another process.
const LOOKS: usize = 200;

async fn take(store: &Store) -> Tried<Option<u64>> {
    let terms =
        LeaseTerms { now: UNIX_EPOCH, until: UNIX_EPOCH + Duration::from_secs(1 << 32), seize: false };
    match leases(store)?.acquire("t", terms).await? {
        Claim::Granted { fence } => Ok(Some(fence)),
        Claim::Held { .. } => Ok(None),
    }
}

async fn wait_while_held(store: Store) -> Tried {
    let fence = take(&store).await?.ok_or("a thread without a lease is held")?;
    let mut returned = 0;
    // A store may return early now and then.
    while returned < 5 {
        let mut released = pin!(leases(&store)?.released("t", fence));
        let mut is_held = true;
        for _ in 0..LOOKS {
            if released.as_mut().now_or_never().is_some() {
                is_held = false;
                break;
            }
            store.threads().await?;
            yield_now().await;
        }
        if is_held {
            return Ok(());
        }
        returned += 1;
    }
    Err(format!(
        "`released` returned {returned} times while the lease was held, so waiting runs would not pause"
    )
    .into())
}

async fn free_with_let_go(store: Store) -> Tried {
    let fence = take(&store).await?.ok_or("a thread without a lease is held")?;
    ensure!(take(&store).await?.is_none(), "the lease of a held thread is granted to another writer");
    leases(&store)?.let_go("t", fence);
    for _ in 0..LOOKS {
        if take(&store).await?.is_some() {
            return Ok(());
        }
        store.threads().await?;
        yield_now().await;
    }
    Err("the thread is still held after `let_go`".into())
}

/// A listener that writes down what it hears.
#[derive(Default)]
struct Heard(Lock<Vec<(String, u64)>>);

impl HearsStops for Heard {
    fn asked_to_stop(&self, thread: &str, fence: u64) {
        self.0.lock().push((thread.to_owned(), fence));
    }
}

async fn tell_of_stops(store: Store) -> Tried {
    let (heard, dropped) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    let leases = leases(&store)?;
    let listener: Weak<Heard> = Arc::downgrade(&heard);
    leases.hear_stops(listener);
    let listener: Weak<Heard> = Arc::downgrade(&dropped);
    leases.hear_stops(listener);
    drop(dropped);
    let ask = || leases.ask_to_stop("t", UNIX_EPOCH);
    ensure!(ask().await?.is_none(), "a thread without a lease is asked to stop");
    let fence = take(&store).await?.ok_or("a thread without a lease is held")?;
    ensure!(ask().await? == Some(fence), "the writer of a thread is not asked to stop");
    let heard = std::mem::take(&mut *heard.0.lock());
    let expected = [("t".to_owned(), fence)];
    ensure!(
        heard == expected || (heard.is_empty() && store.outlives_its_process()),
        "the listener heard {heard:?} and not {expected:?}"
    );
    Ok(())
}
