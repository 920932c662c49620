//! [`DrivenRun`]: a run that its caller drives.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use tokio::task::coop::unconstrained;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::end::RunEnd;
use super::image::DrivenStore;
use super::need::{Need, NeedId, Reply};
use crate::error::{Code, Error};
use agentgraph_checkpoint::canonical::Canonical;
use agentgraph_checkpoint::shows;

/// A call on a thread whose driver answers its needs: see [`HostedGraph::drive`](super::HostedGraph::drive).
pub struct DrivenRun {
    /// `None` once it has ended.
    work: Option<BoxFuture<'static, RunEnd>>,
    woken: Arc<Woken>,
    desk: Arc<Desk>,
    store: Arc<DrivenStore>,
    /// Deliveries, in order. The run comes to rest after each, so the result does not depend on how many were
    /// given at once.
    inbox: VecDeque<Delivery>,
    controls: Controls,
    /// The end, and the last change of rows, which has to be stored before the end counts.
    end: Option<RunEnd>,
    last_change: Option<NeedId>,
    listener: Option<Listener>,
    /// The events since the last [`take_events`](DrivenRun::take_events).
    events: Vec<serde_json::Value>,
}

/// Takes the events since the last call, in their JSON form.
pub(super) type Listener = Box<dyn FnMut() -> Vec<serde_json::Value> + Send + Sync>;

/// The means to stop a run from outside, and its count of steps.
#[derive(Clone, Default)]
pub(super) struct Controls {
    pub(super) cancel: CancellationToken,
    pub(super) drain: CancellationToken,
    pub(super) steps: Arc<AtomicU64>,
}

enum Delivery {
    /// Nothing: the first poll.
    Start,
    Reply(NeedId, Reply),
    Cancel,
    Drain,
}

/// Whether the run wants to be polled.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl DrivenRun {
    pub(super) fn new(
        work: BoxFuture<'static, RunEnd>,
        desk: Arc<Desk>,
        store: Arc<DrivenStore>,
        controls: Controls,
        listener: Option<Listener>,
    ) -> Self {
        DrivenRun {
            work: Some(work),
            woken: Arc::default(),
            desk,
            store,
            inbox: VecDeque::from([Delivery::Start]),
            controls,
            end: None,
            last_change: None,
            listener,
            events: Vec::new(),
        }
    }

    /// Lets the run go on with the replies given since the last call, until it waits or has ended. Returns
    /// what it asks for now, in the order of the asking; needs of earlier calls are not repeated. The list
    /// may be empty while earlier needs are open, and is empty when the run has [ended](Self::end).
    ///
    /// # Errors
    /// [`Code::Host`] if the run waits, and for nothing that it has asked for. Code that runs with the loop
    /// then awaits something by itself: a layer around a subgraph. Without such code it is a mistake in the
    /// engine, to be reported.
    pub fn needs(&mut self) -> Result<Vec<Need>, Error> {
        let mut needs = Vec::new();
        while let Some(delivery) = self.inbox.pop_front() {
            match delivery {
                Delivery::Start => {}
                Delivery::Reply(id, reply) => self.desk.deliver(id, reply),
                Delivery::Cancel => self.controls.cancel.cancel(),
                Delivery::Drain => self.controls.drain.cancel(),
            }
            self.come_to_rest();
            needs.extend(self.desk.take_asked());
        }
        if self.work.is_some() && !self.desk.has_open_needs() {
            let problem = "a driven run waits for nothing that its driver could give: code that runs with the loop, such as a \
                 layer around a subgraph, awaits something by itself; move it into a node, and report the mistake if there \
                 is no such code";
            return Err(Error::new(Code::Host, problem));
        }
        Ok(needs)
    }

    /// Answers a need. The run goes on with the next call of [`needs`](Self::needs).
    ///
    /// # Errors
    /// [`Code::Host`] if the run has not asked for it, if it was answered before, or if the reply is of
    /// another kind than the need, or of another task. Nothing has changed then. A reply to a need that was
    /// withdrawn is ignored.
    pub fn give(&mut self, id: NeedId, reply: Reply) -> Result<(), Error> {
        if self.desk.accept(id, &reply)? {
            self.inbox.push_back(Delivery::Reply(id, reply));
        }
        Ok(())
    }

    /// How the call ended, once it has and everything is stored.
    pub fn end(&mut self) -> Option<RunEnd> {
        if self.last_change.is_some() { None } else { self.end.clone() }
    }

    /// Stops the run where it waits: its tasks and timers are withdrawn, finished results are stored, and the
    /// call ends as [stopped](crate::StopReason::Cancelled). Takes effect with the next call of
    /// [`needs`](Self::needs).
    pub fn cancel(&mut self) {
        self.inbox.push_back(Delivery::Cancel);
    }

    /// Stops the run at its next boundary, after started tasks are finished and committed. Takes effect with
    /// the next call of [`needs`](Self::needs).
    pub fn drain(&mut self) {
        self.inbox.push_back(Delivery::Drain);
    }

    /// The events since the last call, in their JSON form (`docs/events.md`), if the call
    /// [listens](super::RunCall::views) to some. The end of the call is not among them: it is
    /// [`end`](Self::end). A run that is built again has the same events with the same numbers (`seq`) again,
    /// so a receiver can drop repeats.
    pub fn take_events(&mut self) -> Vec<serde_json::Value> {
        std::mem::take(&mut self.events)
    }

    /// The run's time: that of its ground, moved on by replies and by timers.
    pub fn now(&self) -> SystemTime {
        self.desk.now()
    }

    /// The supersteps that this call has begun, as [`max_supersteps`](crate::RunBuilder::max_supersteps)
    /// counts them: activations in an eager graph, nodes in a pass.
    pub fn steps(&self) -> u64 {
        self.controls.steps.load(Ordering::Acquire)
    }

    /// Polls the run until it waits for a reply.
    fn come_to_rest(&mut self) {
        if let Some(work) = &mut self.work {
            let waker = Waker::from(Arc::clone(&self.woken));
            let mut cx = Context::from_waker(&waker);
            let _canonical = Canonical::begin();
            loop {
                // Cleared before the poll: a wake during the poll asks for another one, and must not be lost.
                self.woken.0.store(false, Ordering::Release);
                let polled = pin!(unconstrained(work.as_mut())).poll(&mut cx);
                // A run may wait until its events are taken.
                self.events.extend(self.listener.iter_mut().flat_map(|take| take()));
                match polled {
                    Poll::Ready(end) => {
                        self.work = None;
                        self.end = Some(end);
                        self.last_change = self.store.hand_out_rest();
                        break;
                    }
                    Poll::Pending if self.woken.0.load(Ordering::Acquire) => {}
                    Poll::Pending => return,
                }
            }
        }
        if let Some(id) = self.last_change
            && let Some(reply) = self.desk.take_reply(id)
        {
            self.last_change = None;
            if let Reply::Stored(Err(error)) = reply {
                self.end = Some(RunEnd::failed(&error.into()));
            }
        }
    }
}

shows!(DrivenRun: |it| { steps: it.steps(), has_ended: it.end.is_some() });
