//! Where chance comes from. It is given in, so that a source that fails can be tried; it is not open to
//! users, since one that repeats itself gives everything away.

use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};

use crate::error::{StoreCode, StoreError};

/// A source of randomness that nobody can foretell.
#[derive(Clone)]
pub(super) struct Random(Arc<Fill>);

/// Whether it could.
type Fill = dyn Fn(&mut [u8]) -> bool + Send + Sync;

impl Random {
    pub(super) fn of_the_system() -> Self {
        let system = SystemRandom::new();
        Random(Arc::new(move |bytes| system.fill(bytes).is_ok()))
    }

    #[cfg(test)]
    pub(super) fn of(fill: impl Fn(&mut [u8]) -> bool + Send + Sync + 'static) -> Self {
        Random(Arc::new(fill))
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`StoreCode::Store`], since nothing can be stored then.
    pub(super) fn fill(&self, bytes: &mut [u8]) -> Result<(), StoreError> {
        match (self.0)(bytes) {
            true => Ok(()),
            false => {
                let problem = "the system gives no randomness, and nothing can be encrypted without: nothing was stored";
                Err(StoreError::new(StoreCode::Store, problem))
            }
        }
    }
}
