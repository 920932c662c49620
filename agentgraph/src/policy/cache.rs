//! [`Cache`]: the cache policy of a node.

use std::sync::Arc;
use std::time::Duration;

use crate::record::codec::Codec;
use crate::state::StoredState;
use crate::typed::AnyState;
use agentgraph_checkpoint::shows;

/// The cache policy of a node.
#[derive(Clone)]
pub(crate) struct Cache {
    /// The key of a result, without the input of a dispatch.
    pub(crate) key: Arc<dyn Fn(&AnyState) -> String + Send + Sync>,
    pub(crate) lifetime: Duration,
    pub(crate) codec: Codec,
}

impl Cache {
    pub(crate) fn new<S: StoredState>(
        key: impl Fn(&S) -> String + Send + Sync + 'static,
        lifetime: Duration,
    ) -> Self {
        let key = move |state: &AnyState| key(state.shared::<S>());
        // The version does not matter: an entry with other fields cannot be decoded, and counts as a miss.
        Cache { key: Arc::new(key), lifetime, codec: Codec::of::<S>(0) }
    }
}

shows!(Cache: |it| { lifetime: it.lifetime });
