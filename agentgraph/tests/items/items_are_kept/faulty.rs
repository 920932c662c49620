//! A store with one fault: a good store behind a wrapper that does one thing wrong.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use agentgraph::checkpoint::store::conformance::Setup;
use agentgraph::checkpoint::store::{Condition, Indexing, Lifetime, Write};
use agentgraph::checkpoint::{
    Change, Found, Item, MemoryStore, Namespace, NamespaceQuery, SearchQuery, Store, StoreCode, StoreError,
};
use serde_json::Value;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    ReadsNumbersAsFloats,
    FindsKeysInAnyNamespace,
    ForgetsCreation,
    SaysEveryDeleteRemoved,
    TakesPrefixesOfText,
    CutsKeysAtNul,
    AcceptsAnyKey,
    MakesChangesOneByOne,
    DeletesFirst,
    IgnoresAbsent,
    IgnoresVersionsOfPuts,
    IgnoresVersionsOfDeletes,
    EndedItemsConflict,
    OldestFirst,
    IgnoresOffset,
    IgnoresBefore,
    FiltersAfterPaging,
    ComparesAsFloats,
    IgnoresInvalidFilters,
    ClampsLimits,
    ListsBackwards,
    IgnoresSuffix,
    RepeatsCutNamespaces,
    ListIgnoresOffset,
    NeverEnds,
    NeverRefreshesReads,
    NeverRefreshesSearches,
    AlwaysRefreshes,
    SweepsNothing,
    KeepsFirstLifetime,
    IgnoresCopiedTimes,
    LeastSimilarFirst,
    TiesByVersion,
    OneTextPerItem,
    IndexesEverything,
    TextIgnoresFilter,
    KeepsFirstVectors,
    StoresWithoutVectors,
    ChecksAbsenceThenPuts,
    ChecksVersionThenPuts,
    PausesBetweenChanges,
}

/// Each fault, and the clause that finds it.
pub(crate) const FAULTS: &[(Fault, &str)] = &[
    (Fault::ReadsNumbersAsFloats, "an item is read as it was put"),
    (Fault::FindsKeysInAnyNamespace, "an item that was never put is absent"),
    (Fault::ForgetsCreation, "a later put replaces the value and keeps the time of creation"),
    (Fault::SaysEveryDeleteRemoved, "a deleted item is absent, and a delete says whether it was there"),
    (Fault::TakesPrefixesOfText, "namespaces with similar names are separate"),
    (Fault::CutsKeysAtNul, "names may have any characters"),
    (Fault::AcceptsAnyKey, "an empty key is refused"),
    (Fault::MakesChangesOneByOne, "changes are made all or none"),
    (Fault::DeletesFirst, "changes of one item are made in their order"),
    (Fault::IgnoresAbsent, "a put `if_absent` is made only if there is no item"),
    (Fault::IgnoresVersionsOfPuts, "a put `if_version` is made only if the item has the version"),
    (Fault::IgnoresVersionsOfDeletes, "a delete `if_version` is made only if the item has the version"),
    (Fault::EndedItemsConflict, "an item whose time has ended is absent for conditions"),
    (Fault::OldestFirst, "a search shows the items that were stored last first"),
    (Fault::IgnoresOffset, "a search obeys `limit` and `offset`"),
    (Fault::IgnoresBefore, "a search obeys `before`"),
    (Fault::FiltersAfterPaging, "a search obeys `limit` and `offset` after its filter"),
    (Fault::ComparesAsFloats, "a filter finds exactly the values that it matches"),
    (Fault::IgnoresInvalidFilters, "a filter that is not valid is refused"),
    (Fault::ClampsLimits, "a limit that is too high is refused"),
    (Fault::ListsBackwards, "a list shows the namespaces that have items, in order"),
    (Fault::IgnoresSuffix, "a list obeys its prefix and its suffix"),
    (Fault::RepeatsCutNamespaces, "a list cuts namespaces to `max_depth` and shows each once"),
    (Fault::ListIgnoresOffset, "a list obeys `limit` and `offset`"),
    (Fault::NeverEnds, "an item whose time has ended is not read, found or listed"),
    (Fault::NeverRefreshesReads, "a read with `refresh` begins the time of an item anew"),
    (Fault::NeverRefreshesSearches, "a search with `refresh` begins the times of its results anew"),
    (Fault::AlwaysRefreshes, "a read without `refresh` leaves the time of an item"),
    (Fault::SweepsNothing, "a sweep removes the items whose time has ended, and only those"),
    (Fault::KeepsFirstLifetime, "a later put replaces the time of an item"),
    (Fault::IgnoresCopiedTimes, "a copied item keeps its time of creation and its end"),
    (Fault::LeastSimilarFirst, "a search by text shows the most similar items first"),
    (Fault::TiesByVersion, "equally similar items are shown by namespace and key"),
    (Fault::OneTextPerItem, "an item is as similar as its most similar text"),
    (Fault::IndexesEverything, "an item that was put without an index is not found by a text"),
    (Fault::TextIgnoresFilter, "a search by text obeys its filter, `limit`, `offset` and `before`"),
    (Fault::KeepsFirstVectors, "a later put replaces the vectors of an item"),
    (Fault::StoresWithoutVectors, "if the embedder fails, nothing is stored"),
    (Fault::ChecksAbsenceThenPuts, "of many puts `if_absent` at once, one is made"),
    (Fault::ChecksVersionThenPuts, "counting with `if_version` at once loses nothing"),
    (Fault::PausesBetweenChanges, "a change that is dropped is made as a whole or not at all"),
];

