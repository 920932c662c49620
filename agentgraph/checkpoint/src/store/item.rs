//! [`Item`]: a stored value with its place and its times.

use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::namespace::Namespace;
use crate::error::{StoreCode, StoreError};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::services::from_micros;

/// A value in a [`Store`](crate::Store), with its place and its times.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// Where it is.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What was stored.
    pub value: Value,
    /// When the key was first stored; later values keep it.
    pub created_at: SystemTime,
    /// When this value was stored.
    pub updated_at: SystemTime,
    /// When it ends; `None` if it does not. Read with `refresh`, it shows the new end.
    pub expires_at: Option<SystemTime>,
    /// The time that begins anew when it is read with `refresh`; `None` if it does not end.
    pub lifetime: Option<Duration>,
    /// A number that no other value in the store ever has. Later values have higher ones.
    pub version: u64,
}

impl Item {
    /// An item that never ends. For authors of stores.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use agentgraph_checkpoint::{Item, Namespace};
    ///
    /// let item = Item::new(Namespace::root(), "colour", "red".into(), SystemTime::UNIX_EPOCH, 1);
    /// assert_eq!(item.to::<String>()?, "red");
    /// # Ok::<(), agentgraph_checkpoint::StoreError>(())
    /// ```
    pub fn new(
        namespace: Namespace,
        key: impl Into<String>,
        value: Value,
        stored_at: SystemTime,
        version: u64,
    ) -> Self {
        Item {
            namespace,
            key: key.into(),
            value,
            created_at: stored_at,
            updated_at: stored_at,
            expires_at: None,
            lifetime: None,
            version,
        }
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// [`StoreCode::ItemValue`] if the value is of another type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        T::deserialize(&self.value).map_err(|error| {
            let problem = format!(
                "the value of {} is of another type: {error}; read it as the type that was stored, or store it again",
                name_of(&self.namespace, &self.key)
            );
            StoreError::new(StoreCode::ItemValue, problem).with_source(error)
        })
    }
}

/// An item that a search found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The item.
    pub item: Item,
    /// The similarity to the text of the search, from -1 to 1; `None` for a search without a text.
    pub score: Option<f64>,
}

impl Found {
    /// An item and its score. For authors of stores.
    pub fn new(item: Item, score: Option<f64>) -> Self {
        Found { item, score }
    }
}

/// An item in messages.
pub(crate) fn name_of(namespace: &Namespace, key: &str) -> String {
    format!("the item {key:?} in {namespace}")
}

/// An item as a file or a server keeps it, with its times in microseconds since 1970.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) struct StoredItem<'a> {
    pub(crate) version: i64,
    pub(crate) namespace: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) created: i64,
    pub(crate) updated: i64,
    pub(crate) ttl: Option<i64>,
    pub(crate) expires: Option<i64>,
    /// `None` if there is something else than bytes.
    pub(crate) value: Option<&'a [u8]>,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl StoredItem<'_> {
    pub(crate) fn read(self) -> Result<Item, StoreError> {
        let namespace = Namespace::read(self.namespace)?;
        let damaged = |problem: &str| unreadable(&namespace, &String::from_utf8_lossy(self.key), problem);
        let key = std::str::from_utf8(self.key).map_err(|_| damaged("its key is not text"))?.to_owned();
        let value = self.value.ok_or_else(|| damaged("its value is not bytes"))?;
        let value = super::value::decode(value).map_err(|problem| damaged(&problem))?;
        let time = |micros: i64| from_micros(micros.unsigned_abs());
        Ok(Item {
            key,
            value,
            created_at: time(self.created),
            updated_at: time(self.updated),
            expires_at: self.expires.map(time),
            lifetime: self.ttl.map(|ttl| Duration::from_micros(ttl.unsigned_abs())),
            version: self.version.unsigned_abs(),
            namespace,
        })
    }
}

/// The error for a stored item that cannot be read.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn unreadable(namespace: &Namespace, key: &str, problem: impl std::fmt::Display) -> StoreError {
    let item = name_of(namespace, key);
    let problem = format!("{item} cannot be read: {problem}; store it again, delete it, or restore a backup");
    StoreError::new(StoreCode::ItemUnreadable, problem)
}
