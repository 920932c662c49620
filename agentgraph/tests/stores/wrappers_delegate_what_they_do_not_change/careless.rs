//! A wrapper that hands on everything except for one slip. Every clause has at least one slip.

use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use agentgraph::checkpoint::leases::leases_of;
use agentgraph::checkpoint::{
    Catalog, Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms, Leases, ListQuery, Place, Put, PutWrites,
    Rewrite, Row, StoreError, Tail, Upkeep, Usage, Waiting, WaitingQuery, catalog, listed_branches, upkeep,
};
use agentgraph::{CheckpointId, Checkpointer};

/// The one mistake of a careless wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    GetsTheNewest,
    FindsNoRow,
    ForgetsParents,
    ForgetsFences,
    StoresNothingAtOnce,
    NeverAnswersAtOnce,
    WritesWithoutFence,
    ListsEverything,
    InventsThreads,
    DeletesNothing,
    AlwaysOutlives,
    NeverOutlives,
    KeepsNoSecrets,
    ClaimsToKeepSecrets,
    SwallowsFailuresOfReads,
    SwallowsFailuresOfCommits,
    ForgetsLeases,
    NeverSeizes,
    AlwaysRenews,
    NeverReleases,
    NeverLetsGo,
    NeverNotifies,
    NotifiesAtOnce,
    StopsNobody,
    IgnoresTheHeldQuery,
    ForgetsListeners,
    ForgetsTheCatalog,
    IgnoresTheWaitingQuery,
    ListsTheRootOnly,
    ListsBranches,
    CountsNothing,
    ForgetsTheUpkeep,
    CopiesNothing,
    RewritesWithoutFence,
    NeverCompacts,
    ClaimsLeases,
    ClaimsACatalog,
    ClaimsUpkeep,
}

/// Every slip with the clause that finds it.
pub(crate) const SLIPS: &[(Slip, &str)] = &[
    (Slip::GetsTheNewest, "`get` is delegated"),
    (Slip::FindsNoRow, "`row` is delegated"),
    (Slip::ForgetsParents, "`put` is delegated with all its fields"),
    (Slip::ForgetsFences, "`put` is delegated with all its fields"),
    (Slip::StoresNothingAtOnce, "`try_put` is delegated with all its fields, or left to `put`"),
    (Slip::NeverAnswersAtOnce, "`try_put` answers if the store beneath does"),
    (Slip::WritesWithoutFence, "`put_writes` is delegated with all its fields"),
    (Slip::ListsEverything, "`list` is delegated"),
    (Slip::InventsThreads, "`threads` is delegated"),
    (Slip::DeletesNothing, "`delete_thread` is delegated"),
    (Slip::AlwaysOutlives, "`outlives_its_process` returns the answer of the store beneath"),
    (Slip::NeverOutlives, "`outlives_its_process` returns the answer of the store beneath"),
    (Slip::KeepsNoSecrets, SECRETS),
    (Slip::ClaimsToKeepSecrets, SECRETS),
    (Slip::SwallowsFailuresOfReads, "errors of the store beneath are returned with their codes"),
    (Slip::SwallowsFailuresOfCommits, "errors of the store beneath are returned with their codes"),
    (Slip::ForgetsLeases, "`acquire` is delegated"),
    (Slip::NeverSeizes, "`acquire` is delegated"),
    (Slip::AlwaysRenews, "`renew` is delegated"),
    (Slip::NeverReleases, "`release` is delegated"),
    (Slip::NeverLetsGo, "`let_go` is delegated"),
    (Slip::NeverNotifies, "`released` is delegated"),
    (Slip::NotifiesAtOnce, "`released` is delegated"),
    (Slip::StopsNobody, "`ask_to_stop` is delegated"),
    (Slip::IgnoresTheHeldQuery, "`held` is delegated with all its fields"),
    (Slip::ForgetsListeners, "`hear_stops` is delegated"),
    (Slip::ForgetsTheCatalog, "`waiting` is delegated"),
    (Slip::IgnoresTheWaitingQuery, "`waiting` is delegated"),
    (Slip::ListsTheRootOnly, "`namespaces` is delegated"),
    (Slip::ListsBranches, "`branches` is delegated"),
    (Slip::CountsNothing, "`usage` is delegated"),
    (Slip::ForgetsTheUpkeep, "`copy_thread` is delegated"),
    (Slip::CopiesNothing, "`copy_thread` is delegated"),
    (Slip::RewritesWithoutFence, "`rewrite` is delegated with all its fields"),
    (Slip::NeverCompacts, "`compact` is delegated"),
    (Slip::ClaimsLeases, LACKING),
    (Slip::ClaimsACatalog, LACKING),
    (Slip::ClaimsUpkeep, LACKING),
];

const SECRETS: &str =
    "`keeps_secrets` is true over a store that keeps secrets, and over others only if they get no plain text";
const LACKING: &str = "an extension that the store beneath lacks is absent or works";

pub(crate) struct Careless {
    pub(crate) inner: Arc<dyn Checkpointer>,
    pub(crate) slip: Option<Slip>,
}

