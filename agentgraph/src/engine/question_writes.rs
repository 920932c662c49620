//! The questions of a task as pending writes. One write contains the questions and the answers that they
//! void.

use crate::context::{NewQuestions, Refusal};
use crate::engine::stored::{StoredAnswer, StoredRequest, to_bytes};
use crate::error::Error;
use crate::words::Request;
use agentgraph_checkpoint::{PendingWrite, TaskId};

/// `sources`: in a pass, the sources that the node started with.
pub(super) fn asks_writes(
    task: TaskId,
    node: &str,
    asks: &NewQuestions,
    sources: Option<&Vec<String>>,
) -> Result<Vec<PendingWrite>, Error> {
    let voided = asks.voided.iter().map(|n| StoredAnswer::Voided.write(task, *n));
    voided.chain(asks.requests.iter().map(|request| request_write(task, node, request, sources))).collect()
}

/// A refused answer leaves its question open.
pub(super) fn refusal_writes(
    task: TaskId,
    node: &str,
    refusal: &Refusal,
    sources: Option<&Vec<String>>,
) -> Result<Vec<PendingWrite>, Error> {
    let asked = refusal.asked.iter().map(|request| request_write(task, node, request, sources));
    asked.chain([StoredAnswer::Refused.write(task, refusal.n)]).collect()
}

fn request_write(
    task: TaskId,
    node: &str,
    request: &Request,
    sources: Option<&Vec<String>>,
) -> Result<PendingWrite, Error> {
    let mut stored = StoredRequest::new(node.to_owned(), request.clone());
    stored.sources = sources.cloned();
    Ok(PendingWrite { task, slot: PendingWrite::request_slot(request.n), bytes: to_bytes(&stored)? })
}
