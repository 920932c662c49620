//! Compile-time checks of `Send`, `Sync` and `'static`: runs can be spawned, graphs shared, and errors
//! sent to other threads.

use agentgraph::checkpoint::{RunId, Services, SystemServices, TaskId};
use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::{Interrupted, NodeCall, NodeService, Step};
use agentgraph::prelude::*;
use agentgraph::run::History;
use agentgraph::{
    Checkpoint, CheckpointId, CompileError, Error, Event, EventStream, Interrupt, InterruptId, MemorySaver,
    RunBuilder,
};

use crate::common::words::{Words, WordsUpdate, says, text};

const fn is_send<T: Send>() {}
const fn is_shared<T: Send + Sync + 'static>() {}
const fn is_error<T: std::error::Error + Send + Sync + 'static>() {}

const _: () = {
    is_shared::<CompiledGraph<Words>>();
    is_shared::<Snapshot<Words>>();
    is_shared::<Ctx>();
    is_shared::<Dep<String>>();
    is_shared::<WordsUpdate>();
    is_shared::<Command<Words>>();
    is_shared::<Dispatch>();
    is_shared::<Step<Words>>();
    is_shared::<Outcome<Words>>();
    is_shared::<Interrupt>();
    is_shared::<InterruptId>();
    is_shared::<Checkpoint<Words>>();
    is_shared::<(CheckpointId, RunId, TaskId)>();
    is_shared::<(MemorySaver, SystemServices)>();
    #[cfg(feature = "sqlite")]
    is_shared::<agentgraph::SqliteSaver>();
    #[cfg(feature = "postgres")]
    is_shared::<agentgraph::PostgresSaver>();
    is_shared::<(Box<dyn Checkpointer>, Box<dyn Services>, Box<dyn Host>)>();
    is_shared::<(TaskCall, TaskReply)>();
    is_shared::<NodeCall<Words>>();
    is_shared::<NodeService<Words>>();
    is_shared::<RetryPolicy>();
    is_shared::<JsonState>();
    is_send::<RunBuilder<Words>>();
    is_send::<<RunBuilder<Words> as IntoFuture>::IntoFuture>();
    is_send::<EventStream<Words>>();
    is_send::<Event<Words>>();
    is_send::<History<Words>>();
    is_send::<<History<Words> as IntoFuture>::IntoFuture>();
    is_error::<Error>();
    is_error::<CompileError>();
    is_error::<Terminal>();
    is_error::<Interrupted>();
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_of_one_graph_run_at_once_on_several_threads() {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge(START, "b");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let runs: Vec<_> = (0..64)
        .map(|at| {
            let graph = graph.clone();
            tokio::spawn(async move { graph.invoke(Words::update()).thread(format!("t{at}")).await })
        })
        .collect();
    let mut ids = std::collections::HashSet::new();
    for run in runs {
        let outcome = run.await.unwrap().unwrap();
        assert_eq!(text(outcome.output()), "a b");
        assert!(ids.insert(outcome.run()), "every run has an id of its own");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_can_be_read_in_a_task_of_its_own() {
    use futures_util::StreamExt;
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let events = graph.invoke(Words::update()).stream();
    let count = tokio::spawn(events.count()).await.unwrap();
    assert_eq!(count, 2);
}
