//! Clauses: many callers at once, and callers that leave.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures_util::future::join_all;
use serde_json::Value;

use super::{Clause, Trial, Tried, listed_clauses, same, space};
use crate::error::{StoreCode, StoreError};
use crate::store::{Change, Store, StoreExt};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "of many puts `if_absent` at once, one is made": one_wins,
    "counting with `if_version` at once loses nothing": counting,
    "a change that is dropped is made as a whole or not at all": dropped,
];

async fn one_wins(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let puts = (0..20).map(|n| {
        let (store, at) = (store.clone(), at.clone());
        async move { (n, store.put(&at, "k", n).unindexed().if_absent().await) }
    });
    let mut winner = None;
    for (n, outcome) in join_all(puts).await {
        match outcome {
            Ok(_) if winner.is_none() => winner = Some(n),
            Ok(_) => return Err("two puts `if_absent` of one item were made".into()),
            Err(error) => same("the code", &error.code(), &StoreCode::ItemConflict)?,
        }
    }
    same("the value", &store.get_as::<i32>(&at, "k").await?, &winner)
}

async fn counting(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "k", 0).unindexed().await?;
    let writers = (0..4).map(|_| {
        let (store, at) = (store.clone(), at.clone());
        async move {
            for _ in 0..5 {
                loop {
                    let item = store.get(&at, "k").await?.ok_or("it is absent")?;
                    let next = item.to::<u64>()? + 1;
                    match store.put(&at, "k", next).unindexed().if_version(item.version).await {
                        Ok(_) => break,
                        Err(error) if error.code() == StoreCode::ItemConflict => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Tried::Ok(())
        }
    });
    join_all(writers).await.into_iter().collect::<Tried>()?;
    same("the count", &store.get_as(&at, "k").await?, &Some(20))
}

/// Drops the call after each number of polls, until one is ready before.
async fn dropped(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let two = |n: u64| {
        let put = |key| Change::put(&at, key, n);
        vec![put("one"), put("two")]
    };
    store.change(two(0)).await?;
    for polls in 1..50_u64 {
        let is_done = poll_and_drop(store.change(two(polls)), polls).await?;
        // In one call: the change may still be made when its caller has left.
        let found = store.search(&at).await?;
        let values: Vec<&Value> = found.iter().map(|found| &found.item.value).collect();
        same(&format!("half of a change that was dropped after {polls} polls"), &values[0], &values[1])?;
        if is_done {
            return same("a change that was made", values[0], &Value::from(polls));
        }
    }
    Ok(())
}

/// Returns whether the call was ready.
async fn poll_and_drop<T>(
    call: impl Future<Output = Result<T, StoreError>>,
    polls: u64,
) -> Result<bool, StoreError> {
    let mut call = pin!(call);
    for _ in 0..polls {
        if let Some(done) = poll_once(call.as_mut()) {
            return done.map(|_| true);
        }
        crate::services::yield_now().await;
    }
    Ok(false)
}

fn poll_once<F: Future>(call: Pin<&mut F>) -> Option<F::Output> {
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
