//! Concurrent users of a store.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use super::extension::{leases, upkeep};
use super::script::acquire;
use super::values::full;
use super::{Clause, Store, Tried, ensure, listed_clauses};
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
pub(super) async fn run_all<T: Send + 'static>(
    work: impl Iterator<Item: Future<Output = Tried<T>> + Send + 'static>,
) -> Tried<Vec<T>> {
    if tokio::runtime::Handle::try_current().is_err() {
        return join_all(work).await.into_iter().collect();
    }
    let spawned: Vec<_> = work.map(tokio::spawn).collect();
    let done = join_all(spawned).await.into_iter();
    done.map(|done| done.map_err(|error| format!("the store panicked: {error}"))?).collect()
}

async fn write_separate_threads(store: Store) -> Tried {
    const RUNS: u64 = 40;
    const STEPS: u64 = 25;
    let runs = (0..RUNS).map(|run| {
        let store = Arc::clone(&store);
        async move {
            let thread = format!("t{run}");
            for step in 0..STEPS {
                let record = format!("{run}.{step}");
                store.put(full(Place::root(&thread), step, record.as_bytes())).await?;
            }
            Ok(())
        }
    });
    run_all(runs).await?;
    for run in 0..RUNS {
        let thread = format!("t{run}");
        let rows = store.list(Place::root(&thread), ListQuery::default()).await?;
        let found: Vec<Vec<u8>> = rows.into_iter().rev().map(|row| row.record).collect();
        let expected: Vec<Vec<u8>> = (0..STEPS).map(|step| format!("{run}.{step}").into_bytes()).collect();
        ensure!(found == expected, "thread {thread} does not have its {STEPS} steps in order");
    }
    Ok(())
}

async fn write_one_thread(store: Store) -> Tried {
    const WRITERS: u64 = 16;
    for step in 0..20 {
        let writers = (0..WRITERS).map(|writer| {
            let store = Arc::clone(&store);
            async move {
                let beside = format!("beside {step}.{writer}");
                let stored = store.put(full(Place::root("t"), step, &writer.to_be_bytes())).await;
                store.put(full(Place::root(&beside), 0, b"x")).await?;
                match stored {
                    Ok(()) => Ok(Some(writer)),
                    Err(error) if error.code() == StoreCode::Stale => Ok(None),
                    Err(error) => Err(format!(
                        "the commit that lost the race fails with another error than E_STALE: {error}"
                    )
                    .into()),
                }
            }
        });
        let winners: Vec<u64> = run_all(writers).await?.into_iter().flatten().collect();
        let [winner] = winners[..] else {
            return Err(format!("{} writers stored step {step}", winners.len()).into());
        };
        let row = store.row(Place::root("t"), CheckpointId::new(0, step)).await?;
        ensure!(
            row.is_some_and(|row| row.record == winner.to_be_bytes()),
            "step {step} holds the record of another writer than the one whose `put` succeeded"
        );
    }
    Ok(())
}

async fn acquire_one_lease(store: Store) -> Tried {
    const WRITERS: u64 = 16;
    let mut greatest = 0;
    for round in 0..20_u64 {
        let time = |second| UNIX_EPOCH + Duration::from_secs(second);
        let terms = LeaseTerms { now: time(100 * round + 100), until: time(100 * round + 200), seize: false };
        let writers = (0..WRITERS).map(|_| {
            let store = Arc::clone(&store);
            async move { Ok(leases(&store)?.acquire("t", terms).await?) }
        });
        let claims: Vec<Claim> = run_all(writers).await?;
        let expired = |claim: &Claim| matches!(claim, Claim::Held { until, .. } if *until <= terms.now);
        let claims = if claims.iter().all(expired) {
            vec![acquire(leases(&store)?, "t", terms).await?]
        } else {
            claims
        };
        let fence = |claim: Claim| match claim {
            Claim::Granted { fence } => Some(fence),
            Claim::Held { .. } => None,
        };
        let granted: Vec<u64> = claims.into_iter().filter_map(fence).collect();
        let [fence] = granted[..] else {
            return Err(format!("{} writers were granted the same lease", granted.len()).into());
        };
        ensure!(fence > greatest, "the fence {fence} is not greater than {greatest}");
        greatest = fence;
        if round % 2 == 0 {
            leases(&store)?.release("t", greatest).await?;
        }
    }
    Ok(())
}

