//! [`FarSide`]: what the process of a host gives to the tasks that it runs.

use std::fmt;

use crate::context::ValuesByType;

/// What a process gives to a task that it runs for a host: see
/// [`CompiledGraph::run_task`](crate::CompiledGraph::run_task), whose future has the same methods.
#[derive(Default)]
#[must_use]
pub struct FarSide {
    /// The values that nodes take as contexts of the call.
    pub(crate) context: Option<Box<ValuesByType>>,
}

impl FarSide {
    /// Nothing: enough for nodes that take neither contexts nor durable steps.
    pub fn new() -> Self {
        FarSide::default()
    }

    /// A value for nodes that take a [`CallContext<T>`](crate::node::CallContext).
    pub fn context<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context.get_or_insert_default().insert(value);
        self
    }
}

impl fmt::Debug for FarSide {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FarSide").field("context", &self.context.is_some()).finish_non_exhaustive()
    }
}
