//! The object `graph`: the queue of a thread's callers and their answers, and the rows of a thread whose
//! calls are short. A call makes its first share of supersteps in its own invocation. If it goes on, the
//! rows move to the object of the steps for good: each invocation of that one has an empty journal and the
//! newest code.

use std::time::SystemTime;

use bytes::Bytes;
use restate_sdk::context::{CallFuture, RequestTarget};
use restate_sdk::errors::HandlerError;
use serde_json::{Value, json};

use super::hosted::Hosted;
use super::rows::{self, Rows, RowsPlace};
use super::sdk::{About, Handle, Journal, handle_of, is_cancel, is_kill};
use super::steps::{self, DEFAULT_LIMIT};
use super::tasks::{of_wire, refusal};
use super::waits::DRAIN;
use crate::headers;
use crate::wire::message::{CallInfo, DriveRequest, Driven, Micros, Order, ThreadRequest};
use crate::wire::{Part, SealKey};
use agentgraph::host::{RunCall, RunEnd};
use agentgraph::{Code, Error};

/// What the thread does, as JSON, for people who look into the server.
const STATUS: &str = "status";
/// When the sleep of a thread ends, in its status.
const UNTIL: &str = "until";
/// The invocation that has the thread, in its status.
const INVOCATION: &str = "invocation";
/// The awakeable of a caller that waits for an answer.
const WAITING: &str = "waiting";

/// Carries out a caller's request, after those that came before it.
pub(super) async fn call(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let (request, key) = received(hosted, about, input).await?;
    carry_out(hosted, ctx, about, request, &key).await
}

/// Continues a run whose sleep has ended, unless the thread was called since the sleep began.
pub(super) async fn wake(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let (request, key) = received(hosted, about, input).await?;
    if status(ctx).await?[UNTIL] != json!(request.at) {
        return Ok(Bytes::new());
    }
    carry_out(hosted, ctx, about, request, &key).await
}

async fn received(
    hosted: &Hosted,
    about: &About,
    input: Bytes,
) -> Result<(ThreadRequest, SealKey), HandlerError> {
    hosted.wire.receive(hosted.label(Part::Request, &about.key), input).await.map_err(of_wire)
}

async fn carry_out(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    ThreadRequest { mut call, mut at, headers, waits, name }: ThreadRequest,
    key: &SealKey,
) -> Result<Bytes, HandlerError> {
    let thread = &*about.key;
    let request = about.headers.iter().map(|(name, value)| (name.as_str(), &**value));
    let headers = headers::of_call(headers, request);
    let info = CallInfo { headers, name, views: call.heard_views().to_vec() };
    let place = RowsPlace { hosted, ctx, thread };
    let mut cancelled = false;
    let rows = Rows::read(place, &mut cancelled).await?;
    let running = json!({ "state": "running", INVOCATION: about.invocation_id });
    ctx.set(STATUS, shown(&running));
    let mut caller = Caller { hosted, ctx, thread, key, invocation: &about.invocation_id, drain: None };
    let mut was_answered = false;
    let mut here = (!rows.have_moved).then_some(rows);
    if here.is_none() {
        caller.drain = Some(ctx.signal(DRAIN));
    }
    let mut must_move = false;
    let answer = loop {
        let request = DriveRequest { call: call.clone(), at, about: info.clone() };
        let (answer, driven) = if let Some(rows) = here.take() {
            must_move = true;
            let share = steps::make_share(place, about, &request, key, rows, cancelled).await?;
            (cancelled, caller.drain) = (share.cancelled, share.drain);
            (steps::answer(place, key, &share.driven).await?, share.driven)
        } else {
            if std::mem::take(&mut must_move) {
                rows::move_to_steps(place, &mut cancelled).await?;
            }
            let Some(answer) = caller.drive(&request, &mut cancelled).await? else {
                ctx.set(STATUS, killed());
                return Err(refusal(&was_killed(thread)).into());
            };
            (answer.clone(), caller.read(answer).await?)
        };
        match driven {
            Driven::More { steps, at: now } => {
                if call.supersteps_limit().is_none() && !hosted.graph.has_passes() {
                    call = call.max_supersteps(DEFAULT_LIMIT);
                }
                (call, at) = (call.after_drain(steps, now.since(at)), now);
            }
            Driven::Ended(end)
                if waits && !cancelled && (end.is_interrupted() || was_answered && is_bad_answer(&end)) =>
            {
                match caller.wait_answer(&end).await? {
                    Some((answer, now)) => {
                        was_answered = answer != RunCall::proceed();
                        (call, at) = (answer.set_as(&call), at.max(now));
                    }
                    None => break answer,
                }
            }
            driven => {
                ctx.set(STATUS, status_of(&driven));
                if let Driven::Ended(end) = &driven
                    && let Some(until) = end.sleeps_until()
                {
                    caller.wake_at(until, RunCall::proceed().set_as(&call), &info).await?;
                }
                break answer;
            }
        }
    };
    if let Some(posts) = hosted.posts(&info, thread) {
        posts.end();
    }
    Ok(answer)
}

