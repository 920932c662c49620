//! [`Store`]: long-term memory, beside the checkpoints of threads.
//!
//! This file has the contract; `ext.rs` has the calls for users. `namespace.rs`, `item.rs`, `change.rs`,
//! `filter.rs` and `search.rs` define what is stored and found; every backend uses them, so that all
//! answer alike. `options.rs` and `embedder.rs` prepare a change before a backend is touched. `memory.rs`,
//! `sqlite.rs` and `postgres.rs` keep items, `encrypted.rs` wraps another store. None of them knows graphs.

mod change;
#[cfg(feature = "conformance")]
pub mod conformance;
mod embedder;
#[cfg(feature = "encryption")]
mod encrypted;
mod ext;
mod filter;
mod item;
mod memory;
mod namespace;
mod options;
mod pattern;
#[cfg(feature = "postgres")]
mod postgres;
mod search;
#[cfg(feature = "sqlite")]
mod sqlite;
mod value;

pub use change::{Change, Condition, Indexing, Lifetime, NewItem, Write};
pub use embedder::{Embedder, VectorIndex};
#[cfg(feature = "encryption")]
pub use encrypted::EncryptedStore;
pub use ext::{DeleteItem, GetItem, GetItemAs, ListNamespaces, PutItem, SearchItems, StoreExt};
pub use filter::Filter;
pub use item::{Found, Item};
pub use memory::MemoryStore;
pub use namespace::{MAX_KEY_BYTES, Namespace};
pub use pattern::{NamespacePattern, NamespaceQuery};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresStore, PostgresStoreBuilder};
pub use search::SearchQuery;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteStore, SqliteStoreBuilder};

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::StoreError;

/// Long-term memory: JSON values by namespace and key, which threads and graphs share. A graph gets one by
/// `CompiledGraph::store`, and its nodes and tools reach it by `ctx.store()`.
///
/// These are the methods that a backend has; [`StoreExt`] has the calls for users: `put`, `get`, `delete`,
/// `search` and `list_namespaces`.
///
/// ```
/// use agentgraph_checkpoint::{Filter, MemoryStore, Namespace, StoreExt};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemoryStore::new();
/// let ada = Namespace::new(["users", "ada"])?;
/// store.put(&ada, "diet", json!({"vegan": true, "since": 2019})).await?;
/// store.put(&ada, "city", json!({"name": "Rome"})).await?;
///
/// let diet = store.get(&ada, "diet").await?.expect("it was stored");
/// assert_eq!(diet.value["since"], 2019);
/// let found = store.search(&Namespace::new(["users"])?).filter(Filter::gte("since", 2015)).await?;
/// assert_eq!(found[0].item.key, "diet");
/// # Ok(())
/// # }
/// ```
///
/// # A store of one's own
///
/// All calls may come from many threads at once, and a call may be dropped at each of its awaits: a change
/// is then made as a whole or not at all. A store must not hold anything across an await that other calls
/// wait for. An item whose time has ended is absent for every call, whether it was swept or not. With the
/// feature `conformance`, [`store::conformance`](conformance) tests whether a store keeps this contract.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The item, if there is one. `refresh` says whether its time begins anew; `None` for the store's
    /// default.
    ///
    /// # Errors
    /// [`StoreCode::ItemName`](crate::StoreCode::ItemName) if the key cannot be one;
    /// [`StoreCode::ItemUnreadable`](crate::StoreCode::ItemUnreadable) if stored bytes are damaged.
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError>;

    /// Makes changes in their order: all of them, or none. Returns for each put the new version, and for
    /// each delete the version that was removed, or `None` if there was no item.
    ///
    /// A put keeps the time of creation of the item that it replaces, and stores the value together with
    /// its vectors.
    ///
    /// # Errors
    /// [`StoreCode::ItemConflict`](crate::StoreCode::ItemConflict) if a condition does not hold;
    /// [`StoreCode::ItemName`](crate::StoreCode::ItemName),
    /// [`StoreCode::ItemValue`](crate::StoreCode::ItemValue) and
    /// [`StoreCode::Embedder`](crate::StoreCode::Embedder) if a change cannot be stored.
    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError>;

    /// The items that a query finds.
    ///
    /// # Errors
    /// [`StoreCode::ItemQuery`](crate::StoreCode::ItemQuery) if the query is not valid,
    /// [`StoreCode::Embedder`](crate::StoreCode::Embedder) if it has a text that cannot be compared,
    /// [`StoreCode::ScanLimit`](crate::StoreCode::ScanLimit) if it would look at too many items.
    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError>;

    /// The namespaces that have items, in their order, each once.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError>;

    /// Removes the items whose time has ended, and returns their number. They are absent before, too; this
    /// frees their space.
    async fn sweep(&self) -> Result<u64, StoreError>;
}

/// Delegates everything.
#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError> {
        (**self).read(namespace, key, refresh).await
    }

    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        (**self).change(changes).await
    }

    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        (**self).find(query).await
    }

    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        (**self).list(query).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        (**self).sweep().await
    }
}
