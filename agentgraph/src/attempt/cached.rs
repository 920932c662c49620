//! The cache entry of an attempt.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::context::TaskRequest;
use crate::erased::NodeResult;
use crate::error::BoxError;
use crate::extract::Task;
use crate::policy::Cache;
use crate::step::Step;
use crate::typed::{AnySchema, AnyState};
use agentgraph_checkpoint::store::{Namespace, StoreExt};
use agentgraph_checkpoint::{Store, StoreError};

/// The cache entry of an attempt, in the store of the graph.
pub(super) struct Entry<'a> {
    cache: &'a Cache,
    store: &'a Arc<dyn Store>,
    schema: &'a AnySchema,
    namespace: Namespace,
    key: String,
}

impl<'a> Entry<'a> {
    pub(super) fn of(cache: &'a Cache, task: &Task<'a, AnyState>) -> Result<Self, BoxError> {
        let TaskRequest { node, .. } = task.request;
        let input = task.input.map(|input| input.encode()).transpose()?;
        let key = (cache.key)(task.state);
        let mut hash = Sha256::new();
        // The length separates the key from the input.
        hash.update(key.len().to_le_bytes());
        hash.update(key);
        hash.update(input.unwrap_or_default());
        Ok(Entry {
            cache,
            store: task.shared.store()?,
            schema: &task.shared.graph.schema,
            namespace: Namespace::new(["node-cache", &task.shared.name_of(node)])?,
            key: hex(&hash.finalize()),
        })
    }

    /// Returns the cached step. A failing store counts as a miss.
    pub(super) async fn find(&self) -> Option<Step<AnyState>> {
        // By default a read extends the lifetime of an item.
        let found = self.store.get(&self.namespace, &self.key).refresh(false).await;
        let item = found.unwrap_or_else(|error| self.without_store(&error))?;
        let Value::String(update) = &item.value else { return None };
        if update.is_empty() {
            return Some(Step::None);
        }
        let update = (self.cache.codec.decode_update)(self.schema, &from_hex(update)?).ok()?;
        Some(Step::Update(update))
    }

    /// Stores the result of a successful attempt.
    pub(super) async fn keep(&self, result: &NodeResult<AnyState>) {
        let update = match result {
            Ok(Step::None) => String::new(),
            Ok(Step::Update(update)) => match (self.cache.codec.encode_update)(self.schema, update) {
                Ok(bytes) => hex(&bytes),
                Err(error) => {
                    tracing::warn!(target: "agentgraph", node = self.node(), %error, "an update cannot be cached");
                    return;
                }
            },
            Ok(Step::Command(_)) | Err(_) => return,
        };
        let put = self.store.put(&self.namespace, &*self.key, update).unindexed();
        if let Err(error) = put.lifetime(self.cache.lifetime).await {
            self.without_store(&error)
        }
    }

    fn without_store<T: Default>(&self, error: &StoreError) -> T {
        let node = self.node();
        tracing::warn!(target: "agentgraph", node, %error, "the store of a node's cache failed: the node runs without it");
        T::default()
    }

    fn node(&self) -> &str {
        self.namespace.segments().last().map_or("", String::as_str)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(std::str::from_utf8);
    pairs.map(|pair| u8::from_str_radix(pair.ok()?, 16).ok()).collect()
}
