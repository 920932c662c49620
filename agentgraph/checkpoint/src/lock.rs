//! [`Lock`]: a mutex whose content stays usable after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex without poisoning. No holder leaves its content half changed, so a panic while it was held, such
/// as that of a user's `Drop`, must not make every later call fail as well.
#[derive(Debug, Default)]
pub struct Lock<T: ?Sized>(Mutex<T>);

impl<T> Lock<T> {
    /// Makes it.
    pub const fn new(content: T) -> Self {
        Lock(Mutex::new(content))
    }
}

impl<T: ?Sized> Lock<T> {
    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
