//! The methods of the extensions, called through a wrapper.

use std::pin::pin;
use std::sync::{Arc, Weak};

use futures_util::FutureExt;

use super::super::Extension;
use super::super::extension::leases;
use super::super::values::store_failed;
use super::WrapperClause;
use super::probe::{Manner, shape_of_rewrite};
use super::setup::{INSIDE, RECORD, ROOT, Setup, THREAD, Wrapped, full, id, request, same, terms, time};
use crate::checkpointer::Checkpointer;
use crate::error::StoreCode;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};
use crate::row::{ListQuery, Place, PutWrites, Rewrite, RowKind, Waiting, WaitingQuery};
use crate::services::yield_now;

pub(super) const CLAUSES: [WrapperClause; 16] = [
    WrapperClause::new("`acquire` is delegated", |setup| acquire(setup).boxed()),
    WrapperClause::new("`renew` is delegated", |setup| renew(setup).boxed()),
    WrapperClause::new("`release` is delegated", |setup| release(setup).boxed()),
    WrapperClause::new("`let_go` is delegated", |setup| let_go(setup).boxed()),
    WrapperClause::new("`released` is delegated", |setup| released(setup).boxed()),
    WrapperClause::new("`ask_to_stop` is delegated", |setup| ask_to_stop(setup).boxed()),
    WrapperClause::new("`held` is delegated with all its fields", |setup| held(setup).boxed()),
    WrapperClause::new("`hear_stops` is delegated", |setup| hear_stops(setup).boxed()),
    WrapperClause::new("`waiting` is delegated", |setup| waiting(setup).boxed()),
    WrapperClause::new("`namespaces` is delegated", |setup| namespaces(setup).boxed()),
    WrapperClause::new("`branches` is delegated", |setup| branches(setup).boxed()),
    WrapperClause::new("`usage` is delegated", |setup| usage(setup).boxed()),
    WrapperClause::new("`copy_thread` is delegated", |setup| copy_thread(setup).boxed()),
    WrapperClause::new("`rewrite` is delegated with all its fields", |setup| rewrite(setup).boxed()),
    WrapperClause::new("`compact` is delegated", |setup| compact(setup).boxed()),
    WrapperClause::new("an extension that the store beneath lacks is absent or works", |setup| {
        lack_or_work(setup).boxed()
    }),
];

/// How often a clause looks, with calls in between: a wrapper may delegate during one of its next calls.
const LOOKS: usize = 200;

async fn acquire(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let asked = terms(100, 200);
    let claim = wrapped.leases()?.acquire(THREAD, asked).await.map_err(store_failed)?;
    wrapped.check_call("acquire", (THREAD, asked))?;
    let Claim::Granted { fence } = claim else {
        return Err(format!("`acquire` of a free thread returns {claim:?}"));
    };
    let held = Claim::Held { fence, until: time(200) };
    let beneath = leases(&*wrapped.probe.inner)?;
    same("acquire", beneath.acquire(THREAD, terms(150, 300)).await.map_err(store_failed)?, held)?;
    same("acquire", wrapped.leases()?.acquire(THREAD, terms(150, 300)).await.map_err(store_failed)?, held)?;
    let seizes = LeaseTerms { seize: true, ..terms(150, 300) };
    wrapped.leases()?.acquire(THREAD, seizes).await.map_err(store_failed)?;
    wrapped.check_call("acquire", (THREAD, seizes))
}

async fn renew(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.leases()?;
    let fence = wrapped.take().await?;
    for (fence, expected) in [(fence, true), (fence.saturating_add(1), false)] {
        let renewed = through.renew(THREAD, fence, time(300)).await.map_err(store_failed)?;
        wrapped.check_call("renew", (THREAD, fence, time(300)))?;
        same("renew", renewed, expected)?;
    }
    Ok(())
}

async fn is_free(wrapped: &Wrapped) -> Result<bool, String> {
    let claim =
        leases(&*wrapped.probe.inner)?.acquire(THREAD, terms(100, 200)).await.map_err(store_failed)?;
    Ok(matches!(claim, Claim::Granted { .. }))
}

async fn release(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.leases()?;
    let fence = wrapped.take().await?;
    through.release(THREAD, fence).await.map_err(store_failed)?;
    wrapped.check_call("release", (THREAD, fence))?;
    if is_free(&wrapped).await? { Ok(()) } else { Err("the thread is still held after `release`".to_owned()) }
}

