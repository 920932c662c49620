//! [`StoreExt`]: the calls for users, as builders that are awaited.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Store;
use super::change::{Change, Indexing, Lifetime};
use super::filter::Filter;
use super::item::{Found, Item, name_of};
use super::namespace::Namespace;
use super::pattern::{NamespacePattern, NamespaceQuery};
use super::search::SearchQuery;
use crate::error::{StoreCode, StoreError};
use crate::impls::awaited;

/// The calls of a [`Store`] for users. Every store has them.
///
/// ```
/// use std::time::Duration;
///
/// use agentgraph_checkpoint::{MemoryStore, Namespace, StoreCode, StoreExt};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, PartialEq, Debug)]
/// struct Diet {
///     vegan: bool,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemoryStore::new();
/// let ada = Namespace::new(["users", "ada"])?;
/// let version =
///     store.put_as(&ada, "diet", &Diet { vegan: true }).lifetime(Duration::from_secs(3600)).await?;
/// assert_eq!(store.get_as(&ada, "diet").await?, Some(Diet { vegan: true }));
///
/// // Two agents that decide at the same time: the second one is told.
/// store.put_as(&ada, "diet", &Diet { vegan: false }).if_version(version).await?;
/// let late = store.put_as(&ada, "diet", &Diet { vegan: true }).if_version(version).await;
/// assert_eq!(late.unwrap_err().code(), StoreCode::ItemConflict);
/// assert!(store.delete(&ada, "diet").await?);
/// # Ok(())
/// # }
/// ```
pub trait StoreExt: Store {
    /// Stores a value, in the place of an earlier one. Awaited, it returns the version of the new item.
    fn put<'a>(
        &'a self,
        namespace: &Namespace,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> PutItem<'a, Self> {
        PutItem { store: self, change: Ok(Change::put(namespace, key, value)) }
    }

    /// [`put`](Self::put) for any type that serde writes as JSON.
    ///
    /// # Errors
    /// [`StoreCode::ItemValue`] if it cannot be JSON.
    fn put_as<'a, T: Serialize + ?Sized>(
        &'a self,
        namespace: &Namespace,
        key: impl Into<String>,
        value: &T,
    ) -> PutItem<'a, Self> {
        let key = key.into();
        let change = match serde_json::to_value(value) {
            Ok(value) => Ok(Change::put(namespace, key, value)),
            Err(error) => {
                let problem = format!("{} cannot be JSON: {error}", name_of(namespace, &key));
                Err(StoreError::new(StoreCode::ItemValue, problem).with_source(error))
            }
        };
        PutItem { store: self, change }
    }

    /// The item, if there is one.
    fn get<'a>(&'a self, namespace: &'a Namespace, key: &'a str) -> GetItem<'a, Self> {
        GetItem { store: self, namespace, key, refresh: None }
    }

    /// The value as a `T`, if there is an item.
    ///
    /// # Errors
    /// [`StoreCode::ItemValue`] if the value is of another type.
    fn get_as<'a, T: DeserializeOwned>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> GetItemAs<'a, Self, T> {
        GetItemAs { get: self.get(namespace, key), value: PhantomData }
    }

    /// Removes the item. Awaited, it returns whether there was one.
    fn delete<'a>(&'a self, namespace: &Namespace, key: impl Into<String>) -> DeleteItem<'a, Self> {
        DeleteItem { store: self, change: Change::delete(namespace, key) }
    }

    /// Searches the items in a namespace, and in all namespaces in it: the ten that were stored last, unless
    /// more is said.
    fn search<'a>(&'a self, within: &Namespace) -> SearchItems<'a, Self> {
        SearchItems { store: self, query: SearchQuery::within(within) }
    }

    /// Lists the namespaces that have items: a hundred at most, unless more is said.
    fn list_namespaces(&self) -> ListNamespaces<'_, Self> {
        ListNamespaces { store: self, query: NamespaceQuery::default() }
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// A put, made by [`StoreExt::put`]: set options, then await it.
#[must_use = "a put does nothing until it is awaited"]
pub struct PutItem<'a, S: ?Sized> {
    store: &'a S,
    change: Result<Change, StoreError>,
}

