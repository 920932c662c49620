//! [`Usage`]: how many of something each caller has at a time in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::access::Caller;

#[derive(Debug, Default)]
pub(crate) struct Usage(Mutex<HashMap<Caller, usize>>);

/// One of them; it is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    usage: Arc<Usage>,
    caller: Caller,
}

impl Usage {
    /// Takes one more. `None` if the caller has as many as it may.
    pub(crate) fn take(self: &Arc<Self>, caller: &Caller, limit: usize) -> Option<Permit> {
        let mut taken = lock(&self.0);
        let count = taken.entry(caller.clone()).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Permit { usage: Arc::clone(self), caller: caller.clone() })
    }

    /// How many all callers have.
    pub(crate) fn total(&self) -> usize {
        lock(&self.0).values().sum()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = lock(&self.usage.0);
        if let Some(count) = taken.get_mut(&self.caller) {
            *count -= 1;
            // Callers that have left cost nothing.
            if *count == 0 {
                taken.remove(&self.caller);
            }
        }
    }
}
