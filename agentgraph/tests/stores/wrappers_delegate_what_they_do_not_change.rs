//! The clauses for wrappers: the wrappers of the library hold all of them, and each clause finds a
//! careless wrapper.
#![cfg(all(feature = "conformance", feature = "encryption"))]

mod careless;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::checkpoint::behind::Behind;
use agentgraph::checkpoint::conformance::{self, Report, check_wrapper, wrapper_clauses};
use agentgraph::checkpoint::engine::Leased;
use agentgraph::checkpoint::{
    CheckpointId, Checkpointer, Claim, EncryptedSaver, EncryptionKey, KeyRing, LeaseTerms, Leases,
    MemorySaver, PendingWrite, Place, Put, PutWrites, Rewrite, RowKind, StoreCode, StoreError, TaskId,
};
use careless::{Careless, SLIPS, Slip};

async fn memory() -> Result<MemorySaver, StoreError> {
    Ok(MemorySaver::new())
}

fn assert_holds(report: &Report) {
    assert!(report.holds() && report.lacks().next().is_none(), "{report}");
    assert!(report.findings.len() >= 25, "{report}");
}

#[tokio::test]
async fn an_arc_holds_every_clause() {
    assert_holds(&check_wrapper(memory, |inner| inner).await);
    assert_holds(&check_wrapper(memory, Arc::new).await);
}

#[tokio::test]
async fn an_encrypted_saver_holds_every_clause() {
    let keys = KeyRing::new("k", EncryptionKey::from_bytes([7; 32])).unwrap();
    assert_holds(&check_wrapper(memory, move |inner| EncryptedSaver::new(inner, keys.clone())).await);
}

/// `Leased` stamps the fence of its lease on every write. Fence 1 is the first that the store grants.
#[tokio::test]
async fn a_leased_store_holds_every_clause() {
    assert_holds(&check_wrapper(memory, |inner| Leased { inner, fence: 1 }).await);
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

#[tokio::test]
async fn a_store_behind_lanes_holds_every_clause() {
    assert_holds(&check_wrapper(memory, Behind::new).await);
}

#[tokio::test]
async fn nested_wrappers_hold_every_clause() {
    let keys = KeyRing::new("k", EncryptionKey::from_bytes([7; 32])).unwrap();
    let wrap = move |inner| {
        let encrypted = Arc::new(EncryptedSaver::new(inner, keys.clone()));
        Leased { inner: Arc::new(Behind::new(encrypted)), fence: 1 }
    };
    assert_holds(&check_wrapper(memory, wrap).await);
}

#[tokio::test]
async fn a_wrapper_without_a_slip_holds_every_clause() {
    assert_holds(&check_wrapper(memory, |inner| Careless { inner, slip: None }).await);
}

#[tokio::test]
async fn every_slip_is_found_by_its_clause() {
    let mut blind: BTreeSet<&str> = wrapper_clauses().iter().map(|clause| clause.name()).collect();
    for (slip, name) in SLIPS {
        let clause = wrapper_clauses().into_iter().find(|clause| clause.name() == *name);
        let clause = clause.unwrap_or_else(|| panic!("no clause {name}"));
        let wrap = |inner| Careless { inner, slip: Some(*slip) };
        let problem = clause.check(MemorySaver::new(), wrap).await.expect_err(name);
        assert!(!problem.contains("panicked"), "{slip:?}: {problem}");
        blind.remove(name);
    }
    assert!(blind.is_empty(), "these clauses have no careless wrapper: {blind:#?}");
}

/// Otherwise a wrapper would pass for calls that it never got.
#[tokio::test]
async fn a_missing_extension_of_the_inner_store_is_not_taken_for_handed_on() {
    let bare =
        || async { Ok(Careless { inner: Arc::new(MemorySaver::new()), slip: Some(Slip::ForgetsLeases) }) };
    let report = check_wrapper(bare, |inner: Arc<dyn Checkpointer>| inner).await;
    let acquire = report.broken().find(|finding| finding.clause == "`acquire` is delegated").unwrap();
    assert_eq!(acquire.problem.as_deref(), Some("the store has no leases: `Checkpointer::leases` is `None`"));
}

#[tokio::test]
async fn a_report_names_the_broken_clause_and_shows_the_call_that_arrived() {
    let report =
        check_wrapper(memory, |inner| Careless { inner, slip: Some(Slip::RewritesWithoutFence) }).await;
    let shown = report.to_string();
    assert!(shown.contains("BROKEN  `rewrite` is delegated with all its fields\n"), "{shown}");
    assert!(shown.contains("did not reach the store beneath; it received\n        put Place"), "{shown}");
    assert_eq!(report.broken().count(), 1, "{shown}");
}

#[tokio::test]
async fn an_inner_store_that_cannot_be_created_is_a_finding() {
    let fails = || async { Err::<MemorySaver, _>(agentgraph::checkpoint::thread_exists("t")) };
    let report = check_wrapper(fails, |inner| inner).await;
    assert_eq!(report.broken().count(), report.findings.len());
    assert!(report.to_string().contains("the store could not be made: E_THREAD_EXISTS"), "{report}");
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
