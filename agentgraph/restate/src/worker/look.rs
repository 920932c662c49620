//! Reading a thread without waiting for those who run it.

use agentgraph::Error;
use bytes::Bytes;
use restate_sdk::context::{RequestTarget, RunFuture};
use restate_sdk::errors::HandlerError;

use super::hosted::Hosted;
use super::rows::{Rows, RowsPlace};
use super::sdk::{About, Journal};
use super::tasks::{of_wire, refusal};
use crate::wire::Part;
use crate::wire::blob::BlobHash;
use crate::wire::message::{Look, Seen, SentProblem};

/// The most bytes of a blob in one answer.
const PART: usize = 8 * 1024 * 1024;

/// Answers what a client wants to see of a thread.
pub(super) async fn look(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let thread = &*about.key;
    let read = hosted.wire.receive::<Look>(hosted.label(Part::Request, thread), input.clone()).await;
    let (look, key) = read.map_err(of_wire)?;
    let label = hosted.label(Part::Answer, thread);
    let key = &key;
    match look {
        Look::State => {
            let Rows { rows, have_moved, .. } =
                Rows::read(RowsPlace { hosted, ctx, thread }, &mut false).await?;
            if have_moved {
                let target = RequestTarget::object(hosted.steps(), thread, "look");
                return Ok(ctx.call(target, input).await?);
            }
            let is_known = !rows.is_empty() || hosted.saver.is_none();
            let read = move || async move {
                let found = match is_known {
                    true => hosted.graph.thread_state(thread, rows).await,
                    false => hosted.graph.state(thread).await,
                };
                let seen = seen(found.map(|found| Seen::State(found.map(Box::new))));
                hosted.wire.send(key, label, &seen).await.map_err(of_wire)
            };
            match is_known {
                true => read().await,
                false => Ok(ctx.run(read).name("state").await?),
            }
        }
        // A checkpointer may answer otherwise when the journal is replayed.
        Look::History { limit, before } => {
            let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
            let read = move || async move {
                let seen = seen(hosted.graph.history(thread, limit, before).await.map(Seen::History));
                hosted.wire.send(key, label, &seen).await.map_err(of_wire)
            };
            Ok(ctx.run(read).name("history").await?)
        }
        Look::Blob { hash, from } => {
            let read = move || part_of_blob(hosted, thread, BlobHash(hash), from);
            Ok(ctx.run(read).name("blob").await?)
        }
    }
}

fn seen(result: Result<Seen, Error>) -> Seen {
    result.unwrap_or_else(|error| Seen::Refused(SentProblem::from(&error)))
}

/// A part of a blob, as it is stored: sealed if there are keys.
async fn part_of_blob(
    hosted: &Hosted,
    thread: &str,
    hash: BlobHash,
    from: u64,
) -> Result<Bytes, HandlerError> {
    let Some(blobs) = hosted.wire.blobs() else {
        let problem = "this worker's graph has no checkpointer that could have large values";
        return Err(refusal(&Error::new(agentgraph::Code::NoCheckpointer, problem)).into());
    };
    let blob = blobs.get(thread, hash).await.map_err(of_wire)?;
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(blob.len());
    Ok(blob.slice(from..blob.len().min(from.saturating_add(PART))))
}
