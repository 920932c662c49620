//! The same calls on the local engine, and what both must agree on.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::{RunId, Services};
use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph::{Checkpoint, Error};

/// Services that give the n-th run the id of the n-th driven run.
pub struct SameIds(pub AtomicU64);

impl SameIds {
    pub fn new() -> Self {
        SameIds(AtomicU64::new(7))
    }
}

fn mixed(state: u64) -> u64 {
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[async_trait::async_trait]
impl Services for SameIds {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
    async fn sleep(&self, _: Duration) {
        std::future::pending().await
    }
    fn random(&self) -> u64 {
        5
    }
    fn run_id(&self) -> RunId {
        let seed = self.0.fetch_add(1, Ordering::SeqCst);
        let (first, second) = (seed.wrapping_add(STEP), seed.wrapping_add(STEP).wrapping_add(STEP));
        RunId::from_u128((u128::from(mixed(first)) << 64) | u128::from(mixed(second)))
    }
}

/// Both results, except for what a driven run does not keep: the types of causes.
pub fn assert_same<S: StoredState + PartialEq + Debug>(
    driven: &Result<Outcome<S>, Error>,
    local: &Result<Outcome<S>, Error>,
) {
    match (driven, local) {
        (Ok(driven), Ok(local)) => {
            assert_eq!(driven.output(), local.output());
            let parts = |outcome: &Outcome<S>| {
                let ends = match outcome {
                    Outcome::Finished { stuck, cancelled, .. } => format!("{stuck:?} {cancelled:?}"),
                    Outcome::Interrupted { interrupts, .. } => format!("{interrupts:?}"),
                    Outcome::Stopped { reason, .. } => format!("{reason:?}"),
                };
                let spent = match outcome {
                    Outcome::Finished { spent, .. }
                    | Outcome::Interrupted { spent, .. }
                    | Outcome::Stopped { spent, .. } => spent.clone(),
                };
                (
                    outcome.status(),
                    ends,
                    outcome.run(),
                    outcome.checkpoint(),
                    spent,
                    outcome.dropped_edits().to_vec(),
                )
            };
            assert_eq!(parts(driven), parts(local));
        }
        (Err(driven), Err(local)) => {
            let parts = |error: &Error| {
                (
                    error.code(),
                    error.to_string(),
                    error.node().map(str::to_owned),
                    format!("{:?}", error.failures()),
                )
            };
            assert_eq!(parts(driven), parts(local));
            assert_eq!(driven.state::<S>(), local.state::<S>());
        }
        (driven, local) => panic!("driven: {driven:?}, local: {local:?}"),
    }
}

/// Both checkpoints, but for their times.
pub fn assert_same_checkpoint<S: PartialEq + Debug>(driven: &Checkpoint<S>, local: &Checkpoint<S>) {
    assert_eq!(driven.values, local.values);
    let parts = |one: &Checkpoint<S>| {
        let first = (one.id, one.parent, one.run, one.source, one.next.clone(), one.deferred.clone());
        let second = (one.interrupts.clone(), one.failures.clone(), one.steps.clone(), one.children.clone());
        (first, second, (one.abandoned, one.edits.clone(), one.skips.clone(), one.memories.clone()))
    };
    assert_eq!(parts(driven), parts(local));
}

pub fn assert_same_history<S: PartialEq + Debug>(driven: &[Checkpoint<S>], local: &[Checkpoint<S>]) {
    assert_eq!(driven.len(), local.len());
    driven.iter().zip(local).for_each(|(driven, local)| assert_same_checkpoint(driven, local));
}