/// The commit of the run may still be under way.
async fn let_go(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.leases()?;
    let fence = wrapped.take().await?;
    wrapped.outer.put(full(ROOT, id(0, 0), fence)).await.map_err(store_failed)?;
    through.let_go(THREAD, fence);
    for _ in 0..LOOKS {
        if is_free(&wrapped).await? {
            return Ok(());
        }
        wrapped.outer.threads().await.map_err(store_failed)?;
        yield_now().await;
    }
    Err("the thread is still held after `let_go`".to_owned())
}

async fn released(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped_as(Manner::LeasesLast);
    if wrapped.leases()?.released(THREAD, 1).now_or_never().is_some() {
        return Err("`released` returns although the lease has not ended".to_owned());
    }
    wrapped.check_call("released", (THREAD, 1))?;
    let wrapped = setup.wrapped_as(Manner::LeasesEnd);
    let mut released = pin!(wrapped.leases()?.released(THREAD, 1));
    for _ in 0..LOOKS {
        if released.as_mut().now_or_never().is_some() {
            return wrapped.check_call("released", (THREAD, 1));
        }
        yield_now().await;
    }
    Err("`released` does not return although the lease has ended".to_owned())
}

async fn ask_to_stop(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.leases()?;
    let fence = wrapped.take().await?;
    for (now, fence) in [(time(150), Some(fence)), (time(200), None)] {
        let asked = through.ask_to_stop(THREAD, now).await.map_err(store_failed)?;
        wrapped.check_call("ask_to_stop", (THREAD, now))?;
        same("ask_to_stop", asked, fence)?;
    }
    Ok(())
}

async fn held(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.leases()?;
    let fence = wrapped.take().await?;
    let all = HeldQuery::at(time(150));
    let lease = HeldLease { thread: THREAD.to_owned(), fence, until: time(200), asked_to_stop: false };
    for (query, expected) in [
        (all, vec![lease.clone()]),
        (HeldQuery { thread: Some(THREAD), ..all }, vec![lease]),
        (HeldQuery { asked_to_stop: true, ..all }, Vec::new()),
        (HeldQuery { after: Some(THREAD), limit: Some(3), ..all }, Vec::new()),
    ] {
        let found = through.held(query).await.map_err(store_failed)?;
        wrapped.check_call("held", query)?;
        same("held", found, expected)?;
    }
    Ok(())
}

async fn hear_stops(setup: Setup) -> Result<(), String> {
    struct Deaf;
    impl HearsStops for Deaf {
        fn asked_to_stop(&self, _: &str, _: u64) {}
    }
    let wrapped = setup.wrapped();
    let listener = Arc::new(Deaf);
    let weak: Weak<Deaf> = Arc::downgrade(&listener);
    wrapped.leases()?.hear_stops(weak);
    wrapped.check_call("hear_stops", ())
}

async fn waiting(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.catalog()?;
    let fence = wrapped.begin().await?;
    let writes = [request(1)];
    let put = PutWrites { fence, ..PutWrites::new(ROOT, id(0, 0), &writes) };
    wrapped.outer.put_writes(put).await.map_err(store_failed)?;
    wrapped.settle(ROOT).await?;
    for (query, found) in [
        (WaitingQuery { after: Some("a"), limit: Some(7) }, 1),
        (WaitingQuery { after: Some(THREAD), limit: None }, 0),
    ] {
        let waiting = through.waiting(query).await.map_err(store_failed)?;
        wrapped.check_call("waiting", query)?;
        let one = || Waiting {
            thread: THREAD.to_owned(),
            namespace: String::new(),
            at: id(0, 0),
            request: request(1),
        };
        same("waiting", waiting, std::iter::repeat_with(one).take(found).collect())?;
    }
    Ok(())
}

async fn namespaces(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.catalog()?;
    let fence = wrapped.begin().await?;
    wrapped.outer.put(full(INSIDE, id(0, 0), fence)).await.map_err(store_failed)?;
    let namespaces = through.namespaces(THREAD).await.map_err(store_failed)?;
    wrapped.check_call("namespaces", THREAD)?;
    same("namespaces", namespaces, vec![String::new(), INSIDE.namespace.to_owned()])
}

async fn branches(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.catalog()?;
    let fence = wrapped.begin().await?;
    wrapped.outer.put(full(ROOT, id(3, 1), fence)).await.map_err(store_failed)?;
    wrapped.settle(ROOT).await?;
    let branches = through.branches(ROOT).await.map_err(store_failed)?;
    wrapped.check_call("branches", ROOT)?;
    same("branches", branches, vec![0, 3])
}

