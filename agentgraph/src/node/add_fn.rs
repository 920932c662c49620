//! [`Edits::add_fn`]: a function as a temporary node.

use std::sync::Arc;

use crate::context::edits::Edits;
use crate::node::IntoNode;
use crate::state::State;
use crate::words::{EditError, GraphEdit};

impl Edits {
    /// Adds a node that is a function or closure, or a [`Node`](crate::node::Node) with settings: everything
    /// that [`StateGraph::node`](crate::StateGraph::node) accepts, over the same state.
    ///
    /// # Errors
    /// If the name is taken or reserved, if the node needs a dependency or session that the graph does not
    /// have, and with [`Code::NeedsTemplate`](crate::Code::NeedsTemplate) in a graph with a checkpointer or
    /// a host. Always in a dependency graph: there, [`PassEdits`](crate::dependency::PassEdits) accepts
    /// functions.
    pub fn add_fn<S: State, M>(
        &self,
        name: impl AsRef<str>,
        node: impl IntoNode<S, M>,
    ) -> Result<(), EditError> {
        self.submit(GraphEdit::of_function(name), Some(Arc::new(node.into_node().into_any())))
    }
}
