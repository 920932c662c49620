//! Calls as bytes that run in this process, by the loop of the graph itself.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::call::RunCall;
use super::end::RunEnd;
use super::thread_state::ThreadState;
use crate::error::Error;
use crate::run::begin::CallRequest;
use crate::run::call_plan::CallPlan;
use crate::run::{CompiledGraph, RunFuture};
use crate::state::StoredState;

/// Makes a call on a thread. `limit` is the limit of supersteps of a call that sets none.
pub(super) fn call<S: StoredState>(
    graph: &CompiledGraph<S>,
    thread: &str,
    call: RunCall,
    request: Result<CallRequest, Error>,
    limit: Option<u64>,
) -> BoxFuture<'static, RunEnd> {
    let core = Arc::clone(&graph.any.core);
    let mut plan = Box::new(CallPlan::new(graph.any.clone(), request));
    plan.thread = Some(Arc::from(thread));
    plan.limits.max_supersteps = limit.unwrap_or(plan.limits.max_supersteps);
    call.set_up(&mut plan);
    let run = RunFuture::<S, S>::new(plan.run(None));
    Box::pin(async move { RunEnd::of::<S>(core.schema.typed::<S>(), &run.await) })
}

/// The newest checkpoint of a thread.
pub(super) async fn state<S: StoredState>(
    graph: &CompiledGraph<S>,
    thread: String,
) -> Result<Option<ThreadState>, Error> {
    let found = graph.state(&thread).await?;
    found.map(|found| ThreadState::of(graph.schema(), found)).transpose()
}
