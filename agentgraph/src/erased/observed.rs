//! Observed nodes: a copy of a node whose calls a test may hold, fail and watch.
//!
//! A graph has observed nodes only if a test has made a copy of it, so no other run pays for them. A node
//! inside its policies is observed: each attempt is a call.

use std::any::{Any, TypeId};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::context::{TaskOrigin, TaskRequest};
use crate::erased::layer::NodeCall;
use crate::erased::{AnyNode, NodeFuture, NodeResult};
use crate::error::BoxError;
use crate::extract::Task;
use crate::record::content::Content;
use crate::step::Step;
use crate::typed::AnyState;

/// Watches the nodes and routes of a graph, and of its subgraphs.
pub(crate) trait Observer: Send + Sync {
    /// The node that replaces the one with this path, as an `Arc<dyn AnyNode>`.
    fn replacement(&self, path: &str) -> Option<&(dyn Any + Send + Sync)>;

    /// The replacement is a node over another state than `state`.
    fn unfit(&self, path: &str, state: &'static str);

    /// A node is called.
    fn called(&self, task: ObservedTask) -> Box<dyn ObservedCall>;

    /// A route behind this node decides. `decide` returns the decision as text, and may be called again;
    /// `later` returns it too, at any time.
    fn decides(&self, path: &str, decide: &mut dyn FnMut() -> String, later: DecideLater);
}

/// A decision of a route on the state that it had, as another process reads it.
pub(crate) type DecideLater = Box<dyn Fn() -> String + Send + Sync>;

/// One call of an observed node.
pub(crate) trait ObservedCall: Send {
    /// Polls the node by `poll`, which returns how the call has ended, or does not poll it yet. An error ends
    /// the call instead of the node.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        poll: &mut dyn FnMut(&mut Context<'_>) -> Option<ObservedEnd>,
    ) -> Poll<Result<(), BoxError>>;

    /// The call is done, with this output.
    fn done(&self, output: Content);
}

/// The output of a node, to be compared with that of the same node in another run.
pub(crate) type ShowStep = Arc<dyn Fn(&Step<AnyState>) -> Content + Send + Sync>;

/// The origins of a task and of the tasks around it. Equal in two runs of a graph with supersteps if the
/// tasks are.
pub(crate) type TaskKey = Vec<(u32, TaskOrigin)>;

/// The task of a call.
pub(crate) struct ObservedTask {
    /// The names of the graphs around the node, and its own, separated by `/`.
    pub(crate) path: Arc<str>,
    pub(crate) request: TaskRequest,
    /// `None` in a graph without supersteps, and inside one.
    pub(crate) key: Option<TaskKey>,
    /// Whether the node is a graph, whose nodes are observed themselves.
    pub(crate) is_graph: bool,
}

/// How a call of a node has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObservedEnd {
    Done,
    Failed,
    /// It asks, sleeps, or is a graph in which a node does.
    Waits,
}

/// The path of a node in the graph with the path `around`.
pub(crate) fn path_in(around: &str, node: &str) -> Arc<str> {
    if around.is_empty() { Arc::from(node) } else { format!("{around}/{node}").into() }
}

fn key_of(task: &Task<'_, AnyState>) -> Option<TaskKey> {
    let mut key = vec![(task.request.node, task.request.origin)];
    let mut run = &**task.shared;
    loop {
        if !run.control.has_supersteps() {
            return None;
        }
        let Some(outer) = &run.outer else { return Some(key) };
        key.push((outer.request.node, outer.request.origin));
        run = &outer.shared;
    }
}

/// A node under observation.
pub(crate) struct ObservedNode {
    node: Arc<dyn AnyNode>,
    show: ShowStep,
    around: Arc<str>,
    is_graph: bool,
    by: Arc<dyn Observer>,
}

impl ObservedNode {
    /// Observes a node of the graph with the path `around`, or its replacement.
    pub(crate) fn new(
        node: &Arc<dyn AnyNode>,
        around: &str,
        name: &str,
        by: &Arc<dyn Observer>,
        show: &ShowStep,
    ) -> Self {
        let path = path_in(around, name);
        let replacement = by.replacement(&path).and_then(|other| {
            let other = other.downcast_ref::<Arc<dyn AnyNode>>();
            let other = other.filter(|other| other.state_type() == node.state_type());
            if other.is_none() {
                by.unfit(&path, node.state_type().1);
            }
            other
        });
        let node = replacement.unwrap_or(node);
        let graph = node.observed(by, &path);
        let is_graph = graph.is_some();
        let node = graph.unwrap_or_else(|| Arc::clone(node));
        ObservedNode { node, show: Arc::clone(show), around: Arc::from(around), is_graph, by: Arc::clone(by) }
    }
}

impl AnyNode for ObservedNode {
    fn call(&self, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
        let path = path_in(&self.around, task.ctx().node());
        let (request, key, is_graph) = (task.request, key_of(task), self.is_graph);
        Box::pin(ObservedFuture {
            observed: self.by.called(ObservedTask { path, request, key, is_graph }),
            node: Arc::clone(&self.node),
            show: Arc::clone(&self.show),
            call: NodeCall::of(task),
            running: None,
        })
    }

    fn state_type(&self) -> (TypeId, &'static str) {
        self.node.state_type()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The future of an observed call. The node is called at its first poll, which may come late.
struct ObservedFuture {
    observed: Box<dyn ObservedCall>,
    node: Arc<dyn AnyNode>,
    show: ShowStep,
    call: NodeCall<AnyState>,
    running: Option<NodeFuture<AnyState>>,
}

impl Future for ObservedFuture {
    type Output = NodeResult<AnyState>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<AnyState>> {
        let ObservedFuture { observed, node, show, call, running } = self.get_mut();
        let mut result = None;
        let polled = observed.poll(cx, &mut |cx| {
            let future = running.get_or_insert_with(|| node.call(&call.task()));
            let Poll::Ready(ended) = future.as_mut().poll(cx) else { return None };
            let task = call.task();
            let end = match &ended {
                _ if task.shared.control.is_closed(task.request.index) => ObservedEnd::Waits,
                Ok(_) => ObservedEnd::Done,
                Err(_) => ObservedEnd::Failed,
            };
            result = Some((ended, end));
            Some(end)
        });
        match (polled, result) {
            (Poll::Ready(Err(injected)), _) => Poll::Ready(Err(injected)),
            (Poll::Ready(Ok(())), Some((result, end))) => {
                if let (Ok(step), ObservedEnd::Done) = (&result, end) {
                    observed.done(show(step));
                }
                Poll::Ready(result)
            }
            (Poll::Ready(Ok(())), None) | (Poll::Pending, _) => Poll::Pending,
        }
    }
}
