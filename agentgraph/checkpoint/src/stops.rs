//! The listeners of requests to stop, as a store keeps them.

use std::sync::{Arc, Weak};

use crate::lease::HearsStops;
use crate::lock::Lock;

/// The listeners of one store in this process.
#[derive(Clone, Default)]
pub(crate) struct StopListeners(Arc<Lock<Vec<Weak<dyn HearsStops>>>>);

impl StopListeners {
    pub(crate) fn add(&self, listener: Weak<dyn HearsStops>) {
        let mut listeners = self.0.lock();
        listeners.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&listener));
        listeners.push(listener);
    }

    /// Tells all listeners. None is called under the lock, since it may make calls of its own.
    pub(crate) fn tell(&self, thread: &str, fence: u64) {
        let listeners: Vec<Arc<dyn HearsStops>> = {
            let listeners = self.0.lock();
            listeners.iter().filter_map(Weak::upgrade).collect()
        };
        listeners.iter().for_each(|listener| listener.asked_to_stop(thread, fence));
    }
}

impl std::fmt::Debug for StopListeners {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let listeners = self.0.lock();
        out.debug_tuple("StopListeners").field(&listeners.len()).finish()
    }
}
