//! Single tasks: the service `graph.tasks`, and the task that an invocation of the steps runs itself.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agentgraph::host::TaskCall;
use agentgraph::{Code, Error};
use bytes::Bytes;
use futures_util::FutureExt;
use restate_sdk::context::RunFuture;
use restate_sdk::errors::{HandlerError, TerminalError};

use super::attempt::Runs;
use super::hosted::Hosted;
use super::limits;
use super::sdk::{About, Journal};
use crate::wire::message::{CallInfo, TaskEnd, TaskMessage};
use crate::wire::{Part, SealKey};

/// Runs a task of another invocation. Its end is a step of the journal before it is the answer: an answer
/// whose arrival is in doubt is given again, and must be the same then.
pub(super) async fn run(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let mut runs = Runs::of_attempt();
    let invocation = &*about.invocation_id;
    let (thread, payload) = split(input).ok_or_else(|| TerminalError::new("the request is no task"))?;
    let read = hosted.wire.receive::<TaskMessage>(hosted.label(Part::Task, &thread), payload).await;
    let (TaskMessage { mut call, state, about: info, room }, key) = match read {
        Ok(read) => read,
        Err(error) => return Err(of_wire(error)),
    };
    if let Some(state) = state {
        let state = hosted.wire.read(hosted.label(Part::State, &thread), state.into()).await;
        let put = state.and_then(|(state, _)| call.put_state(state.into()));
        put.map_err(of_wire)?;
    }
    if let Some(limit) = &call.limit {
        let part = hosted.limits_by.as_ref().and_then(|header| info.headers.get(header));
        limits::wait(ctx, about, limit, part.map(String::as_str)).await?;
    }
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let place = TaskPlace { hosted, ctx, invocation, key: &key, thread: &thread };
    Ok(run_step(place, &mut runs, info, call, room, &Mutex::default()).await?)
}

/// Where a task is a step.
#[derive(Clone, Copy)]
pub(super) struct TaskPlace<'a> {
    pub(super) hosted: &'a Hosted,
    pub(super) ctx: &'a Journal,
    pub(super) invocation: &'a str,
    pub(super) key: &'a SealKey,
    pub(super) thread: &'a str,
}

/// Runs a task as a step of the journal. A step whose beginning is in the journal, and whose worker was lost,
/// ends as an empty one, and another step follows. So the journal itself counts the workers that a node has
/// cost, and says the same on every replay. `made` is the end, if this attempt has made it.
pub(super) async fn run_step(
    place: TaskPlace<'_>,
    runs: &mut Runs,
    about: CallInfo,
    call: Box<TaskCall>,
    room: usize,
    made: &Mutex<Option<TaskEnd>>,
) -> Result<Bytes, TerminalError> {
    let TaskPlace { hosted, ctx, invocation, .. } = place;
    let name = call.node.clone();
    let mut work = Some((about, call));
    let mut deaths = 0;
    loop {
        let run = runs.next();
        // A step that is not in the journal is the last one.
        let mine = if run.was_begun { work.clone() } else { work.take() };
        // Boxed, since the runtime moves what it is given from one of its futures to the next.
        let step = move || {
            Box::pin(async move {
                let was_here = hosted.begun.begin(invocation, run.number);
                let Some((about, call)) = mine.filter(|_| was_here || !run.was_begun) else {
                    hosted.begun.end(invocation, run.number);
                    return Ok(Bytes::new());
                };
                if run.follows_failure {
                    // A node that ends its process at once would do so before its beginning is stored.
                    tokio::time::sleep(STORED).await;
                }
                let (end, payload) = run_while_stored(place, about, call, room, deaths).await?;
                hosted.begun.end(invocation, run.number);
                *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
                Ok(payload)
            })
        };
        let end = ctx.run(step).name(name.clone()).await?;
        if !end.is_empty() {
            return Ok(end);
        }
        deaths += 1;
    }
}

