//! [`Cache`]: how a node's updates are kept to be used again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::record::codec::Codec;
use crate::state::StoredState;
use crate::typed::AnyState;

/// How the updates of a node are kept to be used again.
#[derive(Clone)]
pub(crate) struct Cache {
    /// What a result depends on, beside the input of a dispatch.
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
        // An entry of another version of the state has other fields, which cannot be read: it is no entry.
        Cache { key: Arc::new(key), lifetime, codec: Codec::of::<S>(0) }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cache").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}
