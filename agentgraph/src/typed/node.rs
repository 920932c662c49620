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
use crate::erased::{AnyNode, Call, Called, ErasedNode, NodeFuture, NodeResult, Started, polled_by_engine};
use crate::extract::Task;
use crate::state::State;
use crate::step::{IntoStep, Step, any_step};
use crate::typed::state::{HeldUpdate, UpdateSlot, other_type};

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

pin_project! {
    /// The call of a user's function. Its box holds the function's future, then its update.
    #[project = FnCallParts]
    pub(crate) enum FnCall<F, S: State> {
        // The box becomes an update, which is shared between threads; the future never is.
        Function { #[pin] function: SyncWrapper<F> },
        Ended { update: Option<S::Update> },
    }
}

impl<S, F> FnCall<F, S>
where
    S: State,
    F: Future<Output: IntoStep<S>> + Send + 'static,
{
    #[inline]
    pub(crate) fn boxed(function: F) -> Call<S> {
        Box::pin(FnCall::Function { function: SyncWrapper::new(function) })
    }
}

impl<S, F> Called<S> for FnCall<F, S>
where
    S: State,
    F: Future<Output: IntoStep<S>> + Send + 'static,
{
    fn poll_step(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<S>> {
        match self.project() {
            FnCallParts::Function { function } => function.get_pin_mut().poll(cx).map(IntoStep::into_step),
            // A future is not polled after its end.
            FnCallParts::Ended { .. } => Poll::Pending,
        }
    }

    fn hold(mut self: Pin<&mut Self>, update: S::Update) {
        self.set(FnCall::Ended { update: Some(update) });
    }
}

impl<S, F> Future for FnCall<F, S>
where
    S: State,
    F: Future<Output: IntoStep<S>> + Send + 'static,
{
    type Output = NodeResult<AnyState>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<AnyState>> {
        self.poll_step(cx).map(|result| result.map(any_step))
    }
}

impl<S: State, F: Send + 'static> HeldUpdate for FnCall<F, S> {
    fn slot(&self) -> &dyn UpdateSlot {
        match self {
            FnCall::Ended { update } => update,
            FnCall::Function { .. } => other_type(),
        }
    }

    fn slot_mut(self: Pin<&mut Self>) -> &mut dyn UpdateSlot {
        match self.project() {
            FnCallParts::Ended { update } => update,
            FnCallParts::Function { .. } => other_type(),
        }
    }
}