async fn usage(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.catalog()?;
    wrapped.begin().await?;
    let usage = through.usage().await.map_err(store_failed)?;
    wrapped.check_call("usage", ())?;
    let beneath = wrapped.probe.inner.catalog().ok_or_else(|| Extension::Catalog.lack())?;
    same("usage", usage, beneath.usage().await.map_err(store_failed)?)
}

async fn copy_thread(setup: Setup) -> Result<(), String> {
    const COPY: Place<'static> = Place::root("copy");
    let wrapped = setup.wrapped();
    let through = wrapped.upkeep()?;
    wrapped.begin().await?;
    through.copy_thread(THREAD, COPY.thread).await.map_err(store_failed)?;
    wrapped.check_call("copy_thread", (THREAD, COPY.thread))?;
    let rows = wrapped.outer.list(COPY, ListQuery::default()).await.map_err(store_failed)?;
    same("list", rows.into_iter().map(|row| row.record).collect(), vec![RECORD.to_vec()])?;
    let again = through.copy_thread(THREAD, COPY.thread).await.map_err(|error| error.code());
    same("copy_thread", again, Err(StoreCode::ThreadExists))
}

async fn rewrite(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    let through = wrapped.upkeep()?;
    let fence = wrapped.begin().await?;
    for step in 1..4 {
        wrapped.outer.put(full(ROOT, id(0, step), fence)).await.map_err(store_failed)?;
    }
    let fulls = [(id(0, 2), b"anew".to_vec())];
    let unfold = [id(0, 3)];
    let gone = [(0, 0..2)];
    let rewrite = Rewrite { place: ROOT, fence, fulls: &fulls, unfold: &unfold, gone: &gone };
    through.rewrite(rewrite).await.map_err(store_failed)?;
    wrapped.check_call("rewrite", shape_of_rewrite(&rewrite))?;
    let rows = wrapped.outer.list(ROOT, ListQuery::default()).await.map_err(store_failed)?;
    let found = rows.into_iter().map(|row| (row.id, row.kind, row.record)).collect();
    let expected =
        vec![(id(0, 3), RowKind::Full, RECORD.to_vec()), (id(0, 2), RowKind::Full, b"anew".to_vec())];
    same("list", found, expected)
}

async fn compact(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped();
    wrapped.upkeep()?.compact().await.map_err(store_failed)?;
    wrapped.check_call("compact", ())
}

/// A wrapper may have an extension of its own.
async fn lack_or_work(setup: Setup) -> Result<(), String> {
    let wrapped = setup.wrapped_as(Manner::Lacks(Extension::Leases));
    if let Some(leases) = wrapped.outer.leases() {
        let first =
            leases.acquire("leased", terms(100, 200)).await.map_err(false_extension(Extension::Leases))?;
        let second =
            leases.acquire("leased", terms(100, 200)).await.map_err(false_extension(Extension::Leases))?;
        let works = matches!((first, second), (Claim::Granted { fence: 1.. }, Claim::Held { .. }));
        same("leases", works, true)?;
    }
    let wrapped = setup.wrapped_as(Manner::Lacks(Extension::Catalog));
    let fence = wrapped.begin().await?;
    if let Some(catalog) = wrapped.outer.catalog() {
        let namespaces = catalog.namespaces(THREAD).await.map_err(false_extension(Extension::Catalog))?;
        same("namespaces", namespaces, vec![String::new()])?;
        catalog.usage().await.map_err(false_extension(Extension::Catalog))?;
    }
    let wrapped = setup.wrapped_as(Manner::Lacks(Extension::Upkeep));
    if let Some(upkeep) = wrapped.outer.upkeep() {
        let rewrite = Rewrite { place: ROOT, fence, fulls: &[], unfold: &[], gone: &[(0, 0..1)] };
        upkeep.rewrite(rewrite).await.map_err(false_extension(Extension::Upkeep))?;
        same("get", wrapped.outer.get(ROOT, None).await.map_err(store_failed)?, None)?;
    }
    Ok(())
}

fn false_extension(extension: Extension) -> impl Fn(crate::error::StoreError) -> String {
    move |error| format!("the wrapper has {extension} over a store that lacks it, and a call fails: {error}")
}
