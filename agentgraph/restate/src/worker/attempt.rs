//! [`Runs`]: which steps of an invocation an earlier attempt has begun and not ended.
//!
//! The SDK does not say. The request of an attempt does: it has the commands of the journal, and the number
//! of attempts that failed since the last one. So the request is read as it passes, and the handler finds
//! what was read in a task-local value around the poll that runs it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tracing::Span;

use super::sdk::ResponseBody;

tokio::task_local! {
    static ATTEMPT: Arc<Attempt>;
}

/// What the request of an attempt says.
#[derive(Default)]
pub(super) struct Attempt {
    /// The commands of the journal that begin a step.
    runs: AtomicU64,
    /// The attempts that failed since the last entry of the journal.
    failed: AtomicU64,
}

/// The steps of an attempt, in the order in which the handler asks for them.
pub(super) struct Runs {
    attempt: Arc<Attempt>,
    asked: u64,
}

/// A step that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Its number in the invocation.
    pub(super) number: u64,
    /// Whether the journal has its beginning. If it is to be done all the same, it was not ended.
    pub(super) was_begun: bool,
    /// Whether the attempt before this one failed, perhaps before its beginning was stored.
    pub(super) follows_failure: bool,
}

impl Runs {
    /// Those of the attempt whose handler calls this.
    pub(super) fn of_attempt() -> Self {
        Runs { attempt: ATTEMPT.try_with(Arc::clone).unwrap_or_default(), asked: 0 }
    }

    /// Counts a step. To be called for each.
    pub(super) fn next(&mut self) -> Run {
        let Attempt { runs, failed } = &*self.attempt;
        let number = self.asked;
        self.asked += 1;
        Run {
            number,
            was_begun: number < runs.load(Ordering::Relaxed),
            follows_failure: failed.load(Ordering::Relaxed) > 0,
        }
    }
}

/// The body of a request, which is read as it passes.
pub(super) struct Request {
    body: Incoming,
    scan: Scan,
    attempt: Arc<Attempt>,
}

/// The body of an answer, whose polls run the handler.
pub(super) struct Answer {
    body: Pin<Box<ResponseBody>>,
    /// What is to be sent when the handler waits.
    held: BytesMut,
    attempt: Arc<Attempt>,
    span: Span,
}

impl Request {
    pub(super) fn new(body: Incoming, attempt: &Arc<Attempt>) -> Self {
        Request { body, scan: Scan::default(), attempt: Arc::clone(attempt) }
    }
}

impl Answer {
    pub(super) fn new(body: ResponseBody, attempt: Arc<Attempt>, span: Span) -> Self {
        Answer { body: Box::pin(body), held: BytesMut::new(), attempt, span }
    }
}

impl Body for Request {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Request { body, scan, attempt } = &mut *self;
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            scan.read(bytes, attempt);
        }
        polled
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = <ResponseBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Answer { body, held, attempt, span } = &mut *self;
        let _span = span.enter();
        ATTEMPT.sync_scope(Arc::clone(attempt), || poll_together(body.as_mut(), held, cx))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Polls the handler until it waits, and sends what it has written meanwhile as one frame: each frame costs