impl<S: Store + ?Sized> PutItem<'_, S> {
    /// How long the item lasts from now.
    pub fn lifetime(self, lifetime: Duration) -> Self {
        self.with(|change| change.lifetime(Lifetime::For(lifetime)))
    }

    /// The item lasts forever, whatever the store's default is.
    pub fn forever(self) -> Self {
        self.with(|change| change.lifetime(Lifetime::Forever))
    }

    /// Only if there is no item; otherwise it fails with [`StoreCode::ItemConflict`].
    pub fn if_absent(self) -> Self {
        self.with(Change::if_absent)
    }

    /// Only if the item has this version; otherwise it fails with [`StoreCode::ItemConflict`].
    pub fn if_version(self, version: u64) -> Self {
        self.with(|change| change.if_version(version))
    }

    /// A search by text compares the fields at these paths, in the place of the index's own.
    pub fn index_fields<T: Into<String>>(self, paths: impl IntoIterator<Item = T>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        self.with(|change| change.indexing(Indexing::Fields(paths)))
    }

    /// A search by text does not find the item, and the embedder does not get it.
    pub fn unindexed(self) -> Self {
        self.with(|change| change.indexing(Indexing::Off))
    }

    fn with(self, set: impl FnOnce(Change) -> Change) -> Self {
        PutItem { store: self.store, change: self.change.map(set) }
    }
}

awaited!(['a, S: Store + ?Sized] PutItem<'a, S>: 'a Result<u64, StoreError> = |put| async move {
    let versions = put.store.change(vec![put.change?]).await?;
    versions.into_iter().next().flatten().ok_or_else(|| no_answer("a put"))
});

/// A get, made by [`StoreExt::get`]: set options, then await it.
#[must_use = "a get does nothing until it is awaited"]
pub struct GetItem<'a, S: ?Sized> {
    store: &'a S,
    namespace: &'a Namespace,
    key: &'a str,
    refresh: Option<bool>,
}

impl<S: Store + ?Sized> GetItem<'_, S> {
    /// Whether the time of the item begins anew; as the store says if not set.
    pub fn refresh(mut self, refreshes: bool) -> Self {
        self.refresh = Some(refreshes);
        self
    }
}

impl<'a, S: Store + ?Sized> IntoFuture for GetItem<'a, S> {
    type Output = Result<Option<Item>, StoreError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.store.read(self.namespace, self.key, self.refresh)
    }
}

/// A get of a type, made by [`StoreExt::get_as`]: set options, then await it.
#[must_use = "a get does nothing until it is awaited"]
pub struct GetItemAs<'a, S: ?Sized, T> {
    get: GetItem<'a, S>,
    value: PhantomData<fn() -> T>,
}

impl<S: Store + ?Sized, T> GetItemAs<'_, S, T> {
    /// Whether the time of the item begins anew; as the store says if not set.
    pub fn refresh(mut self, refreshes: bool) -> Self {
        self.get.refresh = Some(refreshes);
        self
    }
}

awaited!(
    ['a, S: Store + ?Sized, T: DeserializeOwned + 'a] GetItemAs<'a, S, T>: 'a Result<Option<T>, StoreError> =
        |get| async move { get.get.await?.map(|item| item.to()).transpose() }
);

/// A delete, made by [`StoreExt::delete`]: set options, then await it.
#[must_use = "a delete does nothing until it is awaited"]
pub struct DeleteItem<'a, S: ?Sized> {
    store: &'a S,
    change: Change,
}

impl<S: Store + ?Sized> DeleteItem<'_, S> {
    /// Only if the item has this version; otherwise it fails with [`StoreCode::ItemConflict`].
    pub fn if_version(mut self, version: u64) -> Self {
        self.change = self.change.if_version(version);
        self
    }
}

awaited!(['a, S: Store + ?Sized] DeleteItem<'a, S>: 'a Result<bool, StoreError> = |delete| async move {
    let removed = delete.store.change(vec![delete.change]).await?;
    removed.first().map(Option::is_some).ok_or_else(|| no_answer("a delete"))
});

/// A search, made by [`StoreExt::search`]: set options, then await it.
#[must_use = "a search does nothing until it is awaited"]
pub struct SearchItems<'a, S: ?Sized> {
    store: &'a S,
    query: SearchQuery,
}