/// One call of a thread.
struct Caller<'a> {
    hosted: &'a Hosted,
    ctx: &'a Journal,
    thread: &'a str,
    key: &'a SealKey,
    invocation: &'a str,
    /// The signal that asks for a drain; `None` once it has come.
    drain: Option<Handle>,
}

impl Caller<'_> {
    /// Has the steps carry out a call. A cancellation of this invocation reaches the steps, which then end
    /// the call in good order; so their answer is waited for all the same. A drain is passed on to them.
    /// `None` if they were killed.
    async fn drive(
        &mut self,
        request: &DriveRequest,
        cancelled: &mut bool,
    ) -> Result<Option<Bytes>, HandlerError> {
        let payload = self.hosted.wire.send(self.key, self.label(Part::Drive), request).await;
        let payload = payload.map_err(of_wire)?;
        let target = RequestTarget::object(self.hosted.steps(), self.thread, "drive");
        let call = self.ctx.call(target, payload);
        if *cancelled && let Ok(handle) = call.invocation_handle().await {
            handle.cancel();
        }
        loop {
            let handles = [handle_of(&call)].into_iter().chain(self.drain).collect();
            match self.ctx.select(handles).await {
                Ok(1) => {
                    self.drain = None;
                    match call.invocation_handle().await {
                        Ok(steps) => self.ctx.send_signal(steps.invocation_id(), DRAIN),
                        Err(error) if is_cancel(&error) => *cancelled = true,
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(_) => {
                    return match call.await {
                        Ok(answer) => Ok(Some(answer)),
                        Err(error) if is_kill(&error) => Ok(None),
                        Err(error) => Err(error.into()),
                    };
                }
                Err(error) if is_cancel(&error) => *cancelled = true,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn read(&self, answer: Bytes) -> Result<Driven, HandlerError> {
        let read = self.hosted.wire.receive(self.label(Part::Driven), answer).await;
        Ok(read.map_err(of_wire)?.0)
    }

    /// Waits in this invocation for an answer to the open interrupts, or for the end of a sleep. Returns the
    /// call that goes on, and its time; `None` if the invocation is cancelled meanwhile.
    async fn wait_answer(&self, end: &RunEnd) -> Result<Option<(RunCall, Micros)>, HandlerError> {
        let (id, awakeable) = self.ctx.awakeable();
        self.ctx.set(WAITING, id);
        if end.is_interrupted() {
            let state = json!({
                "state": "waiting", INVOCATION: self.invocation, "interrupts": end.interrupts().len()
            });
            self.ctx.set(STATUS, shown(&state));
        }
        let mut handles = vec![handle_of(&awakeable)];
        let until = end.sleeps_until();
        if let Some(until) = until {
            // The runtime keeps the end of the first execution.
            let rest = until.duration_since(SystemTime::now()).unwrap_or_default();
            handles.push(handle_of(&self.ctx.sleep(rest)));
        }
        let first = self.ctx.select(handles).await;
        self.ctx.clear(WAITING);
        match first {
            Ok(0) => {
                let label = self.label(Part::Request);
                let read = self.hosted.wire.receive::<ThreadRequest>(label, awakeable.await?).await;
                let ThreadRequest { call, at, .. } = read.map_err(of_wire)?.0;
                Ok(Some((call, at)))
            }
            Ok(_) => Ok(until.map(|until| (RunCall::proceed(), Micros::of(until)))),
            Err(error) if is_cancel(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Has this thread go on by itself at the end of a sleep.
    async fn wake_at(&self, until: SystemTime, call: RunCall, info: &CallInfo) -> Result<(), HandlerError> {
        let CallInfo { headers, name, .. } = info.clone();
        let request = ThreadRequest { call, at: Micros::of(until), headers, waits: false, name };
        let payload = self.hosted.wire.send(self.key, self.label(Part::Request), &request).await;
        let payload = payload.map_err(of_wire)?;
        let target = RequestTarget::object(&*self.hosted.name, self.thread, "wake");
        // The runtime keeps the time of the first execution.
        self.ctx.send(target, payload, until.duration_since(SystemTime::now()).unwrap_or_default());
        Ok(())
    }

    fn label(&self, part: Part) -> crate::wire::Label<'_> {
        self.hosted.label(part, self.thread)
    }
}

/// Cancels the call that has the thread. Answers with its invocation, or with nothing. An invocation that was
/// killed at the server could not say so: the client looks for it.
pub(super) async fn cancel(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    hosted.check_order(Order::Cancel, &about.key, input).await?;
    let running = status(ctx).await?[INVOCATION].as_str().map(str::to_owned);
    if let Some(running) = &running {
        ctx.cancel(running);
    }
    Ok(running.unwrap_or_default().into())
}

/// Has the call that runs in the thread stop at its next boundary. Answers as [`cancel`] does; one that waits
/// for an answer has nothing to stop.
pub(super) async fn drain(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    hosted.check_order(Order::Drain, &about.key, input).await?;
    let status = status(ctx).await?;
    let running = status[INVOCATION].as_str().filter(|_| status["state"] == "running");
    if let Some(running) = running {
        ctx.send_signal(running, DRAIN);
    }
    Ok(running.unwrap_or_default().to_owned().into())
}

/// Mends what a call has left that was killed at the server: no other call has the thread now.
pub(super) async fn settle(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    hosted.check_order(Order::Settle, &about.key, input).await?;
    if !status(ctx).await?[INVOCATION].is_null() {
        ctx.set(STATUS, killed());
        ctx.clear(WAITING);
    }
    Ok(Bytes::new())
}

/// Deletes the thread, after the calls that came before.
pub(super) async fn delete(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    hosted.check_order(Order::Delete, &about.key, input.clone()).await?;
    let target = RequestTarget::object(hosted.steps(), &*about.key, "delete");
    ctx.call(target, input).await?;
    ctx.clear_all();
    Ok(Bytes::new())
}

/// Hands an answer to the call that waits for it.
pub(super) async fn answer(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let thread = &*about.key;
    // An answer that cannot be read is refused here, and not where the caller waits.
    let label = hosted.label(Part::Request, thread);
    hosted.wire.receive::<ThreadRequest>(label, input.clone()).await.map_err(of_wire)?;
    let Some(id) = ctx.get::<String>(WAITING).await? else {
        return Err(refusal(&nothing_waits(thread)).into());
    };
    ctx.resolve_awakeable(&id, input);
    Ok(Bytes::new())
}

async fn status(ctx: &Journal) -> Result<Value, HandlerError> {
    let shown = ctx.get::<Bytes>(STATUS).await?.unwrap_or_default();
    Ok(serde_json::from_slice(&shown).unwrap_or_default())
}

fn killed() -> Bytes {
    shown(&json!({ "state": "killed" }))
}

fn was_killed(thread: &str) -> Error {
    let problem = format!(
        "the call of thread `{thread}` was killed at the server: what it has committed is kept, and `proceed()` runs \
         the tasks of its open superstep again. Cancel calls instead, which loses nothing"
    );
    Error::new(Code::Host, problem)
}

fn nothing_waits(thread: &str) -> Error {
    let problem = format!(
        "no call of thread `{thread}` waits for an answer: `.answer(..)` is for calls with `.wait_answer()`, and \
         `.resume(..)` for a thread that waits without one"
    );
    Error::new(Code::NothingToResume, problem)
}

/// Whether an answer did not fit its question, which is then still open.
fn is_bad_answer(end: &RunEnd) -> bool {
    let codes = [Code::BadAnswer, Code::UnknownInterrupt, Code::AmbiguousAnswer];
    end.error_code().is_some_and(|code| codes.iter().any(|known| known.as_str() == code))
}

/// JSON as the server shows it, and not as a string of JSON.
fn shown(status: &Value) -> Bytes {
    status.to_string().into()
}

fn status_of(driven: &Driven) -> Bytes {
    let Driven::Ended(end) = driven else { return shown(&json!({ "state": "refused" })) };
    let questions = end.interrupts().iter().filter(|interrupt| interrupt.until.is_none()).count();
    let mut state = match (end.error_code(), end.stop_reason()) {
        (Some(code), _) => json!({ "state": "failed", "code": code }),
        (_, Some(reason)) => json!({ "state": "stopped", "reason": reason.as_str() }),
        _ if !end.is_interrupted() => json!({ "state": "finished" }),
        _ if questions == 0 => json!({ "state": "sleeping" }),
        _ => json!({ "state": "interrupted", "interrupts": questions }),
    };
    if let Some(until) = end.sleeps_until() {
        state[UNTIL] = json!(Micros::of(until));
    }
    shown(&state)
}
