//! [`Called`]: a call of a node, and [`FnCall`], that of a function.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

use super::NodeResult;
use crate::state::State;
use crate::step::{IntoStep, any_step};
use crate::typed::{AnyState, HeldUpdate, UpdateSlot, other_type};

/// A boxed call: the one allocation of a step.
pub(crate) type Call<S> = Pin<Box<dyn Called<S>>>;

/// A call of a node. The engine polls it as a future, the shell with the type of its update. All that is
/// compiled for each function of a user is this and [`ErasedNode::call`](super::ErasedNode::call).
pub(crate) trait Called<S: State>: HeldUpdate + Future<Output = NodeResult<AnyState>> {
    fn poll_step(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<S>>;

    /// Drops the function, which has ended, and keeps its update in the box, so that a task allocates once.
    fn hold(self: Pin<&mut Self>, update: S::Update);
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
