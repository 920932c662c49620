//! [`Setup`]: a store and its wrapper; [`Wrapped`]: both as a clause uses them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::values::store_failed;
use super::super::{Extension, Store};
use super::probe::{Manner, Probe, call};
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::id::{CheckpointId, TaskId};
use crate::lease::{Claim, LeaseTerms};
use crate::leases::{Leases, leases_of};
use crate::row::{PendingWrite, Place, Put, RowKind};
use crate::upkeep::Upkeep;

pub(super) struct Setup {
    beneath: Store,
    wrap: Arc<dyn Fn(Store) -> Store + Send + Sync>,
}

impl Setup {
    pub(super) fn new<W: Checkpointer>(
        beneath: Store,
        wrap: impl Fn(Store) -> W + Send + Sync + 'static,
    ) -> Self {
        Setup { beneath, wrap: Arc::new(move |inner| Arc::new(wrap(inner)) as Store) }
    }

    pub(super) fn wrapped(&self) -> Wrapped {
        self.wrapped_as(Manner::Plain)
    }

    pub(super) fn wrapped_as(&self, manner: Manner) -> Wrapped {
        let probe = Arc::new(Probe::new(Arc::clone(&self.beneath), manner));
        Wrapped { outer: (self.wrap)(Arc::clone(&probe) as Store), probe }
    }
}

pub(super) struct Wrapped {
    /// The wrapper.
    pub(super) outer: Store,
    /// The store beneath.
    pub(super) probe: Arc<Probe>,
}

/// The thread and place of all clauses.
pub(super) const THREAD: &str = "t";
pub(super) const ROOT: Place<'static> = Place::root(THREAD);
pub(super) const INSIDE: Place<'static> = Place { thread: THREAD, namespace: "n" };

/// Text that encryption always changes.
pub(super) const RECORD: &[u8] = b"what was stored, as it was stored";

pub(super) fn id(branch: u32, step: u64) -> CheckpointId {
    CheckpointId::new(branch, step)
}

pub(super) fn full(place: Place<'_>, id: CheckpointId, fence: u64) -> Put<'_> {
    Put { fence, ..Put::new(place, id, RowKind::Full, RECORD) }
}

/// A request of a task, with [`RECORD`] as its bytes.
pub(super) fn request(task: u128) -> PendingWrite {
    PendingWrite { task: TaskId::from_u128(task), slot: 1, bytes: RECORD.to_vec() }
}

pub(super) fn time(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(second)
}

pub(super) fn terms(now: u64, until: u64) -> LeaseTerms {
    LeaseTerms { now: time(now), until: time(until), seize: false }
}

impl Wrapped {
    /// Takes the thread from the store beneath. Clauses store everything with this fence, so a wrapper that
    /// sets its own fence can be tested with the same one.
    pub(super) async fn take(&self) -> Result<u64, String> {
        match leases_of(&*self.probe.inner).acquire(THREAD, terms(100, 200)).await.map_err(store_failed)? {
            Claim::Granted { fence } => Ok(fence),
            Claim::Held { .. } => Err("the store beneath must be empty".to_owned()),
        }
    }

    /// Takes the thread, and stores a full through the wrapper.
    pub(super) async fn begin(&self) -> Result<u64, String> {
        let fence = self.take().await?;
        self.outer.put(full(ROOT, id(0, 0), fence)).await.map_err(store_failed)?;
        self.settle(ROOT).await?;
        Ok(fence)
    }

    /// Reads the place: a wrapper may store late, but before the next read.
    pub(super) async fn settle(&self, place: Place<'_>) -> Result<(), String> {
        self.outer.get(place, None).await.map_err(store_failed).map(drop)
    }

    /// Checks that the store beneath got exactly this call.
    pub(super) fn check_call(&self, method: &str, expected: impl Debug) -> Result<(), String> {
        let call = call(method, expected);
        let asked = self.probe.asked();
        match asked.contains(&call) {
            true => Ok(()),
            false => {
                Err(format!("`{call}` did not reach the store beneath; it received\n{}", asked.join("\n")))
            }
        }
    }

    pub(super) fn leases(&self) -> Result<&dyn Leases, String> {
        self.outer.leases().ok_or_else(|| self.missing(Extension::Leases))
    }

    pub(super) fn catalog(&self) -> Result<&dyn Catalog, String> {
        self.outer.catalog().ok_or_else(|| self.missing(Extension::Catalog))
    }

    pub(super) fn upkeep(&self) -> Result<&dyn Upkeep, String> {
        self.outer.upkeep().ok_or_else(|| self.missing(Extension::Upkeep))
    }

    fn missing(&self, extension: Extension) -> String {
        if extension.is_in(&*self.probe) {
            format!("the wrapper lacks {extension}, which the store beneath has")
        } else {
            extension.lack()
        }
    }
}

/// Checks that an answer is the expected one.
pub(super) fn same<T: PartialEq + Debug>(method: &str, answer: T, expected: T) -> Result<(), String> {
    if answer == expected {
        Ok(())
    } else {
        Err(format!("`{method}` returns {answer:?} instead of {expected:?}"))
    }
}
