//! The methods of the core trait, called through a wrapper.

use futures_util::FutureExt;

use super::super::Store;
use super::super::values::store_failed;
use super::WrapperClause;
use super::probe::{FAILURE, Manner, shape, shape_of_writes};
use super::setup::{INSIDE, RECORD, ROOT, Setup, THREAD, Wrapped, full, id, request, same, terms, time};
use crate::checkpointer::Checkpointer;
use crate::error::StoreError;
use crate::id::CheckpointId;
use crate::lease::HeldQuery;
use crate::row::{ListQuery, PendingWrite, Put, PutWrites, Rewrite, Row, RowKind, Tail, WaitingQuery};

pub(super) const CLAUSES: [WrapperClause; 12] = [
    WrapperClause::new("`get` is delegated", |setup| get(setup).boxed()),
    WrapperClause::new("`row` is delegated", |setup| row(setup).boxed()),
    WrapperClause::new("`put` is delegated with all its fields", |setup| put(setup).boxed()),
    WrapperClause::new("`try_put` is delegated with all its fields, or left to `put`", |setup| {
        try_put(setup).boxed()
    }),
    WrapperClause::new("`try_put` answers if the store beneath does", |setup| answer_try_put(setup).boxed())
        .optional(),
    WrapperClause::new("`put_writes` is delegated with all its fields", |setup| put_writes(setup).boxed()),
    WrapperClause::new("`list` is delegated", |setup| list(setup).boxed()),
    WrapperClause::new("`threads` is delegated", |setup| threads(setup).boxed()),
    WrapperClause::new("`delete_thread` is delegated", |setup| delete_thread(setup).boxed()),
    WrapperClause::new("`outlives_its_process` returns the answer of the store beneath", |setup| {
        outlives_its_process(setup).boxed()
    }),
    WrapperClause::new(
        "`keeps_secrets` is true over a store that keeps secrets, and over others only if they get no plain text",
        |setup| keeps_secrets(setup).boxed(),
    ),
    WrapperClause::new("errors of the store beneath are returned with their codes", |setup| {
        return_errors(setup).boxed()
    }),
];

fn ids(rows: &[Row]) -> Vec<(CheckpointId, RowKind)> {
    rows.iter().map(|row| (row.id, row.kind)).collect()
}

fn check_records(method: &str, rows: &[Row]) -> Result<(), String> {
    if rows.iter().all(|row| row.record == RECORD) {
        Ok(())
    } else {
        Err(format!("`{method}` returns other bytes than were stored"))
    }
}

async fn get(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let fence = wrapped.begin().await?;
    wrapped.outer.put(full(ROOT, id(0, 1), fence)).await.map_err(store_failed)?;
    for (at, expected) in [(None, id(0, 1)), (Some(id(0, 0)), id(0, 0))] {
        let tail = wrapped.outer.get(ROOT, at).await.map_err(store_failed)?.unwrap_or_default();
        wrapped.check_call("get", (ROOT, at))?;
        same("get", ids(&tail.rows), vec![(expected, RowKind::Full)])?;
        check_records("get", &tail.rows)?;
    }
    let elsewhere = wrapped.outer.get(INSIDE, None).await.map_err(store_failed)?;
    same("get", elsewhere, None)
}

async fn row(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    wrapped.begin().await?;
    for (at, expected) in [(id(0, 0), vec![(id(0, 0), RowKind::Full)]), (id(0, 1), vec![])] {
        let found = Vec::from_iter(wrapped.outer.row(ROOT, at).await.map_err(store_failed)?);
        wrapped.check_call("row", (ROOT, at))?;
        same("row", ids(&found), expected)?;
        check_records("row", &found)?;
    }
    Ok(())
}

/// A commit with every field set.
fn commit(fence: u64, beside: &[PendingWrite]) -> Put<'_> {
    Put {
        kind: RowKind::Delta,
        segment: Some(RECORD),
        clears_writes: true,
        parent: Some(id(0, 0)),
        writes: beside,
        ..full(ROOT, id(0, 1), fence)
    }
}

async fn put(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let fence = wrapped.begin().await?;
    let beside = [request(1)];
    let commit = commit(fence, &beside);
    wrapped.outer.put(commit).await.map_err(store_failed)?;
    let tail = wrapped.outer.get(ROOT, None).await.map_err(store_failed)?.unwrap_or_default();
    check_commit_arrived(&wrapped, &commit)?;
    check_committed(&tail, &beside)
}