pub(crate) struct FaultyStore {
    inner: MemoryStore,
    /// Has the first value of each item only.
    first: MemoryStore,
    fault: Fault,
    lifetimes: Mutex<HashMap<(Namespace, String), Lifetime>>,
    put: Mutex<HashSet<(Namespace, String)>>,
}

impl FaultyStore {
    pub(crate) fn new(fault: Fault, setup: &Setup) -> Self {
        let memory = || MemoryStore::new().services(setup.clock.clone()).index(setup.index.clone());
        FaultyStore {
            inner: memory(),
            first: memory(),
            fault,
            lifetimes: Mutex::default(),
            put: Mutex::default(),
        }
    }

    fn key(&self, key: &str) -> String {
        match self.fault {
            Fault::CutsKeysAtNul => key.split('\0').next().unwrap_or_default().to_owned(),
            Fault::AcceptsAnyKey if key.is_empty() => "empty".to_owned(),
            Fault::AcceptsAnyKey => key.chars().take(1024).collect(),
            _ => key.to_owned(),
        }
    }

    /// A change as the fault makes it.
    fn bend(&self, mut change: Change) -> Change {
        change.key = self.key(&change.key);
        let place = (change.namespace.clone(), change.key.clone());
        match (self.fault, change.condition, &change.write) {
            (Fault::IgnoresAbsent | Fault::ChecksAbsenceThenPuts, Condition::Absent, _)
            | (
                Fault::IgnoresVersionsOfPuts | Fault::ChecksVersionThenPuts,
                Condition::Version(_),
                Write::Put(_),
            )
            | (Fault::IgnoresVersionsOfDeletes, Condition::Version(_), Write::Delete) => {
                change.condition = Condition::Any;
            }
            _ => {}
        }
        if let Write::Put(new) = &mut change.write {
            match (self.fault, &new.indexing) {
                (Fault::OneTextPerItem, Indexing::Fields(paths)) => {
                    new.indexing = Indexing::Fields(paths.iter().take(1).cloned().collect());
                }
                (Fault::IndexesEverything, Indexing::Off) => new.indexing = Indexing::Default,
                _ => {}
            }
            match (self.fault, new.lifetime) {
                (Fault::NeverEnds, _) => new.lifetime = Lifetime::Forever,
                (Fault::KeepsFirstLifetime, lifetime) => {
                    new.lifetime = *self.lifetimes.lock().unwrap().entry(place).or_insert(lifetime);
                }
                (Fault::IgnoresCopiedTimes, Lifetime::Until(lifetime, _)) => {
                    new.lifetime = Lifetime::For(lifetime);
                }
                _ => {}
            }
        }
        change
    }

