//! `delegate!` passes every call on with all its arguments, and the wrappers of the library change only what
//! they mean to change.
#![cfg(all(feature = "conformance", feature = "encryption"))]

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::checkpoint::behind::Behind;
use agentgraph::checkpoint::engine::{Leased, Refused};
use agentgraph::checkpoint::{
    Catalog, CheckpointId, Checkpointer, Claim, EncryptedSaver, EncryptionKey, HeldQuery, KeyRing,
    LeaseTerms, Leases, ListQuery, MemorySaver, PendingWrite, Place, Put, PutWrites, Rewrite, RowKind,
    StoreCode, TaskId, Upkeep, WaitingQuery, conformance, delegate,
};

/// Delegates every method there is.
struct Plain(MemorySaver);

#[async_trait::async_trait]
impl Checkpointer for Plain {
    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(self)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }

    delegate!(self => &self.0; get, row, put, try_put, put_writes, list, threads, delete_thread);
    delegate!(self => &self.0; outlives_its_process, keeps_secrets);
}

#[async_trait::async_trait]
impl Leases for Plain {
    delegate!(self => &self.0; acquire, renew, release, let_go, released, ask_to_stop, held, hear_stops);
}

#[async_trait::async_trait]
impl Catalog for Plain {
    delegate!(self => &self.0; waiting, namespaces, branches, usage);
}

#[async_trait::async_trait]
impl Upkeep for Plain {
    delegate!(self => &self.0; copy_thread, rewrite, compact);
}

#[tokio::test]
async fn a_wrapper_that_delegates_everything_keeps_the_contract_of_its_store() {
    let report = conformance::run(|| async { Ok(Arc::new(Plain(MemorySaver::new()))) }).await;
    assert!(report.holds() && report.lacks().next().is_none(), "{report}");
}

#[tokio::test]
async fn a_call_that_a_store_takes_at_once_is_taken_at_once_through_wrappers() {
    let keys = KeyRing::new("k", EncryptionKey::from_bytes([7; 32])).unwrap();
    let encrypted = EncryptedSaver::new(Arc::new(Plain(MemorySaver::new())), keys);
    let leased = Leased { inner: Arc::new(encrypted), fence: 0 };
    let put = Put::new(Place::root("t"), CheckpointId::new(0, 0), RowKind::Full, b"x");
    leased.try_put(&put).expect("taken at once").unwrap();
}

#[tokio::test]
async fn every_call_of_a_refused_store_fails_with_the_reason() {
    let store = Refused { code: StoreCode::SealBroken, why: "no key".into() };
    let (place, id) = (Place::root("t"), CheckpointId::new(0, 0));
    let terms = LeaseTerms { now: UNIX_EPOCH, until: UNIX_EPOCH, seize: false };
    let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &[] };
    let outcomes = [
        store.get(place, None).await.map(drop),
        store.row(place, id).await.map(drop),
        store.put(Put::new(place, id, RowKind::Full, b"x")).await,
        store.put_writes(PutWrites::new(place, id, &[])).await,
        store.list(place, ListQuery::default()).await.map(drop),
        store.threads().await.map(drop),
        store.delete_thread("t").await,
        store.acquire("t", terms).await.map(drop),
        store.renew("t", 1, UNIX_EPOCH).await.map(drop),
        store.release("t", 1).await,
        store.ask_to_stop("t", UNIX_EPOCH).await.map(drop),
        store.held(HeldQuery::at(UNIX_EPOCH)).await.map(drop),
        store.waiting(WaitingQuery::default()).await.map(drop),
        store.namespaces("t").await.map(drop),
        store.branches(place).await.map(drop),
        store.usage().await.map(drop),
        store.copy_thread("t", "u").await,
        store.rewrite(rewrite).await,
        store.compact().await,
    ];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), StoreCode::SealBroken, "call {at}");
        assert!(error.to_string().contains("no key"), "call {at}: {error}");
    }
}

/// The fence of the call itself does not matter.
#[tokio::test]
async fn a_leased_store_stamps_its_fence_on_every_write() {
    let store = Arc::new(MemorySaver::new());
    let until = UNIX_EPOCH + Duration::from_secs(1);
    let terms = LeaseTerms { now: UNIX_EPOCH, until, seize: false };
    let Claim::Granted { fence } = store.acquire("t", terms).await.unwrap() else { panic!("it is free") };
    let place = Place::root("t");
    let id = CheckpointId::new(0, 0);
    let put = Put::new(place, id, RowKind::Full, b"x");
    let writes = [PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: b"x".to_vec() }];
    let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &[(0, 0..1)] };
    for (stamped, stores) in [(fence, true), (fence + 1, false)] {
        let leased = Leased { inner: store.clone(), fence: stamped };
        let second = Put { id: CheckpointId::new(0, 1), ..put };
        let outcomes = [
            leased.put(put).await,
            leased.try_put(&second).unwrap(),
            leased.put_writes(PutWrites::new(place, id, &writes)).await,
            leased.upkeep().unwrap().rewrite(rewrite).await,
        ];
        for (call, outcome) in ["put", "try_put", "put_writes", "rewrite"].into_iter().zip(outcomes) {
            let expected = if stores { Ok(()) } else { Err(StoreCode::LeaseLost) };
            assert_eq!(outcome.map_err(|error| error.code()), expected, "{call}");
        }
    }
}

/// Some clauses for stores also check what the extensions of a wrapper answer.
#[tokio::test]
async fn a_store_behind_lanes_holds_the_store_clauses() {
    for name in
        ["`let_go` frees the lease during one of the next calls", "namespaces with rows are listed by name"]
    {
        let clause = conformance::clause(name).unwrap();
        assert_eq!(clause.check(Behind::new(Arc::new(MemorySaver::new()))).await, Ok(()), "{name}");
    }
}
