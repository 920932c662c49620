//! A node as the engine calls it, of its state type and without one.

mod call;
pub(crate) mod layer;
#[cfg(feature = "testing")]
pub(crate) mod observed;

use std::any::{Any, TypeId};
use std::future::{Future, ready};
use std::pin::Pin;
#[cfg(feature = "testing")]
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) use self::call::{Call, FnCall};
#[cfg(feature = "testing")]
use self::observed::Observer;
use crate::error::BoxError;
use crate::extract::Task;
use crate::state::State;
use crate::step::Step;
use crate::typed::AnyState;

/// The result of one call of a node.
pub(crate) type NodeResult<S> = Result<Step<S>, BoxError>;

/// A boxed future with the result of a call.
pub(crate) type NodeFuture<S> = Pin<Box<dyn Future<Output = NodeResult<S>> + Send>>;

/// A node of any type, ready to be called.
pub(crate) trait ErasedNode<S: State>: Send + Sync + 'static {
    /// Calls the node, without polling it. An error ends the call: an argument could not be made.
    fn call(&self, task: &Task<'_, S>) -> Result<Call<S>, BoxError>;

    /// The same node with observed nodes inside, if it is a graph.
    #[cfg(feature = "testing")]
    fn observed(&self, by: &Arc<dyn Observer>, path: &str) -> Option<Arc<dyn ErasedNode<S>>> {
        let _ = (by, path);
        None
    }
}

/// A call as the engine polls it.
pub(crate) fn polled_by_engine<S: State>(called: Result<Call<S>, BoxError>) -> NodeFuture<AnyState> {
    match called {
        Ok(call) => call,
        Err(refused) => Box::pin(ready(Err(refused))),
    }
}

/// A node as the engine calls it: without the type of its state.
pub(crate) trait AnyNode: Send + Sync + 'static {
    fn call(&self, task: &Task<'_, AnyState>) -> NodeFuture<AnyState>;

    /// Calls the node and polls it once.
    fn start(&self, task: &Task<'_, AnyState>, cx: &mut Context<'_>) -> Started {
        Started::poll(self.call(task), cx)
    }

    /// The state that the node was written for, and its name.
    fn state_type(&self) -> (TypeId, &'static str);

    /// The node, for a look at its type.
    fn as_any(&self) -> &dyn Any;

    /// The same node with observed nodes inside, if it is a graph.
    #[cfg(feature = "testing")]
    fn observed(&self, by: &Arc<dyn Observer>, path: &str) -> Option<Arc<dyn AnyNode>> {
        let _ = (by, path);
        None
    }
}

/// A task after its first poll.
pub(crate) enum Started {
    /// It was ready. Its future is gone: one that holds the snapshot would make the merge clone the state.
    Ended(NodeResult<AnyState>),
    Pending(NodeFuture<AnyState>),
}

impl Started {
    pub(crate) fn poll(mut future: NodeFuture<AnyState>, cx: &mut Context<'_>) -> Self {
        match future.as_mut().poll(cx) {
            Poll::Ready(result) => Started::Ended(result),
            Poll::Pending => Started::Pending(future),
        }
    }
}
