//! [`MemoryStore`]: items in the memory of this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::Store;
use super::change::{Change, Write};
use super::embedder::{best_score, embed_query};
use super::item::{Found, Item};
use super::namespace::{Namespace, check_key};
use super::options::{Options, Prepared, SCAN_LIMIT, end_of, option_methods};
use super::pattern::{NamespacePage, NamespaceQuery};
use super::search::{Results, SearchQuery};
use crate::error::StoreError;
use crate::impls::shows;
use crate::lock::Lock;
use crate::services::from_micros;

/// Keeps items in the memory of this process: for tests, and for memory that ends with its program.
/// A clone is another handle of the same store.
///
/// ```
/// use agentgraph_checkpoint::{MemoryStore, Namespace, StoreExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemoryStore::new();
/// let colours = Namespace::new(["colours"])?;
/// store.put(&colours, "sky", "blue").await?;
/// assert_eq!(store.get_as::<String>(&colours, "sky").await?.as_deref(), Some("blue"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    options: Options,
    items: Arc<Lock<Items>>,
}

/// All items. The lock around them is held for one call, never across an await.
#[derive(Debug, Default)]
struct Items {
    by_place: BTreeMap<Namespace, BTreeMap<String, Stored>>,
    last_version: u64,
}

/// An item without its place. Times are microseconds since 1970.
#[derive(Clone, Debug)]
struct Stored {
    value: Value,
    created: u64,
    updated: u64,
    ttl: Option<u64>,
    expires: Option<u64>,
    version: u64,
    vectors: Vec<Vec<f32>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore { options: Options::new(SCAN_LIMIT), items: Arc::default() }
    }

    option_methods!(#[must_use]);
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

shows!(MemoryStore: |it| { options: it.options });

#[async_trait]
impl Store for MemoryStore {
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError> {
        check_key(key)?;
        let now = self.options.now();
        let mut items = self.items.lock();
        let Some(stored) = items.find(namespace, key, now) else { return Ok(None) };
        if self.options.refreshes(refresh) {
            stored.refresh(now);
        }
        Ok(Some(stored.item(namespace, key)))
    }

    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        let prepared = self.options.prepare(changes).await?;
        self.items.lock().apply(prepared)
    }

    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        query.check()?;
        let vector = embed_query(self.options.index.as_ref(), query.text.as_deref()).await?;
        let now = self.options.now();
        let mut items = self.items.lock();
        let mut page = items.search(query, vector.as_deref(), now, self.options.scan_limit)?;
        if self.options.refreshes(query.refresh) {
            for Found { item, .. } in &mut page {
                if let Some(stored) = items.find(&item.namespace, &item.key, now) {
                    stored.refresh(now);
                    item.expires_at = stored.expires.map(from_micros);
                }
            }
        }
        Ok(page)
    }

    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        query.check()?;
        let now = self.options.now();
        let mut page = NamespacePage::new(query);
        let items = self.items.lock();
        let alive = items.by_place.iter().filter(|(_, items)| items.values().any(|item| item.is_alive(now)));
        for (namespace, _) in alive {
            if !page.add(namespace) {
                break;
            }
        }
        Ok(page.into_found())
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.options.now();
        let mut swept = 0;
        self.items.lock().by_place.retain(|_, items| {
            let before = items.len();
            items.retain(|_, item| item.is_alive(now));
            swept += (before - items.len()) as u64;
            !items.is_empty()
        });
        Ok(swept)
    }
}

impl Items {
    fn find(&mut self, namespace: &Namespace, key: &str, now: u64) -> Option<&mut Stored> {
        self.by_place.get_mut(namespace)?.get_mut(key).filter(|item| item.is_alive(now))
    }

    fn apply(&mut self, changes: Vec<Prepared>) -> Result<Vec<Option<u64>>, StoreError> {
        // Undone if a later change cannot be made.
        let mut undo: Vec<(Namespace, String, Option<Stored>)> = Vec::new();
        let mut versions = Vec::new();
        for prepared in changes {
            let Change { namespace, key, .. } = &prepared.change;
            let found = self.find(namespace, key, prepared.now).map(|item| (item.version, item.created));
            if let Err(conflict) = prepared.change.check_condition(found.map(|(version, _)| version)) {
                for (namespace, key, before) in undo.into_iter().rev() {
                    self.set(&namespace, &key, before);
                }
                return Err(conflict);
            }
            let (place, key) = (namespace.clone(), key.clone());
            let (version, new) = match &prepared.change.write {
                Write::Delete => (found.map(|(version, _)| version), None),
                Write::Put(new) => {
                    self.last_version += 1;
                    let created = found.map_or(prepared.created, |(_, created)| created);
                    let stored = Stored::of(&prepared, &new.value, created, self.last_version);
                    (Some(self.last_version), Some(stored))
                }
            };
            let before = self.set(&place, &key, new);
            undo.push((place, key, before));
            versions.push(version);
        }
        Ok(versions)
    }

    /// Returns what was there.
    fn set(&mut self, namespace: &Namespace, key: &str, new: Option<Stored>) -> Option<Stored> {
        match new {
            Some(stored) => {
                self.by_place.entry(namespace.clone()).or_default().insert(key.to_owned(), stored)
            }
            None => {
                let items = self.by_place.get_mut(namespace)?;
                let removed = items.remove(key);
                if items.is_empty() {
                    self.by_place.remove(namespace);
                }
                removed
            }
        }
    }

    fn search(
        &self,
        query: &SearchQuery,
        vector: Option<&[f32]>,
        now: u64,
        scan_limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let within = self.by_place.range(query.within.clone()..);
        let within = within.take_while(|(namespace, _)| namespace.is_in(&query.within));
        let items =
            within.flat_map(|(namespace, items)| items.iter().map(move |(key, item)| (namespace, key, item)));
        let mut items: Vec<(&Namespace, &String, &Stored)> = items
            .filter(|(_, _, item)| {
                item.is_alive(now) && query.before.is_none_or(|before| item.version < before)
            })
            .collect();
        items.sort_by_key(|(_, _, item)| std::cmp::Reverse(item.version));
        let mut results = Results::new(query, scan_limit);
        for (namespace, key, item) in items {
            if vector.is_none() && results.is_full() {
                break;
            }
            if query.filter.is_some() || vector.is_some() {
                results.count(1)?;
            }
            if results.fits(&item.value) {
                let score =
                    vector.and_then(|vector| best_score(vector, item.vectors.iter().map(Vec::as_slice)));
                results.add(item.item(namespace, key), score);
            }
        }
        Ok(results.page())
    }
}

impl Stored {
    fn of(prepared: &Prepared, value: &Value, created: u64, version: u64) -> Self {
        Stored {
            value: value.clone(),
            created,
            updated: prepared.now,
            ttl: prepared.ttl,
            expires: prepared.expires,
            version,
            vectors: prepared.vectors.clone(),
        }
    }

    fn is_alive(&self, now: u64) -> bool {
        self.expires.is_none_or(|end| now < end)
    }

    fn refresh(&mut self, now: u64) {
        if let Some(ttl) = self.ttl {
            self.expires = Some(end_of(now, ttl));
        }
    }

    fn item(&self, namespace: &Namespace, key: &str) -> Item {
        Item {
            namespace: namespace.clone(),
            key: key.to_owned(),
            value: self.value.clone(),
            created_at: from_micros(self.created),
            updated_at: from_micros(self.updated),
            expires_at: self.expires.map(from_micros),
            lifetime: self.ttl.map(Duration::from_micros),
            version: self.version,
        }
    }
}
