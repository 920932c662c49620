//! A stream that begins again: another attempt follows one that failed, also after its first piece.

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use crate::error::{Error, Result};
use crate::model::{ChatEvent, ChatStream};

/// The further attempts at one answer.
#[async_trait]
pub(super) trait Attempts: Send + 'static {
    /// Makes the next attempt after a failed one.
    async fn next(&mut self, failed: Error) -> Next;
}

/// The result of [`Attempts::next`].
pub(super) enum Next {
    /// Another attempt was made.
    Attempt(Result<ChatStream>),
    /// The stream ends with this error.
    GiveUp(Error),
}

/// The stream of the first attempt that succeeds. Pieces of a failed one are followed by
/// [`ChatEvent::Restarted`], so that a listener forgets them; the response is that of the last attempt alone.
pub(super) async fn first_success(
    first: Result<ChatStream>,
    mut attempts: impl Attempts,
) -> Result<ChatStream> {
    let stream = match first {
        Ok(stream) => stream,
        Err(error) => begin(&mut attempts, error).await?,
    };
    let state = State { stream: Some(stream), was_heard: false, attempts };
    Ok(ChatStream::new(stream::unfold(state, step)))
}

struct State<A> {
    stream: Option<ChatStream>,
    /// Whether a piece of this attempt was sent on.
    was_heard: bool,
    attempts: A,
}

async fn step<A: Attempts>(mut state: State<A>) -> Option<(Result<ChatEvent>, State<A>)> {
    loop {
        let event = match state.stream.as_mut()?.next().await? {
            Ok(event) => event,
            Err(error) => match begin(&mut state.attempts, error).await {
                Err(error) => {
                    state.stream = None;
                    return Some((Err(error), state));
                }
                Ok(stream) => {
                    state.stream = Some(stream);
                    if !std::mem::take(&mut state.was_heard) {
                        continue;
                    }
                    return Some((Ok(ChatEvent::Restarted {}), state));
                }
            },
        };
        state.was_heard = true;
        return Some((Ok(event), state));
    }
}

async fn begin(attempts: &mut impl Attempts, mut failed: Error) -> Result<ChatStream> {
    loop {
        match attempts.next(failed).await {
            Next::Attempt(Ok(stream)) => return Ok(stream),
            Next::Attempt(Err(error)) => failed = error,
            Next::GiveUp(error) => return Err(error),
        }
    }
}