    /// Looks first, and changes later.
    async fn look_first(&self, changes: &[Change]) -> Result<(), StoreError> {
        for change in changes {
            let applies = match change.condition {
                Condition::Absent => self.fault == Fault::ChecksAbsenceThenPuts,
                Condition::Version(_) => self.fault == Fault::ChecksVersionThenPuts,
                _ => false,
            };
            if applies {
                let found = self.inner.read(&change.namespace, &change.key, Some(false)).await?;
                change.check_condition(found.map(|item| item.version))?;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Store for FaultyStore {
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError> {
        let refresh = match self.fault {
            Fault::NeverRefreshesReads => Some(false),
            Fault::AlwaysRefreshes => Some(true),
            _ => refresh,
        };
        let mut item = self.inner.read(namespace, &self.key(key), refresh).await?;
        if item.is_none() && self.fault == Fault::FindsKeysInAnyNamespace {
            let all = self.inner.find(&SearchQuery::within(&Namespace::root())).await?;
            item = all.into_iter().map(|found| found.item).find(|item| item.key == key);
        }
        if let Some(item) = &mut item {
            match self.fault {
                Fault::ReadsNumbersAsFloats => item.value = as_floats(&item.value),
                Fault::ForgetsCreation => item.created_at = item.updated_at,
                _ => {}
            }
        }
        Ok(item)
    }

    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        self.look_first(&changes).await?;
        let mut changes: Vec<Change> = changes.into_iter().map(|change| self.bend(change)).collect();
        match self.fault {
            Fault::SaysEveryDeleteRemoved => {
                let done = self.inner.change(changes).await?;
                Ok(done.into_iter().map(|version| version.or(Some(0))).collect())
            }
            Fault::MakesChangesOneByOne | Fault::PausesBetweenChanges => {
                let mut done = Vec::new();
                for change in changes {
                    done.extend(self.inner.change(vec![change]).await?);
                    if self.fault == Fault::PausesBetweenChanges {
                        tokio::task::yield_now().await;
                    }
                }
                Ok(done)
            }
            Fault::DeletesFirst => {
                changes.sort_by_key(|change| change.write != Write::Delete);
                self.inner.change(changes).await
            }
            Fault::EndedItemsConflict => {
                for change in &changes {
                    let place = (change.namespace.clone(), change.key.clone());
                    let is_new = self.put.lock().unwrap().insert(place);
                    if change.condition == Condition::Absent && !is_new {
                        return Err(StoreError::new(StoreCode::ItemConflict, "it was there"));
                    }
                }
                self.inner.change(changes).await
            }
            Fault::StoresWithoutVectors => match self.inner.change(changes.clone()).await {
                Err(error) if error.code() == StoreCode::Embedder => {
                    let off = changes.into_iter().map(|change| change.indexing(Indexing::Off));
                    self.inner.change(off.collect()).await
                }
                done => done,
            },
            Fault::KeepsFirstVectors => {
                for change in &changes {
                    if self.first.read(&change.namespace, &change.key, Some(false)).await?.is_none() {
                        self.first.change(vec![change.clone()]).await?;
                    }
                }
                self.inner.change(changes).await
            }
            _ => self.inner.change(changes).await,
        }
    }

    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        let mut bent = query.clone();
        let all = |query: &SearchQuery| {
            let mut all = query.clone();
            (all.limit, all.offset) = (1_000, 0);
            all
        };
        match self.fault {
            Fault::TakesPrefixesOfText => {
                let start = query.within.segments().join("/");
                bent.within = Namespace::root();
                let mut page = self.inner.find(&all(&bent)).await?;
                page.retain(|found| found.item.namespace.segments().join("/").starts_with(&start));
                return Ok(page);
            }
            Fault::OldestFirst => {
                let mut page = self.inner.find(query).await?;
                page.reverse();
                return Ok(page);
            }
            Fault::IgnoresOffset => bent.offset = 0,
            Fault::IgnoresBefore => bent.before = None,
            Fault::FiltersAfterPaging => {
                bent.filter = None;
                let mut page = self.inner.find(&bent).await?;
                page.retain(|found| query.filter.as_ref().is_none_or(|one| one.matches(&found.item.value)));
                return Ok(page);
            }
            Fault::ComparesAsFloats if query.check().is_ok() => {
                bent.filter = None;
                let fits = |found: &Found| {
                    let value = as_floats(&found.item.value);
                    query.filter.as_ref().is_none_or(|filter| filter.matches(&value))
                };
                let mut page = self.inner.find(&all(&bent)).await?;
                page.retain(fits);
                return Ok(page.into_iter().skip(query.offset).take(query.limit).collect());
            }
            Fault::IgnoresInvalidFilters => {
                bent.filter.take_if(|filter| filter.check().is_err()).map_or((), drop)
            }
            Fault::ClampsLimits => {
                (bent.limit, bent.offset) = (query.limit.min(1_000), query.offset.min(1_000_000));
            }
            Fault::NeverRefreshesSearches => bent.refresh = Some(false),
            Fault::AlwaysRefreshes => bent.refresh = Some(true),
            Fault::LeastSimilarFirst if query.text.is_some() => {
                let mut page = self.inner.find(query).await?;
                page.reverse();
                return Ok(page);
            }
            Fault::TiesByVersion if query.text.is_some() => {
                let mut page = self.inner.find(query).await?;
                let score = |found: &Found| found.score.unwrap_or_default();
                page.sort_by(|a, b| score(b).total_cmp(&score(a)).then(b.item.version.cmp(&a.item.version)));
                return Ok(page);
            }
            Fault::TextIgnoresFilter if query.text.is_some() => bent.filter = None,
            Fault::KeepsFirstVectors if query.text.is_some() => return self.first.find(query).await,
            _ => {}
        }
        self.inner.find(&bent).await
    }

    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        let mut bent = query.clone();
        match self.fault {
            Fault::ListsBackwards => {
                let mut page = self.inner.list(query).await?;
                page.reverse();
                return Ok(page);
            }
            Fault::IgnoresSuffix => bent.suffix = Default::default(),
            Fault::RepeatsCutNamespaces => {
                bent.max_depth = None;
                let page = self.inner.list(&bent).await?;
                let depth = query.max_depth.unwrap_or(usize::MAX);
                return Ok(page.iter().map(|namespace| namespace.cut_to(depth)).collect());
            }
            Fault::ListIgnoresOffset => bent.offset = 0,
            _ => {}
        }
        self.inner.list(&bent).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        match self.fault {
            Fault::SweepsNothing => Ok(0),
            _ => self.inner.sweep().await,
        }
    }
}

fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(values) => values.iter().map(as_floats).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), as_floats(value))).collect()
        }
        other => other.clone(),
    }
}
