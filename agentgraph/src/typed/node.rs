//! [`TypedNode`]: a node of a state type, as the engine calls it.

use std::any::{Any, TypeId, type_name};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

use super::{AnyState, AnyUpdate};
#[cfg(feature = "testing")]
use crate::erased::observed::Observer;
use crate::erased::{AnyNode, ErasedNode, NodeFuture, NodeResult, Started};
use crate::extract::Task;
use crate::state::State;
use crate::step::{IntoStep, Step, any_step};
use crate::typed::state::HeldUpdate;

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
        self.0.call_any(&task.of_state::<S>())
    }

    fn start(&self, task: &Task<'_, AnyState>, cx: &mut Context<'_>) -> Started {
        self.0.start(&task.of_state::<S>(), cx)
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

pin_project! {
    /// The call of a user's function, as the engine polls it. If the function is ready at once, its update
    /// stays in the box of the call, so that a task allocates once.
    pub(crate) struct AnyCall<F, S: State> {
        // The box becomes an update, which is shared between threads; the future never is.
        #[pin]
        function: Option<SyncWrapper<F>>,
        update: Option<S::Update>,
    }
}

impl<S, F> AnyCall<F, S>
where
    S: State,
    F: Future + Send + 'static,
    F::Output: IntoStep<S>,
{
    pub(crate) fn of(function: F) -> Self {
        AnyCall { function: Some(SyncWrapper::new(function)), update: None }
    }

    /// Polls the function once.
    pub(crate) fn start(function: F, cx: &mut Context<'_>) -> Started {
        let mut call = Box::pin(Self::of(function));
        let Poll::Ready(result) = call.as_mut().poll_step(cx) else { return Started::Pending(call) };
        let mut parts = call.as_mut().project();
        parts.function.set(None);
        Started::Ended(match result {
            Ok(Step::Update(update)) => {
                *parts.update = Some(update);
                Ok(Step::Update(AnyUpdate::held(call)))
            }
            other => other.map(any_step),
        })
    }

    fn poll_step(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<S>> {
        match self.project().function.as_pin_mut() {
            Some(function) => function.get_pin_mut().poll(cx).map(IntoStep::into_step),
            // It has ended; a future is not polled after its end.
            None => Poll::Pending,
        }
    }
}

impl<S, F> Future for AnyCall<F, S>
where
    S: State,
    F: Future + Send + 'static,
    F::Output: IntoStep<S>,
{
    type Output = NodeResult<AnyState>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<AnyState>> {
        self.poll_step(cx).map(|result| result.map(any_step))
    }
}

impl<S: State, F: Send + 'static> HeldUpdate for AnyCall<F, S> {
    fn copy(&self) -> Pin<Box<dyn HeldUpdate>> {
        AnyUpdate::boxed(self.update.clone())
    }

    fn seen(&self) -> &dyn Any {
        &self.update
    }

    fn seen_mut(self: Pin<&mut Self>) -> &mut dyn Any {
        self.project().update
    }
}
