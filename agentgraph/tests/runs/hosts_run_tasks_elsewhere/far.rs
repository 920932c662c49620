//! A host that runs tasks on a graph of its own, through bytes alone, and notes what it was asked for.

use std::sync::{Arc, Mutex};

use agentgraph::BoxError;
use agentgraph::CompiledDependencyGraph;
use agentgraph::dependency::{Output, PassInput};
use agentgraph::host::{FarSide, Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Runs a call in the other process.
type Run = dyn Fn(TaskCall) -> BoxFuture<'static, Result<TaskReply, agentgraph::Error>> + Send + Sync;

/// The other process. Calls and replies alternate between JSON and MessagePack, so every test has both.
#[derive(Clone)]
pub struct Far {
    run: Arc<Run>,
    calls: Arc<Mutex<Vec<TaskCall>>>,
    replies: Arc<Mutex<Vec<TaskReply>>>,
    /// Whether nothing goes as JSON.
    compact: bool,
}

impl Far {
    pub fn of<S: agentgraph::state::StoredState>(graph: CompiledGraph<S>) -> Self {
        Far::with(graph, |_| FarSide::new())
    }

    pub fn with<S: agentgraph::state::StoredState>(
        graph: CompiledGraph<S>,
        gives: impl Fn(&TaskCall) -> FarSide + Send + Sync + 'static,
    ) -> Self {
        let run = move |call: TaskCall| -> BoxFuture<'static, _> {
            let graph = graph.clone();
            let far = gives(&call);
            Box::pin(async move { graph.run_task(call).on(far).await })
        };
        Far { run: Arc::new(run), calls: Arc::default(), replies: Arc::default(), compact: false }
    }

    pub fn of_passes<O, S>(graph: CompiledDependencyGraph<O, S>) -> Self
    where
        O: Output + Serialize + DeserializeOwned,
        S: PassInput + Serialize + DeserializeOwned,
    {
        let run = move |call: TaskCall| -> BoxFuture<'static, _> {
            let graph = graph.clone();
            Box::pin(async move { graph.run_task(call).await })
        };
        Far { run: Arc::new(run), calls: Arc::default(), replies: Arc::default(), compact: false }
    }

    /// Without JSON, for large states.
    pub fn compact(self) -> Self {
        Far { compact: true, ..self }
    }

    /// The calls so far, as they came.
    pub fn calls(&self) -> Vec<TaskCall> {
        self.calls.lock().unwrap().clone()
    }

    /// The path and the node of each call so far, sorted.
    pub fn nodes(&self) -> Vec<String> {
        let calls = self.calls();
        let mut nodes: Vec<String> = calls
            .iter()
            .map(|call| [&call.path[..], std::slice::from_ref(&call.node)].concat().join("/"))
            .collect();
        nodes.sort();
        nodes
    }

    pub fn replies(&self) -> Vec<TaskReply> {
        self.replies.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Host for Far {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let count = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(call.clone());
            calls.len()
        };
        let json = count % 2 == 0 && !self.compact;
        let reply = (self.run)(carried(&call, json)?).await?;
        self.replies.lock().unwrap().push(reply.clone());
        carried(&reply, json)
    }
}

/// The value after its way through bytes.
pub fn carried<T: Serialize + DeserializeOwned>(value: &T, json: bool) -> Result<T, BoxError> {
    if json {
        Ok(serde_json::from_slice(&serde_json::to_vec(value)?)?)
    } else {
        Ok(rmp_serde::from_slice(&rmp_serde::to_vec(value)?)?)
    }
}
