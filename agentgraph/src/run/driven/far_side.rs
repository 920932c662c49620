//! [`FarSide`]: what a process that runs single tasks gives them.

use std::fmt;

use crate::context::ValuesByType;

/// What a process that runs single tasks gives them: contexts, which are made in each process.
#[derive(Default)]
pub struct FarSide {
    pub(in crate::run) context: Option<Box<ValuesByType>>,
}

impl FarSide {
    /// Nothing yet.
    pub fn new() -> Self {
        FarSide::default()
    }

    /// Adds a value that nodes take as a [`CallContext<T>`](crate::node::CallContext).
    #[must_use]
    pub fn context<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context.get_or_insert_default().insert(value);
        self
    }
}

impl fmt::Debug for FarSide {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FarSide").finish_non_exhaustive()
    }
}
