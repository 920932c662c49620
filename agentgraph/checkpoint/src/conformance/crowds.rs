//! Concurrent users of a store.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use super::extension::{leases, upkeep};
use super::script::acquire;
use super::values::{full, store_failed};
use super::{Clause, Store, listed_clauses};
use crate::checkpointer::Checkpointer;
use crate::error::StoreCode;
use crate::id::{CheckpointId, TaskId};
use crate::lease::{Claim, LeaseTerms};
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, RowKind};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "concurrent writers on separate threads all succeed, each in order": write_separate_threads,
    "exactly one of several concurrent writers on a thread commits each step": write_one_thread,
    "exactly one of several concurrent writers is granted the lease of a thread": acquire_one_lease needing [Leases],
    "pending writes of tasks that finish at once are all stored": put_writes,
    "exactly one of several concurrent copies onto a thread succeeds, and it is complete": copy_onto_one_thread needing [Upkeep],
    "a reader sees a whole commit or none of it": read_whole_commits,
];

/// Runs futures at once; spawns them if there is a tokio runtime.
pub(super) async fn run_all<T: Send + 'static>(work: Vec<BoxFuture<'static, T>>) -> Result<Vec<T>, String> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Ok(join_all(work).await);
    }
    let spawned = work.into_iter().map(tokio::spawn);
    let done = join_all(spawned.collect::<Vec<_>>()).await;
    done.into_iter().map(|done| done.map_err(|error| format!("the store panicked: {error}"))).collect()
}

async fn write_separate_threads(store: Store) -> Result<(), String> {
    const RUNS: u64 = 40;
    const STEPS: u64 = 25;
    let runs = (0..RUNS).map(|run| {
        let store = Arc::clone(&store);
        async move {
            let thread = format!("t{run}");
            for step in 0..STEPS {
                let record = format!("{run}.{step}");
                store.put(full(Place::root(&thread), step, record.as_bytes())).await.map_err(store_failed)?;
            }
            Ok(())
        }
        .boxed()
    });
    run_all(runs.collect()).await?.into_iter().collect::<Result<(), String>>()?;
    for run in 0..RUNS {
        let thread = format!("t{run}");
        let rows = store.list(Place::root(&thread), ListQuery::default()).await.map_err(store_failed)?;
        let found: Vec<Vec<u8>> = rows.into_iter().rev().map(|row| row.record).collect();
        let expected: Vec<Vec<u8>> = (0..STEPS).map(|step| format!("{run}.{step}").into_bytes()).collect();
        if found != expected {
            return Err(format!("thread {thread} does not have its {STEPS} steps in order"));
        }
    }
    Ok(())
}

async fn write_one_thread(store: Store) -> Result<(), String> {
    const WRITERS: u64 = 16;
    for step in 0..20 {
        let writers = (0..WRITERS).map(|writer| {
            let store = Arc::clone(&store);
            async move {
                let beside = format!("beside {step}.{writer}");
                let stored = store.put(full(Place::root("t"), step, &writer.to_be_bytes())).await;
                store.put(full(Place::root(&beside), 0, b"x")).await.map_err(store_failed)?;
                match stored {
                    Ok(()) => Ok(Some(writer)),
                    Err(error) if error.code() == StoreCode::Stale => Ok(None),
                    Err(error) => Err(format!(
                        "the commit that lost the race fails with another error than E_STALE: {error}"
                    )),
                }
            }
            .boxed()
        });
        let ends: Vec<Option<u64>> =
            run_all(writers.collect()).await?.into_iter().collect::<Result<_, String>>()?;
        let winners: Vec<u64> = ends.into_iter().flatten().collect();
        let [winner] = winners[..] else {
            return Err(format!("{} writers stored step {step}", winners.len()));
        };
        let row = store.row(Place::root("t"), CheckpointId::new(0, step)).await.map_err(store_failed)?;
        if row.is_none_or(|row| row.record != winner.to_be_bytes()) {
            return Err(format!(
                "step {step} holds the record of another writer than the one whose `put` succeeded"
            ));
        }
    }
    Ok(())
}

async fn acquire_one_lease(store: Store) -> Result<(), String> {
    const WRITERS: u64 = 16;
    let mut greatest = 0;
    for round in 0..20_u64 {
        let time = |second| UNIX_EPOCH + Duration::from_secs(second);
        let terms = LeaseTerms { now: time(100 * round + 100), until: time(100 * round + 200), seize: false };
        let writers = (0..WRITERS).map(|_| {
            let store = Arc::clone(&store);
            async move { leases(&store)?.acquire("t", terms).await.map_err(store_failed) }.boxed()
        });
        let claims: Vec<Claim> =
            run_all(writers.collect()).await?.into_iter().collect::<Result<_, String>>()?;
        let expired = |claim: &Claim| matches!(claim, Claim::Held { until, .. } if *until <= terms.now);
        let claims = if claims.iter().all(expired) {
            vec![acquire(leases(&store)?, "t", terms).await.map_err(store_failed)?]
        } else {
            claims
        };
        let granted: Vec<u64> = claims
            .into_iter()
            .filter_map(|claim| match claim {
                Claim::Granted { fence } => Some(fence),
                Claim::Held { .. } => None,
            })
            .collect();
        match granted[..] {
            [fence] if fence > greatest => greatest = fence,
            [fence] => return Err(format!("the fence {fence} is not greater than {greatest}")),
            _ => return Err(format!("{} writers were granted the same lease", granted.len())),
        }
        if round % 2 == 0 {
            leases(&store)?.release("t", greatest).await.map_err(store_failed)?;
        }
    }
    Ok(())
}