/// A wrapper may delegate `put` to `try_put`, and the other way round.
fn check_commit_arrived(wrapped: &Wrapped, put: &Put<'_>) -> Result<(), String> {
    wrapped.check_call("try_put", shape(put)).or_else(|_| wrapped.check_call("put", shape(put)))
}

fn check_committed(tail: &Tail, writes: &[PendingWrite]) -> Result<(), String> {
    same("get", ids(&tail.rows), vec![(id(0, 0), RowKind::Full), (id(0, 1), RowKind::Segment)])?;
    check_records("get", &tail.rows)?;
    same("get", &tail.writes[..], writes)
}

async fn try_put(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let fence = wrapped.begin().await?;
    let beside = [request(1)];
    let commit = commit(fence, &beside);
    match wrapped.outer.try_put(&commit) {
        None => wrapped.outer.put(commit).await.map_err(store_failed)?,
        Some(stored) => stored.map_err(store_failed)?,
    }
    let tail = wrapped.outer.get(ROOT, None).await.map_err(store_failed)?.unwrap_or_default();
    check_commit_arrived(&wrapped, &commit)?;
    check_committed(&tail, &beside)
}

/// The number of calls. The store beneath may answer some of them and not others.
const TRIES: u64 = 20;

async fn answer_try_put(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let fence = wrapped.begin().await?;
    let through = answers(&wrapped.outer, fence).await?;
    let beneath = answers(&wrapped.probe.inner, fence).await?;
    match (beneath, through) {
        (0, _) => Err("the store beneath answers no `try_put`, so the wrapper cannot be tested".to_owned()),
        (_, 0) => Err(format!(
            "the wrapper answers none of {TRIES} calls of `try_put`; the store beneath answers {beneath}"
        )),
        _ => Ok(()),
    }
}

/// Counts the answered `try_put` calls on a new branch.
async fn answers(store: &Store, fence: u64) -> Result<usize, String> {
    let branch = store
        .list(ROOT, ListQuery::default())
        .await
        .map_err(store_failed)?
        .first()
        .map_or(0, |row| row.id.branch);
    let mut answered = 0;
    for step in 1..=TRIES {
        let put = full(ROOT, id(branch.saturating_add(1), step), fence);
        match store.try_put(&put) {
            None => store.put(put).await.map_err(store_failed)?,
            Some(stored) => {
                stored.map_err(store_failed)?;
                answered += 1;
            }
        }
    }
    Ok(answered)
}

async fn put_writes(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let fence = wrapped.begin().await?;
    let writes = [request(1), request(2)];
    let put = PutWrites { fence, ..PutWrites::new(ROOT, id(0, 0), &writes) };
    wrapped.outer.put_writes(put).await.map_err(store_failed)?;
    let tail = wrapped.outer.get(ROOT, None).await.map_err(store_failed)?.unwrap_or_default();
    wrapped.check_call("put_writes", shape_of_writes(&put))?;
    same("get", &tail.writes[..], &writes[..])
}

async fn list(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let fence = wrapped.begin().await?;
    for step in 1..4 {
        wrapped.outer.put(full(ROOT, id(0, step), fence)).await.map_err(store_failed)?;
    }
    let query = ListQuery { branch: Some(0), before: Some(3), limit: Some(2) };
    let rows = wrapped.outer.list(ROOT, query).await.map_err(store_failed)?;
    wrapped.check_call("list", (ROOT, query))?;
    same("list", ids(&rows), vec![(id(0, 2), RowKind::Full), (id(0, 1), RowKind::Full)])?;
    check_records("list", &rows)
}

async fn threads(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    wrapped.begin().await?;
    let threads = wrapped.outer.threads().await.map_err(store_failed)?;
    wrapped.check_call("threads", ())?;
    same("threads", threads, vec![THREAD.to_owned()])
}

async fn delete_thread(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    wrapped.begin().await?;
    wrapped.outer.delete_thread(THREAD).await.map_err(store_failed)?;
    wrapped.check_call("delete_thread", THREAD)?;
    same("get", wrapped.outer.get(ROOT, None).await.map_err(store_failed)?, None)
}

