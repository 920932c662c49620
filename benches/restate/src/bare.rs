//! The sides of the bare SDK: handlers written by hand for the same work.

mod least;
mod same;

use std::path::Path;
use std::sync::Arc;

use agentgraph::SqliteSaver;
use agentgraph::checkpoint::{CheckpointId, Checkpointer, Place, Put, RowKind, StoreError};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;

use crate::Problem;
use crate::case::Case;
use crate::server::client;
use crate::side::Side;
use crate::work::{Work, item, text};

/// The most steps of an invocation, as in our worker.
const SHARE: u64 = 500;

/// The work of a call.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Order {
    work: Work,
    /// Whether the history goes to SQLite.
    kept: bool,
}

/// The state of a thread.
#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    count: u64,
    text: String,
    items: Vec<String>,
}

impl State {
    /// The work of a step.
    fn step(&self) -> State {
        let count = self.count + 1;
        State { count, text: text(count), items: Vec::new() }
    }

    /// The work of a branch.
    fn branch(&self) -> String {
        item(&self.text)
    }

    /// Writes the state to the history.
    async fn put_into(&self, history: &SqliteSaver, thread: &str) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let id = CheckpointId::new(0, self.count);
        history.put(Put::new(Place::root(thread), id, RowKind::Full, &bytes)).await
    }
}

/// Serves the handlers of a side.
pub(crate) async fn serve(
    side: Side,
    listener: TcpListener,
    admin: &str,
    history: &Path,
) -> Result<(), Problem> {
    let history = Arc::new(SqliteSaver::open(history).await?);
    let addr = listener.local_addr()?;
    let endpoint = match side {
        Side::Same => {
            let threads = same::Same { history: Arc::clone(&history) };
            let steps = same::SameSteps { history };
            Endpoint::builder().bind(threads).bind(steps).bind(same::SameTasks)
        }
        _ => Endpoint::builder().bind(least::Least { history }).bind(least::LeastTasks),
    };
    tokio::spawn(HttpServer::new(endpoint.build()).serve(listener));
    let deployment = json!({ "uri": format!("http://{addr}"), "force": true });
    let answer = client()?.post(format!("{admin}/deployments")).json(&deployment).send().await?;
    answer.error_for_status()?;
    Ok(())
}

/// Makes a call, and checks its result.
pub(crate) async fn call(
    client: &reqwest::Client,
    ingress: &str,
    side: Side,
    case: &Case,
    thread: &str,
) -> Result<(), Problem> {
    let object = if side == Side::Same { "Same" } else { "Least" };
    let order = Order { work: case.work, kept: case.kept };
    loop {
        let request = client.post(format!("{ingress}/{object}/{thread}/call")).json(&order);
        let request = request.header("idempotency-key", uuid::Uuid::new_v4().to_string());
        let state: State = request.send().await?.error_for_status()?.json().await?;
        match case.work {
            // An invocation makes its share, and the next one goes on.
            Work::Steps(steps) if side == Side::Least && state.count < steps && state.count > 0 => {}
            Work::Steps(steps) if (state.count, &state.text) == (steps, &text(steps)) => return Ok(()),
            Work::Branches { number, .. } if state.items == vec![item(&text(0)); number] => return Ok(()),
            _ => return Err("a bare run has another result".into()),
        }
    }
}
