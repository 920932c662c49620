//! Sources of message ids.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// A source of message ids.
///
/// The default gives ids that are unique across processes, because messages of several processes can be in
/// one stored thread. A [`sequence`](MessageIds::sequence) gives the same ids in each run, for tests.
///
/// ```
/// use agentgraph_llm::MessageIds;
///
/// let ids = MessageIds::sequence("m");
/// assert_eq!(ids.next_id(), "m-1");
/// assert_eq!(ids.clone().next_id(), "m-2");               // clones share the count
/// assert_ne!(MessageIds::default().next_id(), MessageIds::default().next_id());
/// ```
#[derive(Clone)]
pub struct MessageIds(Arc<dyn Fn() -> String + Send + Sync>);

impl MessageIds {
    /// Ids from a function.
    pub fn from_fn(next: impl Fn() -> String + Send + Sync + 'static) -> Self {
        MessageIds(Arc::new(next))
    }

    /// The ids `<prefix>-1`, `<prefix>-2`, ...
    pub fn sequence(prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        let count = AtomicU64::new(0);
        MessageIds::from_fn(move || format!("{prefix}-{}", count.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// The next id.
    pub fn next_id(&self) -> String {
        (self.0)()
    }
}

impl Default for MessageIds {
    fn default() -> Self {
        static PROCESS: LazyLock<MessageIds> = LazyLock::new(|| {
            MessageIds::sequence(format!("msg-{:016x}{:016x}", random_bits(), random_bits()))
        });
        PROCESS.clone()
    }
}

impl fmt::Debug for MessageIds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("MessageIds")
    }
}

/// Random bits without another dependency: the standard library seeds its hasher from the system.
fn random_bits() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}
