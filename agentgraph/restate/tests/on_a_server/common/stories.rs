//! Runs of graphs from their input to their end, here and on a server, and what both have in common.

use std::fmt::Debug;
use std::future::Future;

use agentgraph::dependency::Outputs;
use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph::{Error, InterruptId};
use agentgraph_restate::{RemoteGraph, RestateClient};

use super::graphs::{Built, Kind, Table, Tools, Work, build, input};

/// How a run has ended: its last state, and the states of its history, oldest first. In a form that can be
/// compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub last: String,
    pub history: Vec<String>,
}

/// A state as text. Maps are in the order of their keys.
pub trait Shown {
    fn shown(&self) -> String;
}

impl Shown for Work {
    fn shown(&self) -> String {
        serde_json::to_value(self).unwrap().to_string()
    }
}

/// Without the order in which parallel nodes were done, which only the clock decides.
impl Shown for Outputs<Table, u64> {
    fn shown(&self) -> String {
        let outputs =
            self.names().map(|name| format!("{name}: {}", serde_json::to_value(&self[name]).unwrap()));
        let mut outputs: Vec<String> = outputs.collect();
        outputs.sort();
        outputs.join("; ")
    }
}

/// Answers questions until the run has ended otherwise.
pub async fn answer_all<S, F>(
    mut outcome: Result<Outcome<S>, Error>,
    resume: impl Fn(Vec<(InterruptId, String)>) -> F,
) -> S
where
    S: StoredState + Debug,
    F: Future<Output = Result<Outcome<S>, Error>>,
{
    loop {
        match outcome.unwrap() {
            Outcome::Interrupted { interrupts, .. } => {
                let answers = interrupts.iter().map(|one| (one.id.unwrap(), format!("yes to {}", one.node)));
                outcome = resume(answers.collect()).await;
            }
            outcome => return outcome.into_finished().unwrap(),
        }
    }
}

/// The run in this process.
pub async fn local(kind: Kind) -> Ended {
    let tools = Tools::none();
    match build(kind, &tools) {
        Built::State(graph) => {
            let graph = graph.checkpointer(MemorySaver::new());
            let outcome = graph.invoke(input()).thread("t").await;
            let last =
                answer_all(outcome, |answers| graph.resume_many(answers).thread("t").into_future()).await;
            let history = graph.history("t").await.unwrap();
            ended(&last, history.iter().map(|one| one.values.shown()))
        }
        Built::Pass(graph) => {
            let graph = graph.checkpointer(MemorySaver::new());
            let last = graph.invoke(7).thread("t").await.unwrap().into_finished().unwrap();
            let history = graph.history("t").await.unwrap();
            ended(&last, history.iter().map(|one| one.values.shown()))
        }
    }
}

fn ended<S: Shown>(last: &S, newest_first: impl DoubleEndedIterator<Item = String>) -> Ended {
    Ended { last: last.shown(), history: newest_first.rev().collect() }
}

/// A graph on a server, by its name.
pub struct Remote {
    pub kind: Kind,
    client: RestateClient,
    name: String,
}

impl Remote {
    pub fn new(client: &RestateClient, name: &str, kind: Kind) -> Self {
        Remote { kind, client: client.clone(), name: name.to_owned() }
    }

    pub fn work(&self) -> RemoteGraph<Work> {
        self.client.graph(&*self.name)
    }

    pub fn pass(&self) -> RemoteGraph<Outputs<Table, u64>> {
        let Built::Pass(graph) = build(Kind::Pass, &Tools::none()) else { unreachable!() };
        self.client.graph_of(&*self.name, graph.schema().clone())
    }

    /// The last state of a new run in a thread.
    pub async fn run(&self, thread: &str) -> String {
        if self.kind == Kind::Pass {
            return self.pass().pass(&7_u64).thread(thread).await.unwrap().into_finished().unwrap().shown();
        }
        let graph = self.work();
        let outcome = graph.invoke(input()).thread(thread).await;
        let resume = |answers| graph.resume_many(answers).thread(thread).into_future();
        answer_all(outcome, resume).await.shown()
    }

    /// The states of a thread's history, oldest first.
    pub async fn history(&self, thread: &str) -> Vec<String> {
        let shown: Vec<String> = if self.kind == Kind::Pass {
            self.pass().history(thread).await.unwrap().iter().map(|one| one.values.shown()).collect()
        } else {
            self.work().history(thread).await.unwrap().iter().map(|one| one.values.shown()).collect()
        };
        shown.into_iter().rev().collect()
    }

    /// The newest state of a thread, as the server has it.
    pub async fn state(&self, thread: &str) -> String {
        if self.kind == Kind::Pass {
            return self.pass().state(thread).await.unwrap().unwrap().values.shown();
        }
        self.work().state(thread).await.unwrap().unwrap().values.shown()
    }
}

/// Whether a run has ended as the local one. An eager graph merges in the order of the journal, so of it only
/// the lines are compared, in any order and without the counts that show the order.
pub fn same_end(kind: Kind, there: &Ended, here: &Ended) -> bool {
    if !kind.is_eager() {
        return there == here;
    }
    let lines = |state: &str| {
        let state: serde_json::Value = serde_json::from_str(state).unwrap();
        let lines = state["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
        let mut lines: Vec<String> = lines.map(|line| line.split('@').next().unwrap().to_owned()).collect();
        lines.sort();
        (lines, state["marks"].clone())
    };
    lines(&there.last) == lines(&here.last) && there.history.last() == Some(&there.last)
}
