//! Tower layers around nodes.
//!
//! A node is a [`Service`] of [`NodeCall`]s, so every layer of the tower ecosystem fits:
//! `search.layer(TimeoutLayer::new(Duration::from_secs(2)))`.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_service::Service;

use crate::context::{RunShared, TaskRequest};
use crate::erased::{Call, ErasedNode, FnCall, NodeFuture};
use crate::error::BoxError;
use crate::extract::Task;
use crate::failure::Failure;
use crate::state::State;
use crate::step::{InputValue, Step};

/// The request of a node's service: one task. Clone it to call the inner service again.
pub struct NodeCall<S: State> {
    state: Arc<S>,
    shared: Arc<RunShared>,
    request: TaskRequest,
    input: Option<InputValue>,
    failure: Option<Arc<Failure>>,
}

impl<S: State> NodeCall<S> {
    pub(crate) fn of(task: &Task<'_, S>) -> Self {
        NodeCall {
            state: Arc::clone(task.state),
            shared: Arc::clone(task.shared),
            request: task.request,
            input: task.input.cloned(),
            failure: task.failure.cloned(),
        }
    }

    /// The task, for extractors.
    pub fn task(&self) -> Task<'_, S> {
        Task {
            state: &self.state,
            shared: &self.shared,
            request: self.request,
            input: self.input.as_ref(),
            failure: self.failure.as_ref(),
        }
    }
}

impl<S: State> Clone for NodeCall<S> {
    fn clone(&self) -> Self {
        NodeCall::of(&self.task())
    }
}

/// The innermost service: the node itself. Always ready.
pub struct NodeService<S: State>(Arc<dyn ErasedNode<S>>);

impl<S: State> NodeService<S> {
    pub(crate) fn new(node: Arc<dyn ErasedNode<S>>) -> Self {
        NodeService(node)
    }
}

impl<S: State> Clone for NodeService<S> {
    fn clone(&self) -> Self {
        NodeService(Arc::clone(&self.0))
    }
}

impl<S: State> Service<NodeCall<S>> for NodeService<S> {
    type Response = Step<S>;
    type Error = BoxError;
    type Future = NodeFuture<S>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: NodeCall<S>) -> NodeFuture<S> {
        match self.0.call(&call.task()) {
            Ok(mut called) => Box::pin(poll_fn(move |cx| called.as_mut().poll_step(cx))),
            Err(refused) => Box::pin(ready(Err(refused))),
        }
    }
}

/// A service as a node again. Every task gets its own clone, since a service is called through `&mut`.
pub(crate) struct LayeredNode<V>(V);

impl<V> LayeredNode<V> {
    pub(crate) fn new(service: V) -> Self {
        LayeredNode(service)
    }
}

impl<S, V> ErasedNode<S> for LayeredNode<V>
where
    S: State,
    V: Service<NodeCall<S>, Response = Step<S>> + Clone + Send + Sync + 'static,
    V::Error: Into<BoxError>,
    V::Future: Send + 'static,
{
    fn call(&self, task: &Task<'_, S>) -> Result<Call<S>, BoxError> {
        let mut service = self.0.clone();
        let call = NodeCall::of(task);
        Ok(FnCall::boxed(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(call).await.map_err(Into::into)
        }))
    }
}