impl<S: Store + ?Sized> SearchItems<'_, S> {
    /// Only items whose values match.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.query.filter = Some(filter);
        self
    }

    /// Those that are most similar to this text come first. Needs a [`VectorIndex`](crate::VectorIndex).
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.query.text = Some(text.into());
        self
    }

    /// The most items to return; at most 1,000. Ten if not set.
    pub fn limit(mut self, items: usize) -> Self {
        self.query.limit = items;
        self
    }

    /// The number of items to skip; at most 1,000,000.
    pub fn offset(mut self, items: usize) -> Self {
        self.query.offset = items;
        self
    }

    /// Only items with a lower version. A page that begins before the last version of the page before
    /// neither skips nor repeats an item, whatever is stored meanwhile.
    ///
    /// ```
    /// use agentgraph_checkpoint::{MemoryStore, Namespace, StoreExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// let store = MemoryStore::new();
    /// let log = Namespace::new(["log"])?;
    /// for n in 0..25 {
    ///     store.put(&log, n.to_string(), n).await?;
    /// }
    /// let (mut before, mut count) = (u64::MAX, 0);
    /// loop {
    ///     let page = store.search(&log).before(before).await?;
    ///     let Some(last) = page.last() else { break };
    ///     before = last.item.version;
    ///     count += page.len();
    /// }
    /// assert_eq!(count, 25);
    /// # Ok(())
    /// # }
    /// ```
    pub fn before(mut self, version: u64) -> Self {
        self.query.before = Some(version);
        self
    }

    /// Whether the times of the results begin anew; as the store says if not set.
    pub fn refresh(mut self, refreshes: bool) -> Self {
        self.query.refresh = Some(refreshes);
        self
    }
}

awaited!(['a, S: Store + ?Sized] SearchItems<'a, S>: 'a Result<Vec<Found>, StoreError> =
    |search| async move { search.store.find(&search.query).await });

/// A list of namespaces, made by [`StoreExt::list_namespaces`]: set options, then await it.
#[must_use = "a list does nothing until it is awaited"]
pub struct ListNamespaces<'a, S: ?Sized> {
    store: &'a S,
    query: NamespaceQuery,
}

impl<S: Store + ?Sized> ListNamespaces<'_, S> {
    /// Only namespaces that start like this.
    ///
    /// ```
    /// use agentgraph_checkpoint::{MemoryStore, Namespace, StoreExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// let store = MemoryStore::new();
    /// for segments in [["users", "ada", "facts"], ["users", "bo", "facts"], ["users", "bo", "tasks"]] {
    ///     store.put(&Namespace::new(segments)?, "k", 1).await?;
    /// }
    /// let users = store.list_namespaces().prefix(["users"]).max_depth(2).await?;
    /// assert_eq!(users, [Namespace::new(["users", "ada"])?, Namespace::new(["users", "bo"])?]);
    /// assert_eq!(store.list_namespaces().suffix(["*", "tasks"]).await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix(mut self, prefix: impl Into<NamespacePattern>) -> Self {
        self.query.prefix = prefix.into();
        self
    }

    /// Only namespaces that end like this.
    pub fn suffix(mut self, suffix: impl Into<NamespacePattern>) -> Self {
        self.query.suffix = suffix.into();
        self
    }

    /// Longer ones are cut to this number of segments, and each result is shown once.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.query.max_depth = Some(depth);
        self
    }

    /// The most namespaces to return; at most 1,000. A hundred if not set.
    pub fn limit(mut self, namespaces: usize) -> Self {
        self.query.limit = namespaces;
        self
    }

    /// The number of namespaces to skip; at most 1,000,000.
    pub fn offset(mut self, namespaces: usize) -> Self {
        self.query.offset = namespaces;
        self
    }
}

awaited!(['a, S: Store + ?Sized] ListNamespaces<'a, S>: 'a Result<Vec<Namespace>, StoreError> =
    |list| async move { list.store.list(&list.query).await });

fn no_answer(call: &str) -> StoreError {
    let problem = format!("the store gave no answer to {call}: report it to its author");
    StoreError::new(StoreCode::Store, problem)
}
