//! [`TypedNode`]: a node of a state type, as the engine calls it.

use std::any::{Any, TypeId, type_name};
use std::sync::Arc;

use super::{AnyState, AnyUpdate};
use crate::extract::Task;
#[cfg(feature = "testing")]
use crate::node::observed::Observer;
use crate::node::{ErasedNode, Node, NodeFuture};
use crate::state::State;
use crate::step::{Command, Step};

/// A node of a state type, as the engine calls it.
pub(crate) struct TypedNode<S: State>(pub(super) Arc<dyn ErasedNode<S>>);

impl<S: State> TypedNode<S> {
    pub(crate) fn new(node: Arc<dyn ErasedNode<S>>) -> Self {
        TypedNode(node)
    }
}

impl<S: State> Node<S> {
    /// The same node without its state type.
    pub(crate) fn into_any(self) -> Node<AnyState> {
        Node { call: Arc::new(TypedNode(self.call)), settings: self.settings }
    }
}

impl<S: State> ErasedNode<AnyState> for TypedNode<S> {
    fn call(&self, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
        self.0.call_any(&task.of_state::<S>())
    }

    fn state_type(&self) -> (TypeId, &'static str) {
        (TypeId::of::<S>(), type_name::<S>())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cfg(feature = "testing")]
    fn observed(&self, by: &Arc<dyn Observer>, path: &str) -> Option<Arc<dyn ErasedNode<AnyState>>> {
        Some(Arc::new(TypedNode(self.0.observed(by, path)?)))
    }
}

impl Task<'_, AnyState> {
    /// The same task for a node that knows the type of its state.
    #[inline]
    fn of_state<S: State>(&self) -> Task<'_, S> {
        let Task { state, shared, request, input, failure } = *self;
        Task { state: state.shared(), shared, request, input, failure }
    }
}

/// A step without its state type.
pub(crate) fn any_step<S: State>(step: Step<S>) -> Step<AnyState> {
    match step {
        Step::None => Step::None,
        Step::Update(update) => Step::Update(AnyUpdate::new::<S>(update)),
        Step::Command(command) => {
            let Command { update, targets, replaces_edges, parent, edits } = *command;
            let update = update.map(AnyUpdate::new::<S>);
            Step::Command(Box::new(Command { update, targets, replaces_edges, parent, edits }))
        }
    }
}