async fn outlives_its_process(setup: Setup) -> Result<(), String> {
    for outlives in [false, true] {
        let wrapped = setup.wrapped_as(Manner::Outlives(outlives));
        same("outlives_its_process", wrapped.outer.outlives_its_process(), outlives)?;
    }
    Ok(())
}

async fn keeps_secrets(setup: Setup) -> Result<(), String> {
    let keeps = setup.wrapped_as(Manner::KeepsSecrets(true)).outer.keeps_secrets();
    same("keeps_secrets", keeps, true)?;
    let wrapped = setup.wrapped_as(Manner::KeepsSecrets(false));
    if !wrapped.outer.keeps_secrets() {
        return Ok(());
    }
    let fence = wrapped.begin().await?;
    let beside = [request(1)];
    wrapped.outer.put(commit(fence, &beside)).await.map_err(store_failed)?;
    let writes = [request(2)];
    let put = PutWrites { fence, ..PutWrites::new(ROOT, id(0, 1), &writes) };
    wrapped.outer.put_writes(put).await.map_err(store_failed)?;
    wrapped.settle(ROOT).await?;
    if let Some(upkeep) = wrapped.outer.upkeep() {
        let fulls = [(id(0, 0), RECORD.to_vec())];
        let rewrite = Rewrite { place: ROOT, fence, fulls: &fulls, unfold: &[], gone: &[] };
        upkeep.rewrite(rewrite).await.map_err(store_failed)?;
    }
    let tail = wrapped.probe.inner.get(ROOT, None).await.map_err(store_failed)?.unwrap_or_default();
    let stored = tail.rows.iter().map(|row| &row.record).chain(tail.writes.iter().map(|write| &write.bytes));
    if stored.clone().count() == 4 && stored.into_iter().all(|bytes| !contains(bytes, RECORD)) {
        Ok(())
    } else {
        Err("`keeps_secrets` is true, but the store beneath has records in plain text".to_owned())
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

async fn return_errors(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped_as(Manner::FailsToStore);
    let outer = &wrapped.outer;
    let fence = wrapped.take().await?;
    let writes = [request(1)];
    let put = outer.put(full(ROOT, id(0, 0), fence)).await;
    fails("put", put.and(outer.get(ROOT, None).await.map(drop)))?;
    let put_writes = outer.put_writes(PutWrites { fence, ..PutWrites::new(ROOT, id(0, 0), &writes) }).await;
    fails("put_writes", put_writes.and(outer.get(ROOT, None).await.map(drop)))?;

    let wrapped = setup.wrapped_as(Manner::FailsToAnswer);
    let outer = &wrapped.outer;
    fails("get", outer.get(ROOT, None).await)?;
    fails("row", outer.row(ROOT, id(0, 0)).await)?;
    fails("list", outer.list(ROOT, ListQuery::default()).await)?;
    fails("threads", outer.threads().await)?;
    fails("delete_thread", outer.delete_thread(THREAD).await)?;
    let leases = wrapped.leases()?;
    fails("acquire", leases.acquire(THREAD, terms(300, 400)).await)?;
    fails("renew", leases.renew(THREAD, fence, time(400)).await)?;
    fails("release", leases.release(THREAD, fence).await)?;
    fails("ask_to_stop", leases.ask_to_stop(THREAD, time(350)).await)?;
    fails("held", leases.held(HeldQuery::at(time(350))).await)?;
    let catalog = wrapped.catalog()?;
    fails("waiting", catalog.waiting(WaitingQuery::default()).await)?;
    fails("namespaces", catalog.namespaces(THREAD).await)?;
    fails("branches", catalog.branches(ROOT).await)?;
    fails("usage", catalog.usage().await)?;
    let upkeep = wrapped.upkeep()?;
    fails("copy_thread", upkeep.copy_thread(THREAD, "u").await)?;
    let rewrite = Rewrite { place: ROOT, fence, fulls: &[], unfold: &[], gone: &[] };
    fails("rewrite", upkeep.rewrite(rewrite).await)?;
    fails("compact", upkeep.compact().await)
}

fn fails<T>(method: &str, answer: Result<T, StoreError>) -> Result<(), String> {
    match answer {
        Err(error) if error.code() == FAILURE => Ok(()),
        Err(error) => Err(format!(
            "`{method}` fails with `{error}` instead of {FAILURE}, the error of the store beneath"
        )),
        Ok(_) => Err(format!("`{method}` succeeds although the store beneath fails")),
    }
}