async fn put_writes(store: Store) -> Tried {
    const TASKS: u128 = 50;
    let place = Place::root("t");
    let at = CheckpointId::new(0, 0);
    store.put(full(place, 0, b"a")).await?;
    let write = |task: u128, slot: u32| {
        let bytes = format!("{task}:{slot}").into_bytes();
        PendingWrite { task: TaskId::from_u128(task), slot, bytes }
    };
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&store);
        async move {
            let both = [write(task, 0), write(task, 1)];
            Ok(store.put_writes(PutWrites::new(Place::root("t"), at, &both)).await?)
        }
    });
    run_all(tasks).await?;
    let tail = store.get(place, None).await?.unwrap_or_default();
    let expected: Vec<PendingWrite> = (0..TASKS).flat_map(|task| [write(task, 0), write(task, 1)]).collect();
    ensure!(
        tail.writes == expected,
        "{} of {} pending writes are stored, or their order is wrong",
        tail.writes.len(),
        expected.len()
    );
    Ok(())
}

async fn copy_onto_one_thread(store: Store) -> Tried {
    const STEPS: u64 = 30;
    for source in ["a", "b", "c", "d"] {
        for step in 0..STEPS {
            store.put(full(Place::root(source), step, source.as_bytes())).await?;
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
                )
                .into()),
            }
        }
    });
    let made: Vec<&str> = run_all(copiers.into_iter()).await?.into_iter().flatten().collect();
    let [source] = made[..] else { return Err(format!("{} copies were made", made.len()).into()) };
    let rows = store.list(Place::root("copy"), ListQuery::default()).await?;
    ensure!(
        rows.len() as u64 == STEPS && rows.iter().all(|row| row.record == source.as_bytes()),
        "the copy of {source} does not have its rows"
    );
    Ok(())
}

/// One writer commits deltas with segments and pending writes while others read.
async fn read_whole_commits(store: Store) -> Tried {
    const STEPS: u64 = 60;
    let place = Place::root("t");
    store.put(full(place, 0, b"0")).await?;
    let writer = Arc::clone(&store);
    let writer = async move {
        for step in 1..STEPS {
            let place = Place::root("t");
            let bytes = step.to_string().into_bytes();
            let write = PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: bytes.clone() };
            let before = CheckpointId::new(0, step - 1);
            writer.put_writes(PutWrites::new(place, before, &[write])).await?;
            tokio::task::yield_now().await;
            let segment = (step % 8 == 0).then_some(&bytes[..]);
            let kind = RowKind::Delta;
            let put = Put { kind, segment, clears_writes: true, ..full(place, step, &bytes) };
            writer.put(put).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let readers = (0..4).map(|_| {
        let store = Arc::clone(&store);
        async move {
            for _ in 0..STEPS {
                let tail = store.get(Place::root("t"), None).await?.unwrap_or_default();
                let Some(last) = tail.rows.last().map(|row| row.id.step) else {
                    return Err("`get` found nothing in a thread that exists".into());
                };
                let folded = last / 8 * 8;
                let mut expected: Vec<u64> = [0].into_iter().chain((8..=folded).step_by(8)).collect();
                expected.extend(folded + 1..=last);
                let steps: Vec<u64> = tail.rows.iter().map(|row| row.id.step).collect();
                ensure!(
                    steps == expected,
                    "`get` of checkpoint 0.{last} returned the steps {steps:?}, not {expected:?}"
                );
                let next = (last + 1).to_string().into_bytes();
                ensure!(
                    tail.writes.iter().all(|write| write.bytes == next),
                    "`get` of checkpoint 0.{last} returned pending writes of another step"
                );
                tokio::task::yield_now().await;
            }
            Ok(())
        }
        .boxed()
    });
    let all: Vec<BoxFuture<'static, Tried>> = std::iter::once(writer.boxed()).chain(readers).collect();
    run_all(all.into_iter()).await?;
    Ok(())
}