async fn put_writes(store: Store) -> Result<(), String> {
    const TASKS: u128 = 50;
    let place = Place::root("t");
    let at = CheckpointId::new(0, 0);
    store.put(full(place, 0, b"a")).await.map_err(store_failed)?;
    let write = |task: u128, slot: u32| {
        let bytes = format!("{task}:{slot}").into_bytes();
        PendingWrite { task: TaskId::from_u128(task), slot, bytes }
    };
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&store);
        async move {
            let both = [write(task, 0), write(task, 1)];
            store.put_writes(PutWrites::new(Place::root("t"), at, &both)).await.map_err(store_failed)
        }
        .boxed()
    });
    run_all(tasks.collect()).await?.into_iter().collect::<Result<(), String>>()?;
    let tail = store.get(place, None).await.map_err(store_failed)?.unwrap_or_default();
    let expected: Vec<PendingWrite> = (0..TASKS).flat_map(|task| [write(task, 0), write(task, 1)]).collect();
    if tail.writes == expected {
        Ok(())
    } else {
        Err(format!(
            "{} of {} pending writes are stored, or their order is wrong",
            tail.writes.len(),
            expected.len()
        ))
    }
}

async fn copy_onto_one_thread(store: Store) -> Result<(), String> {
    const STEPS: u64 = 30;
    for source in ["a", "b", "c", "d"] {
        for step in 0..STEPS {
            store.put(full(Place::root(source), step, source.as_bytes())).await.map_err(store_failed)?;
        }
    }
    let copiers = ["a", "b", "c", "d"].map(|source| {
        let store = Arc::clone(&store);
        async move {
            match upkeep(&store)?.copy_thread(source, "copy").await {
                Ok(()) => Ok(Some(source)),
                Err(error) if error.code() == StoreCode::ThreadExists => Ok(None),
                Err(error) => Err(format!(
                    "a copy onto an existing thread fails with another error than E_THREAD_EXISTS: {error}"
                )),
            }
        }
        .boxed()
    });
    let ends: Vec<Option<&str>> =
        run_all(copiers.into()).await?.into_iter().collect::<Result<_, String>>()?;
    let made: Vec<&str> = ends.into_iter().flatten().collect();
    let [source] = made[..] else { return Err(format!("{} copies were made", made.len())) };
    let rows = store.list(Place::root("copy"), ListQuery::default()).await.map_err(store_failed)?;
    if rows.len() as u64 == STEPS && rows.iter().all(|row| row.record == source.as_bytes()) {
        Ok(())
    } else {
        Err(format!("the copy of {source} does not have its rows"))
    }
}

/// One writer commits deltas with segments and pending writes while others read.
async fn read_whole_commits(store: Store) -> Result<(), String> {
    const STEPS: u64 = 60;
    let place = Place::root("t");
    store.put(full(place, 0, b"0")).await.map_err(store_failed)?;
    let writer = Arc::clone(&store);
    let writer = async move {
        for step in 1..STEPS {
            let place = Place::root("t");
            let bytes = step.to_string().into_bytes();
            let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: bytes.clone() };
            let before = CheckpointId::new(0, step - 1);
            writer.put_writes(PutWrites::new(place, before, &[write])).await.map_err(store_failed)?;
            tokio::task::yield_now().await;
            let segment = (step % 8 == 0).then_some(&bytes[..]);
            let kind = RowKind::Delta;
            let put = Put { kind, segment, clears_writes: true, ..full(place, step, &bytes) };
            writer.put(put).await.map_err(store_failed)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let readers = (0..4).map(|_| {
        let store = Arc::clone(&store);
        async move {
            for _ in 0..STEPS {
                let tail = store.get(Place::root("t"), None).await.map_err(store_failed)?.unwrap_or_default();
                let Some(last) = tail.rows.last().map(|row| row.id.step) else {
                    return Err("`get` found nothing in a thread that exists".to_owned());
                };
                let folded = last / 8 * 8;
                let mut expected: Vec<u64> = [0].into_iter().chain((8..=folded).step_by(8)).collect();
                expected.extend(folded + 1..=last);
                let steps: Vec<u64> = tail.rows.iter().map(|row| row.id.step).collect();
                if steps != expected {
                    return Err(format!(
                        "`get` of checkpoint 0.{last} returned the steps {steps:?}, not {expected:?}"
                    ));
                }
                let next = (last + 1).to_string().into_bytes();
                if tail.writes.iter().any(|write| write.bytes != next) {
                    return Err(format!(
                        "`get` of checkpoint 0.{last} returned pending writes of another step"
                    ));
                }
                tokio::task::yield_now().await;
            }
            Ok(())
        }
        .boxed()
    });
    let futures: Vec<BoxFuture<'static, Result<(), String>>> =
        std::iter::once(writer.boxed()).chain(readers).collect();
    run_all(futures).await?.into_iter().collect()
}
