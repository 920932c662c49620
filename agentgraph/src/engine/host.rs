//! Where tasks run.
//!
//! In this process a task is the plain call of its node. A [`HostRunner`] sends every task to a
//! [`Host`](crate::host::Host) instead.

mod exit;
mod runner;

pub(crate) use exit::{ParentUpdate, foreign_update, parent_encoder, passed_on};
pub(crate) use runner::{HostRunner, Question, QuestionOrRefusal, SentNode, StateHere};

use std::sync::Arc;
use std::task::Context;

use crate::attempt::{call_with_policies, invoke, invoke_in_span};
use crate::erased::{NodeFuture, Started};
use crate::error::{Code, Error, OwnError};
use crate::extract::Task;
use crate::graph::run_graph::RunGraph;
use crate::policy::Policies;
use crate::typed::AnyState;

/// Calls tasks. The loop polls the future in place and catches panics, here or in the future.
#[derive(Clone)]
pub(crate) enum TaskRunner {
    /// Runs a task in this process: a plain call.
    Local,
    /// Sends it to a host.
    Host(Arc<HostRunner>),
}

impl TaskRunner {
    pub(crate) fn of(host: Option<&Arc<HostRunner>>) -> Self {
        host.map_or(TaskRunner::Local, |host| TaskRunner::Host(Arc::clone(host)))
    }

    /// Calls a task. `traced`: attempts in this process have spans, inside the current one.
    #[inline]
    pub(super) fn call(
        &self,
        core: &RunGraph,
        task: &Task<'_, AnyState>,
        traced: bool,
    ) -> NodeFuture<AnyState> {
        match self {
            TaskRunner::Local => call(core, task, traced),
            TaskRunner::Host(host) => host.call(core, task, traced),
        }
    }

    /// Calls a task and polls it once. A plain task in this process costs one dynamic call.
    #[inline]
    pub(super) fn start(&self, core: &RunGraph, task: &Task<'_, AnyState>, cx: &mut Context<'_>) -> Started {
        if let (TaskRunner::Local, Some(node)) = (self, core.entry(task.request.node))
            && node.policies.is_none()
            && task.limits().is_none()
            && !task.shared.audience.messages
        {
            return node.call.start(task, cx);
        }
        Started::poll(self.call(core, task, false), cx)
    }

    /// The runner, if it sends tasks to a host.
    #[inline]
    pub(crate) fn as_host(&self) -> Option<&HostRunner> {
        match self {
            TaskRunner::Local => None,
            TaskRunner::Host(host) => Some(host),
        }
    }
}

#[inline]
fn call(core: &RunGraph, task: &Task<'_, AnyState>, traced: bool) -> NodeFuture<AnyState> {
    let Some(node) = core.entry(task.request.node) else { return missing_node(core, task.request.node) };
    match (&node.policies, task.limits()) {
        (None, None) if traced => invoke_in_span(&*node.call, task),
        (None, None) => invoke(&*node.call, task),
        (Some(policies), None) => {
            call_with_policies(Arc::clone(&node.call), Arc::clone(policies), task, traced)
        }
        (policies, Some(limits)) => {
            let policies = Policies::of_task(limits, policies.as_deref());
            call_with_policies(Arc::clone(&node.call), Arc::new(policies), task, traced)
        }
    }
}

/// The error for a node that is neither in the graph nor temporary. Such a node is never planned.
#[cold]
fn missing_node(core: &RunGraph, node: u32) -> NodeFuture<AnyState> {
    let problem = format!("there is no node `{}` to run", core.name(node));
    Box::pin(std::future::ready(Err(OwnError(Error::new(Code::UnknownTarget, problem)).into())))
}
