//! The source of randomness. It is injected, so that tests can use one that fails. Users cannot replace it,
//! since a source that repeats itself would reveal everything.

use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};

use crate::error::{StoreCode, StoreError};

/// An unpredictable source of randomness.
#[derive(Clone)]
pub(crate) struct Random(Arc<Fill>);

/// Returns whether it succeeded.
type Fill = dyn Fn(&mut [u8]) -> bool + Send + Sync;

impl Random {
    pub(crate) fn of_the_system() -> Self {
        let system = SystemRandom::new();
        Random(Arc::new(move |bytes| system.fill(bytes).is_ok()))
    }

    #[cfg(test)]
    pub(crate) fn of(fill: impl Fn(&mut [u8]) -> bool + Send + Sync + 'static) -> Self {
        Random(Arc::new(fill))
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`StoreCode::Store`] if the source fails, since nothing can be stored then.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> Result<(), StoreError> {
        if (self.0)(bytes) {
            Ok(())
        } else {
            let problem = "the system provides no randomness, which encryption needs: nothing was stored";
            Err(StoreError::new(StoreCode::Store, problem))
        }
    }
}
