//! [`TypedNode`]: a node of a state type, as the engine calls it.

use std::any::{Any, TypeId, type_name};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{AnyState, AnyUpdate};
#[cfg(feature = "testing")]
use crate::erased::observed::Observer;
use crate::erased::{AnyNode, ErasedNode, NodeFuture, Started, polled_by_engine};
use crate::extract::Task;
use crate::state::State;
use crate::step::{Step, any_step};

/// A node of a state type, as the engine calls it.
pub(crate) struct TypedNode<S: State>(Arc<dyn ErasedNode<S>>);

impl<S: State> TypedNode<S> {
    pub(crate) fn new(node: Arc<dyn ErasedNode<S>>) -> Self {
        TypedNode(node)
    }

    pub(super) fn node(&self) -> &Arc<dyn ErasedNode<S>> {
        &self.0
    }
}

impl<S: State> AnyNode for TypedNode<S> {
    fn call(&self, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
        polled_by_engine(self.0.call(&task.of_state::<S>()))
    }

    fn start(&self, task: &Task<'_, AnyState>, cx: &mut Context<'_>) -> Started {
        let mut call = match self.0.call(&task.of_state::<S>()) {
            Ok(call) => call,
            Err(refused) => return Started::Ended(Err(refused)),
        };
        match call.as_mut().poll_step(cx) {
            Poll::Pending => Started::Pending(call),
            Poll::Ready(Ok(Step::Update(update))) => {
                call.as_mut().hold(update);
                Started::Ended(Ok(Step::Update(AnyUpdate::held(call))))
            }
            Poll::Ready(other) => Started::Ended(other.map(any_step)),
        }
    }

    fn state_type(&self) -> (TypeId, &'static str) {
        (TypeId::of::<S>(), type_name::<S>())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cfg(feature = "testing")]
    fn observed(&self, by: &Arc<dyn Observer>, path: &str) -> Option<Arc<dyn AnyNode>> {
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