/// Runs a task again and again while its store fails. An error would have another worker try, which could not
/// tell that from a death of this one.
async fn run_while_stored(
    place: TaskPlace<'_>,
    about: CallInfo,
    call: Box<TaskCall>,
    room: usize,
    deaths: u32,
) -> Result<(TaskEnd, Bytes), HandlerError> {
    if place.hosted.saver.is_none() {
        return run_here(place, about, call, room, deaths).await;
    }
    let [mut wait, longest] = AGAIN;
    loop {
        let end = run_here(place, about.clone(), call.clone(), room, deaths).await;
        let Err(error) = end else { return end };
        if place.hosted.parts.is_cancelled() {
            return Err(error);
        }
        tracing::warn!(?error, node = call.node, "the store failed, and the task is tried again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

/// How long the server may take to store the beginning of a step.
const STORED: Duration = Duration::from_millis(20);

/// The wait before a task is tried again whose store failed, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];

/// Runs a task in this process. Returns its end, and the same as a payload of at most `room` bytes.
/// An end that is larger is an error of the node.
///
/// The HTTP server gives each invocation a task of the runtime, so a node that computes for long stops no
/// other one. The start of the task is sent when the node first waits; the start and end of a node that never
/// waits are sent in one frame.
async fn run_here(
    TaskPlace { hosted, key, thread, .. }: TaskPlace<'_>,
    about: CallInfo,
    call: Box<TaskCall>,
    room: usize,
    deaths: u32,
) -> Result<(TaskEnd, Bytes), HandlerError> {
    let end = match hosted.far_side(about, thread) {
        Ok((mut far, posts)) => {
            if call.limit.is_some() {
                far = far.has_place();
            }
            if deaths >= hosted.deaths {
                far = far.given_up(lost(deaths));
            }
            let end = match AssertUnwindSafe(hosted.graph.run_task(*call, far)).catch_unwind().await {
                Ok(Ok(reply)) => TaskEnd::Reply(reply),
                // The store may be back for another attempt.
                Ok(Err(error)) if error.code() == Code::Store => return Err(error.into()),
                Ok(Err(error)) => TaskEnd::Failed(error.to_string()),
                // Panics of the node are its errors.
                Err(_) => TaskEnd::Failed("a panic outside the node, such as in a serialiser".to_owned()),
            };
            if let Some(posts) = posts {
                posts.flush().await;
            }
            end
        }
        Err(error) => TaskEnd::Failed(format!("the context of the task cannot be made: {error}")),
    };
    let label = hosted.label(Part::TaskEnd, thread);
    match hosted.wire.within(room).send(key, label, &end).await {
        Ok(payload) => Ok((end, payload)),
        // The node's result fits nowhere, and another attempt would not change that.
        Err(error) if error.code() == Code::Encode => {
            let failed = TaskEnd::Failed(error.message().to_owned());
            let payload = hosted.wire.send(key, label, &failed).await?;
            Ok((failed, payload))
        }
        Err(error) => Err(error.into()),
    }
}

fn lost(deaths: u32) -> String {
    format!(
        "{deaths} workers were lost while they ran this node: see their logs, and whether they had memory enough; \
         `RestateWorker::deaths_per_node` says how many it may cost"
    )
}

/// The request of a task. Its thread stands before the payload, which opens only under the thread's name.
pub(super) fn join(thread: &str, payload: &[u8]) -> Bytes {
    let mut request = Vec::with_capacity(4 + thread.len() + payload.len());
    request.extend_from_slice(&u32::try_from(thread.len()).unwrap_or(u32::MAX).to_be_bytes());
    request.extend_from_slice(thread.as_bytes());
    request.extend_from_slice(payload);
    request.into()
}

fn split(mut request: Bytes) -> Option<(String, Bytes)> {
    if request.len() < 4 {
        return None;
    }
    let length = request.split_to(4);
    let length = usize::try_from(u32::from_be_bytes(length[..].try_into().ok()?)).ok()?;
    if request.len() < length {
        return None;
    }
    let thread = request.split_to(length);
    Some((String::from_utf8(thread.to_vec()).ok()?, request))
}

/// An error of reading what another process wrote, or of writing what it is to read. A store that fails may
/// be back later; everything else stays as it is.
pub(super) fn of_wire(error: Error) -> HandlerError {
    match error.code() {
        Code::Store => error.into(),
        _ => refusal(&error).into(),
    }
}

/// An error that goes to the caller as it is.
pub(super) fn refusal(error: &Error) -> TerminalError {
    TerminalError::new_with_code(422, format!("{}: {}", error.code(), error.message()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_split_as_it_was_joined() {
        let (thread, payload) = split(join("täglich/1", b"payload")).unwrap();
        assert_eq!((&*thread, &payload[..]), ("täglich/1", &b"payload"[..]));
        for cut in 0..join("t", b"").len() {
            assert!(split(join("t", b"").slice(..cut)).is_none());
        }
    }
}
