//! [`CallPlan`]: all settings of a call, and its execution.

use std::sync::{Arc, OnceLock};

use tracing::{Instrument, Span};

use crate::context::{ValuesByType, check_contexts};
use crate::engine::call::edit::Edit;
use crate::engine::halt::Limits;
use crate::error::{Code, Error};
use crate::event::EventQueue;
use crate::persistence::Persistence;
use crate::persistence::lease::{LeaseSource, RunLease, TakenThread, busy, unless_cancelled};
use crate::policy::Siblings;
use crate::run::attached::{Attached, no_checkpointer};
use crate::run::begin::{CallRequest, FoundThread};
use crate::run::future::AnyRun;
use crate::run::ready::{OpenedThread, PreparedCall};
use crate::run::span::{record_outcome, record_run, run_span};
use crate::run::{begin, upkeep};
use crate::spans::may_be_heard;
use crate::step::MakeEdits;
use crate::typed::AnyState;
use crate::words::{Budget, Durability, MAX_SUPERSTEPS, OpenRequest, Outcome, View, Views, WhenBusy};
use agentgraph_checkpoint::CheckpointId;
use agentgraph_checkpoint::engine::Leased;

/// The default number of events that a run may be ahead of its stream's reader.
const STREAM_CAPACITY: usize = 64;

/// The end of the message if a refused call has already taken the thread from another run.
const TOOK_OVER: &str =
    "; the call has taken the thread from another run, which is suspended now: `proceed()` continues it";

/// All settings of a call.
pub(super) struct CallPlan {
    pub(super) graph: Arc<Attached>,
    /// The request, or the error of an impossible one.
    pub(super) request: Result<CallRequest, Error>,
    pub(super) thread: Option<Arc<str>>,
    /// The checkpoint to replay, to begin a run on, or to edit.
    pub(super) from: Option<CheckpointId>,
    pub(super) copied_from: Option<Arc<str>>,
    /// The state that a run without a store starts on, instead of the initial one.
    pub(super) begins_on: Option<Arc<AnyState>>,
    pub(super) edits: Vec<MakeEdits>,
    /// Edits of the state that follow the one of the request.
    pub(super) further_edits: Vec<Edit>,
    /// The values of the call; `None` for most calls.
    pub(super) context: Option<Box<ValuesByType>>,
    pub(super) limits: CallLimits,
    pub(super) keeping: CallKeeping,
    pub(super) stream: StreamSettings,
}

/// The limits of a call.
pub(super) struct CallLimits {
    pub(super) max_supersteps: u64,
    pub(super) max_concurrency: usize,
    pub(super) halt: Limits,
    pub(super) budget: Option<Budget>,
    /// The policy of the graph if `None`.
    pub(super) siblings: Option<Siblings>,
}

/// The settings for storing a run, and for other runs of its thread.
#[derive(Default)]
pub(super) struct CallKeeping {
    pub(super) durability: Durability,
    pub(super) when_busy: WhenBusy,
    pub(super) abandons: bool,
    /// Whether an `invoke` leaves out everything that the thread has.
    pub(super) from_start: bool,
}

/// The settings of a stream: its views, and how far the run may be ahead of its reader.
pub(super) struct StreamSettings {
    pub(super) views: Views,
    pub(super) capacity: usize,
    pub(super) subgraphs: bool,
}

impl CallPlan {
    pub(super) fn new(graph: Arc<Attached>, request: Result<CallRequest, Error>) -> Self {
        CallPlan {
            graph,
            request,
            thread: None,
            from: None,
            copied_from: None,
            begins_on: None,
            edits: Vec::new(),
            further_edits: Vec::new(),
            context: None,
            limits: CallLimits {
                max_supersteps: MAX_SUPERSTEPS,
                max_concurrency: usize::MAX,
                halt: Limits::default(),
                budget: None,
                siblings: None,
            },
            keeping: CallKeeping::default(),
            stream: StreamSettings {
                views: Views::of([View::Updates, View::Custom]),
                capacity: STREAM_CAPACITY,
                subgraphs: false,
            },
        }
    }
}

impl CallPlan {
    /// A queue for the events of the call.
    pub(super) fn event_queue(&self) -> EventQueue {
        let StreamSettings { views, capacity, .. } = self.stream;
        EventQueue::new(views, capacity, &self.graph.shared.names, self.graph.core.schema.clone())
    }

