//! [`EncryptedStore`]: encrypts the items that another store keeps.
//!
//! It wraps a store and reaches it by the contract only. `names.rs` replaces namespaces and keys by codes
//! that only the key can make, `payload.rs` has the bytes of an item, `moves.rs` changes items that are
//! still under an older key, `searches.rs` opens items to filter and compare them. Keys and envelopes are
//! those of the checkpointer (`crate::encrypted`).

mod moves;
mod names;
mod payload;
mod searches;

use async_trait::async_trait;

use self::names::Names;
use super::Store;
use super::change::Change;
use super::item::{Found, Item};
use super::namespace::{Namespace, check_key};
use super::options::Options;
use super::pattern::NamespaceQuery;
use super::search::SearchQuery;
use crate::encrypted::KeyRing;
use crate::encrypted::random::Random;
use crate::error::StoreError;
use crate::impls::shows;

/// A wrapper around a [`Store`] that encrypts its items (feature `encryption`): AES-256-GCM, with a separate
/// key for each.
/// A clone is another handle of the same store.
///
/// ```
/// use agentgraph_checkpoint::{EncryptedStore, EncryptionKey, Filter, KeyRing, MemoryStore, Namespace, StoreExt};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// # let key_file = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// let keys = KeyRing::new("2026-11", EncryptionKey::from_hex(key_file)?)?;
/// let store = EncryptedStore::new(MemoryStore::new(), keys);
/// let ada = Namespace::new(["users", "ada"])?;
/// store.put(&ada, "allergy", json!({"to": "nuts"})).await?;
///
/// let found = store.search(&ada).filter(Filter::eq("to", "nuts")).await?;
/// assert_eq!(found[0].item.key, "allergy");
/// let stored = store.inner().search(&Namespace::root()).await?;
/// assert!(!format!("{stored:?}").contains("nuts") && !format!("{stored:?}").contains("ada"));
/// # Ok(())
/// # }
/// ```
///
/// The inner store sees codes in the place of the segments of a namespace and of keys (HMAC-SHA-256 under a
/// key of their own; equal segments have equal codes below the same parents only), and ciphertext in the
/// place of values and vectors. Not encrypted are: the number of items, which of them are in one namespace,
/// the depth of namespaces, the length of encrypted bytes, times, versions and lifetimes, and the name of
/// the key. An item is bound to its namespace and key: bytes that were changed, or moved to another key,
/// fail with [`StoreCode::SealBroken`](crate::StoreCode::SealBroken). With write access to the inner store
/// one can remove items, and put back an older value of the same item.
///
/// # Searches
///
/// The inner store can find the items of a namespace, and no more. So a search with a filter or a text opens
/// every item in its namespace, up to the [scan limit](Self::scan_limit) of 10,000; beyond it fails with
/// [`StoreCode::ScanLimit`](crate::StoreCode::ScanLimit). A list of namespaces opens one item for each. The
/// [index](Self::index) belongs to this store: the inner one must not have one.
///
/// # Rotation
///
/// Items are found under every key of the ring, and stored under the current one. An item under an older key
/// moves to the current one when it is stored again, or by [`reseal`](Self::reseal).
#[derive(Clone)]
pub struct EncryptedStore<S> {
    inner: S,
    keys: KeyRing,
    /// Makes codes under each key of the ring, in its order.
    names: Vec<Names>,
    random: Random,
    options: Options,
}

/// Each item that is looked at is decrypted.
const SCAN_LIMIT: usize = 10_000;

impl<S: Store> EncryptedStore<S> {
    /// Encrypts everything that `inner` stores.
    pub fn new(inner: S, keys: KeyRing) -> Self {
        let names = keys.all().map(|named| Names::of(&named.key)).collect();
        EncryptedStore {
            inner,
            keys,
            names,
            random: Random::of_the_system(),
            options: Options::new(SCAN_LIMIT),
        }
    }

    /// Whether the time of an item begins anew when it is read; `true` if not set. Each read can decide for
    /// itself. Lifetimes and clocks are those of the inner store.
    #[must_use]
    pub fn refresh_on_read(mut self, refreshes: bool) -> Self {
        self.options.refreshes = refreshes;
        self
    }

    /// Makes items comparable with a text; without an index, searches by text fail. The vectors are
    /// encrypted with the item.
    #[must_use]
    pub fn index(mut self, index: super::VectorIndex) -> Self {
        self.options.index = Some(index);
        self
    }

    /// The most items that one search or list opens; 10,000 if not set.
    #[must_use]
    pub fn scan_limit(mut self, items: usize) -> Self {
        self.options.scan_limit = items;
        self
    }

    /// The inner store.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Encrypts the items in a namespace that are under older keys with the current key, so that they no
    /// longer need an older key. Returns their number. They get new versions, in their order; their times of
    /// creation and their ends stay.
    ///
    /// ```
    /// use agentgraph_checkpoint::{EncryptedStore, EncryptionKey, KeyRing, MemoryStore, Namespace, StoreExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// # let (spring, autumn) = (EncryptionKey::from_bytes([1; 32]), EncryptionKey::from_bytes([2; 32]));
    /// # let ada = Namespace::new(["ada"])?;
    /// let disk = MemoryStore::new();
    /// let store = EncryptedStore::new(disk.clone(), KeyRing::new("spring", spring.clone())?);
    /// store.put(&ada, "city", "Rome").await?;
    ///
    /// let both = KeyRing::new("autumn", autumn.clone())?.older("spring", spring)?;
    /// assert_eq!(EncryptedStore::new(disk.clone(), both).reseal(&Namespace::root()).await?, 1);
    /// let store = EncryptedStore::new(disk, KeyRing::new("autumn", autumn)?);
    /// assert_eq!(store.get_as::<String>(&ada, "city").await?.as_deref(), Some("Rome"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As those of a read and a change. Items before the failure are encrypted anew.
    pub async fn reseal(&self, within: &Namespace) -> Result<u64, StoreError> {
        moves::reseal(self, within).await
    }
}

#[async_trait]
impl<S: Store> Store for EncryptedStore<S> {
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError> {
        check_key(key)?;
        let refresh = Some(self.options.refreshes(refresh));
        for names in &self.names {
            let (space, code) = names.place(namespace, key);
            if let Some(found) = self.inner.read(&space, &code, refresh).await? {
                return Ok(Some(self.open_named(found, namespace, key)?.item));
            }
        }
        Ok(None)
    }

    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        moves::change(self, changes).await
    }

    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        searches::find(self, query).await
    }

    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        searches::list(self, query).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.inner.sweep().await
    }
}

shows!([S] EncryptedStore<S>: |it| { keys: it.keys, options: it.options });