impl Careless {
    fn has_slip(&self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    fn or_none<T>(&self, slip: Slip, answer: Result<Vec<T>, StoreError>) -> Result<Vec<T>, StoreError> {
        if self.has_slip(slip) { Ok(answer.unwrap_or_default()) } else { answer }
    }
}

#[async_trait::async_trait]
impl Checkpointer for Careless {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.inner.get(place, at.filter(|_| !self.has_slip(Slip::GetsTheNewest))).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        match self.slip {
            Some(Slip::FindsNoRow) => Ok(None),
            _ => self.inner.row(place, id).await,
        }
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::ForgetsParents) => self.inner.put(Put { parent: None, ..put }).await,
            Some(Slip::ForgetsFences) => self.inner.put(Put { fence: 0, ..put }).await,
            Some(Slip::SwallowsFailuresOfCommits) => {
                let _ = self.inner.put(put).await;
                Ok(())
            }
            _ => self.inner.put(put).await,
        }
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        match self.slip {
            Some(Slip::NeverAnswersAtOnce) => None,
            Some(Slip::StoresNothingAtOnce) => Some(Ok(())),
            _ => self.inner.try_put(put),
        }
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::WritesWithoutFence) => self.inner.put_writes(PutWrites { fence: 0, ..put }).await,
            _ => self.inner.put_writes(put).await,
        }
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let query = if self.has_slip(Slip::ListsEverything) { ListQuery::default() } else { query };
        self.or_none(Slip::SwallowsFailuresOfReads, self.inner.list(place, query).await)
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        match self.slip {
            Some(Slip::InventsThreads) => Ok(vec!["t".to_owned()]),
            _ => self.inner.threads().await,
        }
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::DeletesNothing) => Ok(()),
            _ => self.inner.delete_thread(thread).await,
        }
    }

    fn outlives_its_process(&self) -> bool {
        match self.slip {
            Some(Slip::AlwaysOutlives) => true,
            Some(Slip::NeverOutlives) => false,
            _ => self.inner.outlives_its_process(),
        }
    }

    fn keeps_secrets(&self) -> bool {
        match self.slip {
            Some(Slip::ClaimsToKeepSecrets) => true,
            Some(Slip::KeepsNoSecrets) => false,
            _ => self.inner.keeps_secrets(),
        }
    }

    fn leases(&self) -> Option<&dyn Leases> {
        match self.slip {
            Some(Slip::ForgetsLeases) => None,
            Some(Slip::ClaimsLeases) => Some(self),
            _ => self.inner.leases().map(|_| self as &dyn Leases),
        }
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        match self.slip {
            Some(Slip::ForgetsTheCatalog) => None,
            Some(Slip::ClaimsACatalog) => Some(self),
            _ => self.inner.catalog().map(|_| self as &dyn Catalog),
        }
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        match self.slip {
            Some(Slip::ForgetsTheUpkeep) => None,
            Some(Slip::ClaimsUpkeep) => Some(self),
            _ => self.inner.upkeep().map(|_| self as &dyn Upkeep),
        }
    }
}

#[async_trait::async_trait]
impl Leases for Careless {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        let seize = terms.seize && !self.has_slip(Slip::NeverSeizes);
        leases_of(&*self.inner).acquire(thread, LeaseTerms { seize, ..terms }).await
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        match self.slip {
            Some(Slip::AlwaysRenews) => Ok(true),
            _ => leases_of(&*self.inner).renew(thread, fence, until).await,
        }
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::NeverReleases) => Ok(()),
            _ => leases_of(&*self.inner).release(thread, fence).await,
        }
    }

    fn let_go(&self, thread: &str, fence: u64) {
        if !self.has_slip(Slip::NeverLetsGo) {
            leases_of(&*self.inner).let_go(thread, fence);
        }
    }

    async fn released(&self, thread: &str, fence: u64) {
        match self.slip {
            Some(Slip::NeverNotifies) => pending().await,
            Some(Slip::NotifiesAtOnce) => {}
            _ => leases_of(&*self.inner).released(thread, fence).await,
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        match self.slip {
            Some(Slip::StopsNobody) => Ok(None),
            _ => leases_of(&*self.inner).ask_to_stop(thread, now).await,
        }
    }

    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        let query = match self.slip {
            Some(Slip::IgnoresTheHeldQuery) => HeldQuery::at(query.now),
            _ => query,
        };
        leases_of(&*self.inner).held(query).await
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        if !self.has_slip(Slip::ForgetsListeners) {
            leases_of(&*self.inner).hear_stops(listener);
        }
    }
}

#[async_trait::async_trait]
impl Catalog for Careless {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let query = if self.has_slip(Slip::IgnoresTheWaitingQuery) { WaitingQuery::default() } else { query };
        catalog::waiting(&*self.inner, query).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        match self.slip {
            Some(Slip::ListsTheRootOnly) => Ok(vec![String::new()]),
            _ => catalog::namespaces(&*self.inner, thread).await,
        }
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        match self.slip {
            Some(Slip::ListsBranches) => listed_branches(&*self.inner, place).await,
            _ => catalog::branches(&*self.inner, place).await,
        }
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        match self.slip {
            Some(Slip::CountsNothing) => Ok(Usage::default()),
            _ => catalog::usage(&*self.inner).await,
        }
    }
}

#[async_trait::async_trait]
impl Upkeep for Careless {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::CopiesNothing) => Ok(()),
            _ => upkeep::copy_thread(&*self.inner, from, to).await,
        }
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::RewritesWithoutFence) => {
                upkeep::rewrite(&*self.inner, Rewrite { fence: 0, ..rewrite }).await
            }
            _ => upkeep::rewrite(&*self.inner, rewrite).await,
        }
    }

    async fn compact(&self) -> Result<(), StoreError> {
        match self.slip {
            Some(Slip::NeverCompacts) => Ok(()),
            _ => upkeep::compact(&*self.inner).await,
        }
    }
}