    pub(super) fn run(self: Box<Self>, events: Option<Arc<EventQueue>>) -> AnyRun {
        let thread = self.thread.clone();
        let located = move |error: Error| error.on_thread(thread.as_deref());
        // A future of its own: that of a run that stores nothing has room for the whole run.
        if self.graph.persistence.is_some() {
            return Box::pin(async move {
                let outcome = if may_be_heard() {
                    Box::pin(self.run_in_span(events)).await
                } else {
                    self.run_kept(events, Span::none()).await
                };
                outcome.map_err(located)
            });
        }
        Box::pin(async move {
            if may_be_heard() {
                return Box::pin(self.run_in_span(events)).await.map_err(located);
            }
            // A `match` on the result would keep it in the future, beside the call.
            let mut ready = self.make_ready_alone(events).map_err(&located)?;
            let driven = ready.drive_to_the_end().await;
            ready.outcome(driven).map_err(located)
        })
    }

    /// Runs the call in its span. A function of its own: the future of a call without a span stays small.
    async fn run_in_span(
        self: Box<Self>,
        events: Option<Arc<EventQueue>>,
    ) -> Result<Outcome<AnyState>, Error> {
        let span = run_span(self.thread.as_deref(), self.graph.shared.agent.as_deref());
        let outcome = if self.graph.persistence.is_some() {
            Box::pin(self.run_kept(events, span.clone())).instrument(span.clone()).await
        } else {
            match self.make_ready_alone(events) {
                Ok(mut ready) => {
                    record_run(&span, ready.run_id());
                    let driven = ready.drive_to_the_end().instrument(span.clone()).await;
                    ready.outcome(driven)
                }
                Err(error) => Err(error),
            }
        };
        record_outcome(&span, &outcome);
        outcome
    }

    /// Prepares a run that stores nothing.
    fn make_ready_alone(mut self: Box<Self>, events: Option<Arc<EventQueue>>) -> Result<PreparedCall, Error> {
        let start = self.take_start()?;
        self.check_context(&start)?;
        match (self.from, &self.thread) {
            (Some(_), _) => Err(no_checkpointer()),
            // `make_ready` has a better error for a call that continues a run.
            (None, Some(thread)) if matches!(start, CallRequest::Invoke(_)) => Err(begin::no_threads(thread)),
            (None, _) => self.make_ready(start, None, events),
        }
    }

    fn take_start(&mut self) -> Result<CallRequest, Error> {
        std::mem::replace(&mut self.request, Ok(CallRequest::Proceed))
    }

    /// Checks that the nodes get the values that they require of the caller. A host has its own.
    fn check_context(&self, start: &CallRequest) -> Result<(), Error> {
        if matches!(start, CallRequest::Edit(_)) || self.graph.host.is_some() {
            return Ok(());
        }
        let given = self.context.as_deref();
        check_contexts(start.method(), given, &self.graph.core.about.contexts)
            .map_err(|problem| Error::new(Code::MissingContext, problem))
    }

