//! The side of `agentgraph-restate`: graphs on a worker, called by its client.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_restate::{RestateClient, RestateWorker, Serving};
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::case::{BRANCHES, Case};
use crate::work::{Work, item, text};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Steps {
    count: u64,
    until: u64,
    text: String,
}

async fn step(state: Snapshot<Steps>) -> StepsUpdate {
    let count = state.count + 1;
    Steps::update().count(count).text(text(count))
}

#[derive(Route)]
enum Next {
    Step,
    #[route(end)]
    End,
}

fn next(state: &Steps) -> Next {
    if state.count < state.until { Next::Step } else { Next::End }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Branches {
    text: String,
    #[reduce(append)]
    items: Vec<String>,
}

async fn branch(state: Snapshot<Branches>) -> BranchesUpdate {
    Branches::update().items([item(&state.text)])
}

fn steps() -> Result<CompiledGraph<Steps>, Problem> {
    Ok(StateGraph::new().node("step", step).edge(START, "step").route("step", next).compile()?)
}

fn branches(number: usize, remote: bool) -> Result<CompiledGraph<Branches>, Problem> {
    let mut graph = StateGraph::new();
    for at in 0..number {
        let name = format!("branch-{at}");
        let node = if remote { branch.remote() } else { branch.into_node() };
        graph = graph.node(name.clone(), node).edge(START, name.clone()).edge(name, END);
    }
    Ok(graph.compile()?)
}

/// The name under which the graph of a case is served.
fn name(case: &Case) -> String {
    let kept = if case.kept { "-kept" } else { "" };
    match case.work {
        Work::Steps(_) => format!("steps{kept}"),
        Work::Branches { number, remote: false } => format!("branches-{number}{kept}"),
        Work::Branches { number, remote: true } => format!("remote-{number}{kept}"),
    }
}

/// Starts a worker with the graphs of all cases.
pub(crate) async fn serve(addr: SocketAddr, admin: &str, history: &Path) -> Result<Serving, Problem> {
    let saver = Arc::new(SqliteSaver::open(history).await?);
    let mut worker = RestateWorker::new().register(admin);
    worker = worker.graph("steps", steps()?);
    worker = worker.graph("steps-kept", steps()?.checkpointer(Arc::clone(&saver)));
    for number in BRANCHES {
        worker = worker.graph(format!("branches-{number}"), branches(number, false)?);
        worker = worker.graph(format!("remote-{number}"), branches(number, true)?);
        let kept = branches(number, false)?.checkpointer(Arc::clone(&saver));
        worker = worker.graph(format!("branches-{number}-kept"), kept);
    }
    Ok(worker.start(addr).await?)
}

/// Makes a call, and checks its result.
pub(crate) async fn call(client: &RestateClient, case: &Case, thread: &str) -> Result<(), Problem> {
    match case.work {
        Work::Steps(steps) => {
            let input = Steps::update().until(steps);
            let call = client.graph::<Steps>(name(case)).invoke(input).thread(thread);
            let state = call.max_supersteps(steps + 1).await?.into_finished()?;
            if (state.count, state.text) != (steps, text(steps)) {
                return Err("a run of steps has another result".into());
            }
        }
        Work::Branches { number, .. } => {
            let input = Branches::update().text(text(0));
            let state = client.graph::<Branches>(name(case)).invoke(input).thread(thread).await?;
            if state.into_finished()?.items != vec![item(&text(0)); number] {
                return Err("a run of branches has another result".into());
            }
        }
    }
    Ok(())
}