/// the server and this process some microseconds.
fn poll_together(
    mut body: Pin<&mut ResponseBody>,
    held: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, <ResponseBody as Body>::Error>>> {
    loop {
        match body.as_mut().poll_frame(cx).map_ok(Frame::into_data) {
            Poll::Ready(Some(Ok(Ok(data)))) if held.is_empty() && data.len() >= TOGETHER => {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            Poll::Ready(Some(Ok(Ok(data)))) => {
                if held.is_empty() {
                    held.reserve(TOGETHER / 2);
                }
                held.extend_from_slice(&data);
            }
            Poll::Ready(Some(Ok(Err(other)))) => return Poll::Ready(Some(Ok(other))),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
            Poll::Ready(None) if held.is_empty() => return Poll::Ready(None),
            Poll::Pending if held.is_empty() => return Poll::Pending,
            Poll::Ready(None) | Poll::Pending => break,
        }
        if held.len() >= TOGETHER {
            break;
        }
    }
    Poll::Ready(Some(Ok(Frame::data(std::mem::take(held).freeze()))))
}

/// What is sent at once has this many bytes, or is all that there is.
const TOGETHER: usize = 16 * 1024;

/// The type of the first message, and that of a command which begins a step.
const START: u64 = 0x0000;
const RUN: u64 = 0x0411;

/// The field of the first message with the number of failed attempts.
const FAILED: u64 = 7;

/// Reads messages that come in pieces.
///
/// ```text
/// message = type:u16  flags:u16  length:u32  body          (big-endian)
/// body    = Protocol Buffers; only numbers of the first message are read
/// ```
#[derive(Default)]
struct Scan {
    /// The beginning of a header or of a number.
    held: Vec<u8>,
    /// The bytes to leave out.
    skip: u64,
    /// The bytes of the first message that are still to come, without those to leave out.
    start: u64,
    /// The field whose number is next.
    field: Field,
}

#[derive(Clone, Copy, Default)]
enum Field {
    #[default]
    Key,
    Number(u64),
    Length,
}

impl Scan {
    fn read(&mut self, mut bytes: &[u8], attempt: &Attempt) {
        while let Some((byte, rest)) = bytes.split_first() {
            if self.skip > 0 {
                let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
                self.skip -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            bytes = rest;
            self.held.push(*byte);
            if self.start > 0 {
                self.start -= 1;
                if *byte < 0x80 {
                    self.number(attempt);
                }
            } else if let Ok(header) = <[u8; 8]>::try_from(&*self.held) {
                self.header(u64::from_be_bytes(header), attempt);
            }
        }
    }

    fn header(&mut self, header: u64, attempt: &Attempt) {
        self.held.clear();
        let (kind, length) = (header >> 48, header & u64::from(u32::MAX));
        match kind {
            START => self.start = length,
            _ => self.skip = length,
        }
        if kind == RUN {
            attempt.runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn number(&mut self, attempt: &Attempt) {
        let bytes = self.held.drain(..).take(10).enumerate();
        let number = bytes.fold(0, |sum, (at, byte)| sum | u64::from(byte & 0x7f) << (7 * at));
        let field = std::mem::take(&mut self.field);
        let skip = match field {
            Field::Key => {
                let (fixed, next) = match number & 7 {
                    0 => (0, Field::Number(number >> 3)),
                    1 => (8, Field::Key),
                    2 => (0, Field::Length),
                    _ => (4, Field::Key),
                };
                self.field = next;
                fixed
            }
            Field::Number(FAILED) => {
                attempt.failed.store(number, Ordering::Relaxed);
                0
            }
            Field::Number(_) => 0,
            Field::Length => number,
        };
        self.skip = skip.min(self.start);
        self.start -= self.skip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = [kind.to_be_bytes(), [0, 0]].concat();
        message.extend((body.len() as u32).to_be_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn steps_and_failures_are_found_however_the_request_is_cut() {
        // An id, the known entries, a value of the state whose bytes look like fields, failures.
        let start = [&[10, 2, 7, 7, 24, 9, 34, 4, 56, 99, 0x04, 0x11, 56, 0xac, 2, 72, 1][..]].concat();
        let request = [
            message(0, &start),
            message(0x0400, &[0x04, 0x11]),
            message(0x0411, &[88, 1]),
            message(0x8011, &[]),
            message(0x0411, &[]),
        ]
        .concat();
        for cut in 0..request.len() {
            let (attempt, mut scan) = (Attempt::default(), Scan::default());
            let (one, other) = request.split_at(cut);
            scan.read(one, &attempt);
            scan.read(other, &attempt);
            let found = (attempt.runs.into_inner(), attempt.failed.into_inner());
            assert_eq!(found, (2, 300), "cut at {cut}");
        }
    }
}
