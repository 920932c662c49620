//! One process cancels the run of another one. The same code runs in both: the process that gets the thread
//! waits in its node, the other one cancels it.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::future::pending;

use agentgraph::prelude::*;
use agentgraph::run::Cancellation;
use agentgraph::{Checkpointer, Code, StopReason};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Note {
    text: String,
}

/// A model that never answers.
async fn waits() -> NoteUpdate {
    pending().await
}

pub(crate) async fn cancel_or_be_cancelled(saver: impl Checkpointer) {
    let graph = StateGraph::new().node("waits", waits).edge(START, "waits");
    let graph = graph.compile().unwrap().checkpointer(saver);
    match graph.invoke(Note::update().text("begun")).thread("t").await {
        Ok(Outcome::Stopped { reason: StopReason::Cancelled, output, .. }) => {
            assert_eq!(output.text, "begun")
        }
        Err(busy) if busy.code() == Code::ThreadBusy => {
            let running = graph.running().await.unwrap();
            assert!(running.len() == 1 && !running[0].is_here, "{running:?}");
            let answer = graph.cancel("t").until_ended().await.unwrap();
            assert_eq!(answer, Cancellation::Requested);
            // Fails if the other process still has the thread.
            graph.update_state("t").as_end(Note::update().text("by hand")).await.unwrap();
            assert_eq!(graph.state("t").await.unwrap().unwrap().values.text, "by hand");
        }
        other => panic!("{other:?}"),
    }
}
