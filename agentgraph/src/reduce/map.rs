//! [`Merge`]: a map whose entries are replaced one by one.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reducer, StoredReducer};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

/// `#[reduce(merge)]` on a map: the entries of a write replace those with the same key. Only the written
/// entries are stored.
#[derive(Debug)]
pub struct Merge;

/// The maps supported by [`Merge`].
pub trait MapState: Clone {
    /// The key.
    type Key: Clone + Send + Sync + 'static;
    /// The value.
    type Value: Clone + Send + Sync + 'static;
    /// Inserts an entry and returns the value it replaces.
    fn put(&mut self, key: Self::Key, value: Self::Value) -> Option<Self::Value>;
    /// The value of a key.
    fn value(&self, key: &Self::Key) -> Option<&Self::Value>;
    /// Every entry.
    fn all(&self) -> impl Iterator<Item = (&Self::Key, &Self::Value)>;
}

impl<K, V, H> MapState for HashMap<K, V, H>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    H: BuildHasher + Clone,
{
    type Key = K;
    type Value = V;
    fn put(&mut self, key: K, value: V) -> Option<V> {
        self.insert(key, value)
    }
    fn value(&self, key: &K) -> Option<&V> {
        self.get(key)
    }
    fn all(&self) -> impl Iterator<Item = (&K, &V)> {
        self.iter()
    }
}

impl<K, V> MapState for BTreeMap<K, V>
where
    K: Clone + Ord + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    type Key = K;
    type Value = V;
    fn put(&mut self, key: K, value: V) -> Option<V> {
        self.insert(key, value)
    }
    fn value(&self, key: &K) -> Option<&V> {
        self.get(key)
    }
    fn all(&self) -> impl Iterator<Item = (&K, &V)> {
        self.iter()
    }
}

impl<M: MapState> Reducer<M> for Merge {
    type Write = Vec<(M::Key, M::Value)>;
    const KIND: &'static str = "merge";

    fn reduce(value: &mut M, write: Self::Write) {
        for (key, entry) in write {
            value.put(key, entry);
        }
    }

    fn combine(write: &mut Self::Write, mut later: Self::Write) {
        write.append(&mut later);
    }
}

impl<M> StoredReducer<M> for Merge
where
    M: MapState<Key: Serialize + DeserializeOwned, Value: Serialize + DeserializeOwned> + Serialize,
{
    fn reduce_recorded(
        value: &mut M,
        write: Self::Write,
        delta: &mut DeltaWriter,
    ) -> Result<(), EncodeError> {
        for (key, entry) in write {
            delta.entry(&key, &entry, value.value(&key))?;
            value.put(key, entry);
        }
        Ok(())
    }

    fn record(value: &M, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        delta.entries(value.all())
    }
}
