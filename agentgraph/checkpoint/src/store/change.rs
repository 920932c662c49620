//! [`Change`]: a put or a delete of one item, with its condition.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::item::name_of;
use super::namespace::{Namespace, check_key};
use super::value;
use crate::error::{StoreCode, StoreError};

/// A put or a delete of one item. [`Store::change`](crate::Store::change) applies many, all or none.
///
/// ```
/// use agentgraph_checkpoint::{Change, MemoryStore, Namespace, Store, StoreExt};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemoryStore::new();
/// let (inbox, done) = (Namespace::new(["inbox"])?, Namespace::new(["done"])?);
/// let task = store.put(&inbox, "t-1", json!("call Ada")).await?;
///
/// // Moves it, unless another agent was faster.
/// let moves = vec![
///     Change::delete(&inbox, "t-1").if_version(task),
///     Change::put(&done, "t-1", json!("call Ada")).if_absent(),
/// ];
/// store.change(moves).await?;
/// assert!(store.get(&inbox, "t-1").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// Where the item is.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What must be there for the change to be made.
    pub condition: Condition,
    /// What to do.
    pub write: Write,
}

/// What must be at the place of a [`Change`]. An item that has ended is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// Anything or nothing.
    #[default]
    Any,
    /// No item.
    Absent,
    /// The item with this [version](crate::Item::version).
    Version(u64),
}

/// What a [`Change`] does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Write {
    /// Stores a value, in the place of an earlier one.
    Put(NewItem),
    /// Removes the item, if there is one.
    Delete,
}

/// What a put stores.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewItem {
    /// The value.
    pub value: Value,
    /// How long it lasts.
    pub lifetime: Lifetime,
    /// Which texts of it a search by text compares.
    pub indexing: Indexing,
    /// When the key was first stored, if that is not now: for copies. Not used if the store has the item.
    pub created_at: Option<SystemTime>,
}

/// How long an item lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifetime {
    /// As the store's default says; without one, forever.
    #[default]
    Default,
    /// Forever.
    Forever,
    /// For this time after it was stored. A read with `refresh` starts the time anew.
    For(Duration),
    /// For this time, which now ends at this moment: for copies.
    Until(Duration, SystemTime),
}

/// Which texts of a value a search by text compares. Without an [`Embedder`](crate::Embedder) there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indexing {
    /// As the store's [`VectorIndex`](crate::VectorIndex) says.
    #[default]
    Default,
    /// None: a search by text does not find the item.
    Off,
    /// The texts at these paths.
    Fields(Vec<String>),
}

impl Change {
    /// Stores `value`.
    pub fn put(namespace: &Namespace, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let new = NewItem {
            value: value.into(),
            lifetime: Lifetime::default(),
            indexing: Indexing::default(),
            created_at: None,
        };
        Change::new(namespace, key, Write::Put(new))
    }

    /// Removes the item, if there is one.
    pub fn delete(namespace: &Namespace, key: impl Into<String>) -> Self {
        Change::new(namespace, key, Write::Delete)
    }

    fn new(namespace: &Namespace, key: impl Into<String>, write: Write) -> Self {
        Change { namespace: namespace.clone(), key: key.into(), condition: Condition::Any, write }
    }

    /// Only if there is no item.
    #[must_use]
    pub fn if_absent(mut self) -> Self {
        self.condition = Condition::Absent;
        self
    }

    /// Only if the item has this version.
    #[must_use]
    pub fn if_version(mut self, version: u64) -> Self {
        self.condition = Condition::Version(version);
        self
    }

    /// How long the item lasts; no effect on a delete.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        if let Write::Put(new) = &mut self.write {
            new.lifetime = lifetime;
        }
        self
    }

    /// Which texts of the value a search by text compares; no effect on a delete.
    #[must_use]
    pub fn indexing(mut self, indexing: Indexing) -> Self {
        if let Write::Put(new) = &mut self.write {
            new.indexing = indexing;
        }
        self
    }

    /// When the key was first stored, for a copy; no effect on a delete, nor if the store has the item.
    #[must_use]
    pub fn created_at(mut self, time: SystemTime) -> Self {
        if let Write::Put(new) = &mut self.write {
            new.created_at = Some(time);
        }
        self
    }

    /// Fails unless it can be stored.
    ///
    /// # Errors
    /// [`StoreCode::ItemName`] for the key, [`StoreCode::ItemValue`] for the value.
    pub fn check(&self) -> Result<(), StoreError> {
        check_key(&self.key)?;
        match &self.write {
            Write::Put(new) => value::check_depth(&new.value),
            Write::Delete => Ok(()),
        }
    }

    /// Fails unless its condition holds for the item that is there.
    ///
    /// # Errors
    /// [`StoreCode::ItemConflict`].
    pub fn check_condition(&self, found: Option<u64>) -> Result<(), StoreError> {
        let holds = match self.condition {
            Condition::Any => true,
            Condition::Absent => found.is_none(),
            Condition::Version(version) => found == Some(version),
        };
        if holds { Ok(()) } else { Err(self.conflict(found)) }
    }

    fn conflict(&self, found: Option<u64>) -> StoreError {
        let item = name_of(&self.namespace, &self.key);
        let found = match found {
            Some(version) => format!("has version {version}"),
            None => "is not there".to_owned(),
        };
        let wanted = match self.condition {
            Condition::Version(version) => format!("version {version}"),
            Condition::Any | Condition::Absent => "no item".to_owned(),
        };
        let problem = format!(
            "{item} {found}, and the change requires {wanted}: nothing was changed; read the item and decide again"
        );
        StoreError::new(StoreCode::ItemConflict, problem)
    }
}