    /// Reads the thread as the call finds it, with the open requests of its subgraphs. `replaces`: the call
    /// takes the thread from another run.
    async fn open<'a>(
        &self,
        start: &CallRequest,
        persistence: &'a Persistence,
        name: Arc<str>,
        replaces: bool,
    ) -> Result<(FoundThread<'a>, Vec<OpenRequest>), Error> {
        let core = &self.graph.core;
        let invokes = matches!(start, CallRequest::Invoke(_));
        let rolls_back = replaces && invokes && self.keeping.when_busy == WhenBusy::RollBack;
        let mut thread = if self.keeping.from_start && invokes {
            FoundThread::at_start(persistence, name).await?
        } else if rolls_back && self.from.is_none() {
            FoundThread::before_newest_run(core, persistence, name).await?
        } else {
            let edits = matches!(start, CallRequest::Edit(_));
            FoundThread::open(core, persistence, name, self.from, edits).await?
        };
        thread.gives_up = self.keeping.abandons || replaces;
        if let Some(original) = &self.copied_from {
            thread.is_copy_of(core, original)?;
        }
        let inside = if core.uses.graphs {
            let goes_on = self.copied_from.is_none() && !invokes;
            Box::pin(thread.open_inside(core, goes_on)).await?
        } else {
            Vec::new()
        };
        Ok((thread, inside))
    }

    /// Carries the call out up to its first write, without a lease, so that a call that would be refused
    /// takes the thread from no run. The other run may change the thread meanwhile, so the call itself makes
    /// the same checks again.
    async fn try_out(
        &mut self,
        start: &CallRequest,
        persistence: &Persistence,
        name: &Arc<str>,
    ) -> Result<(), Error> {
        let (persistence, writes) = persistence.read_only();
        let (thread, inside) = self.open(start, &persistence, Arc::clone(name), true).await?;
        let tried = Box::new(CallPlan {
            thread: self.thread.clone(),
            edits: std::mem::take(&mut self.edits),
            ..CallPlan::new(self.graph.clone(), Ok(CallRequest::Proceed))
        });
        let found = OpenedThread { thread, fence: 0, stop: None, inside };
        let ready = tried.make_ready(start.clone(), Some(found), None)?;
        self.edits = ready.try_out(&writes).await?;
        Ok(())
    }

    /// Runs it on its thread, which no other run writes meanwhile.
    async fn run_kept(
        mut self: Box<Self>,
        events: Option<Arc<EventQueue>>,
        span: Span,
    ) -> Result<Outcome<AnyState>, Error> {
        let Some(persistence) = self.graph.persistence.clone() else { return Err(begin::no_thread()) };
        let start = self.take_start()?;
        let name = self.thread.clone().ok_or_else(begin::no_thread)?;
        self.check_context(&start)?;
        let graph = self.graph.clone();
        let behind = match self.keeping.durability {
            // Fails without a runtime, so it comes before the call takes the thread from another run.
            Durability::Async => Some(persistence.behind()?),
            _ => None,
        };
        // The head that this call reads contains the commits that earlier runs have queued.
        persistence.settle(&name).await;
        let TakenThread { mut lease, replaces } = self.take_thread(&start, &persistence, &name).await?;
        if let Some(behind) = behind {
            lease.through(behind);
        }
        let fence = lease.fence();
        // Set by the work below once the call is accepted, and read after it: the work itself is dropped if
        // the lease is lost.
        let began_at = OnceLock::new();
        let work = async {
            let (thread, inside) = Box::pin(self.open(&start, &persistence, name, replaces)).await?;
            let head = thread.head();
            let found = OpenedThread { thread, fence, stop: lease.stop_request(), inside };
            let mut ready = self.make_ready(start, Some(found), events)?;
            record_run(&span, ready.run_id());
            // Two blocks that the allocator keeps at hand cost less than a large one.
            let driven = Box::pin(ready.drive_to_the_end()).await;
            if ready.has_begun() {
                began_at.get_or_init(|| head);
            }
            ready.outcome(driven)
        };
        let mut outcome = lease.run_while_held(Box::pin(work)).await;
        if let Err(mut error) = outcome {
            // The thread has changed since the call was tried out.
            if replaces && began_at.get().is_none() && error.code() != Code::LeaseLost {
                error = error.adding(TOOK_OVER);
            }
            outcome = Err(lease.reason(error).await);
        }
        if let (Ok(outcome), Some(began_at)) = (&outcome, began_at.get()) {
            prune_if_due(&graph, &persistence, &lease, (*began_at, outcome.checkpoint())).await;
        }
        lease.end().await;
        outcome
    }

    /// Takes the thread's lease, from another run if the call replaces one.
    async fn take_thread(
        &mut self,
        start: &CallRequest,
        persistence: &Persistence,
        name: &Arc<str>,
    ) -> Result<TakenThread, Error> {
        if self.keeping.when_busy != WhenBusy::Queue {
            let leases = LeaseSource::of(persistence, &self.graph.shared.services);
            if let Some(taken) = leases.take(name).await? {
                return Ok(taken);
            }
        }
        Box::pin(self.take_busy_thread(start, persistence, name)).await
    }

    /// Takes the thread's lease when another run has it, or waits in line for it.
    async fn take_busy_thread(
        &mut self,
        start: &CallRequest,
        persistence: &Persistence,
        name: &Arc<str>,
    ) -> Result<TakenThread, Error> {
        let services = Arc::clone(&self.graph.shared.services);
        let leases = LeaseSource::of(persistence, &services);
        let cancel = self.limits.halt.cancel.clone();
        let cancel = cancel.as_ref();
        if self.keeping.when_busy == WhenBusy::Queue {
            return unless_cancelled(name, cancel, leases.wait_for(name)).await;
        }
        if self.keeping.when_busy == WhenBusy::Refuse {
            let taken = unless_cancelled(name, cancel, leases.take_free(name)).await?;
            return taken.ok_or_else(|| busy(name));
        }
        self.try_out(start, persistence, name).await?;
        leases.seize(name).await
    }
}

/// Prunes the thread of a finished call that began at one step and ended at a checkpoint, if that is due.
async fn prune_if_due(
    graph: &Attached,
    persistence: &Persistence,
    lease: &RunLease,
    (began_at, ended_at): (u64, Option<CheckpointId>),
) {
    let Some(retention) = &persistence.retention else { return };
    if !upkeep::is_due(retention, began_at, ended_at) {
        return;
    }
    let saver = Leased { inner: Arc::clone(&persistence.saver), fence: lease.fence() };
    let pruning = upkeep::prune_thread(graph, &saver, lease.thread(), retention, false);
    if let Err(error) = Box::pin(lease.run_while_held(pruning)).await {
        // The result of the run is stored. The next stride prunes again.
        tracing::warn!(target: "agentgraph", %error, thread = lease.thread(), "a thread was not pruned");
    }
}
