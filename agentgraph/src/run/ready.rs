//! [`PreparedCall`]: a call with everything it needs, ready to be driven to its end.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;

use super::begin::{CallRequest, EditBase, FirstAction, FoundThread, Opening};
use super::call_plan::CallPlan;
use super::levels;
use super::nested;
use super::upkeep;
use crate::context::edits::{CollectedEdit, Desk};
use crate::context::{Bounds, Call, Control, Editing, Nest, RunShared, Spending};
use crate::engine::call::edit::Edit;
use crate::engine::halt::Halt;
use crate::engine::host::TaskRunner;
use crate::engine::journal::Journal;
use crate::engine::left_over::EditedTasks;
use crate::engine::listeners::Listeners;
use crate::engine::once::once_storage;
use crate::engine::records::Records;
use crate::engine::runtime::TaskRuntime;
use crate::engine::task_id::StepPlace;
use crate::engine::{Loop, Pause};
use crate::error::{Code, Error};
use crate::event::EventQueue;
use crate::graph::Discipline;
use crate::panic::{NodePanic, panic_of};
use crate::persistence::read_only::ReadOnly;
use crate::persistence::stop::StopRequest;
use crate::policy::Places;
use crate::session::Sessions;
use crate::step::MakeEdits;
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{Durability, OpenRequest, Outcome};
use agentgraph_checkpoint::RunId;

/// Built in one synchronous step: values that live across an await are part of the run's future, which is
/// written and moved before the first node runs.
pub(super) struct PreparedCall {
    /// Boxed once, so that moving the call does not move it.
    run: Box<Loop>,
    next: FirstAction,
    edits: Vec<MakeEdits>,
    further_edits: Vec<Edit>,
    /// Whether it edits the state instead of running nodes.
    is_edit: bool,
    /// Whether the call was accepted: its first action is done.
    has_begun: bool,
}

/// The thread of a stored call, as opened.
pub(super) struct OpenedThread<'a> {
    pub(super) thread: FoundThread<'a>,
    pub(super) fence: u64,
    pub(super) stop: Option<Arc<StopRequest>>,
    /// The open requests of its subgraphs.
    pub(super) inside: Vec<OpenRequest>,
}

impl CallPlan {
    pub(super) fn make_ready(
        self: Box<Self>,
        start: CallRequest,
        found: Option<OpenedThread<'_>>,
        events: Option<Arc<EventQueue>>,
    ) -> Result<PreparedCall, Error> {
        let (thread, fence, stop, inside) = match found {
            Some(OpenedThread { thread, fence, stop, inside }) => (Some(thread), fence, stop, inside),
            None => (None, 0, None, Vec::new()),
        };
        let method = start.method();
        let mut begun = Opening::of(&self.graph, start, thread, inside)?;
        match &mut begun.parts.journal {
            Some(journal) => self.set_up(journal, fence)?,
            None => {
                if let Some(state) = &self.begins_on {
                    begun.parts.position = begun.parts.position.with_state(Arc::clone(state));
                }
            }
        }
        if let Some(events) = &events {
            events.begin(begun.run);
        }
        let nest = self.nest(&mut begun, events.as_ref());
        let CallPlan { graph, thread, edits, further_edits, context, limits, .. } = *self;
        let services = &graph.shared.services;
        let spending = Spending::new(limits.budget, begun.spent, || services.now());
        let halt = Halt::of(limits.halt, stop, spending.time_left(), services);
        let is_eager = graph.core.rules.discipline == Discipline::Eager;
        let Opening { run, parts, next, .. } = begun;
        let is_stored = parts.journal.is_some();
        let shared = Arc::new(RunShared {
            graph: Arc::clone(&graph.shared),
            run,
            thread,
            call: Call::new(method, context),
            control: Control::of(is_eager, once_storage(parts.journal.as_deref())),
            sessions: Sessions::open(&graph.shared.sessions, &parts.sessions, parts.sessions_changed)?,
            audience: EventQueue::audience(events.as_ref()),
            services: Arc::clone(services),
            bounds: Bounds::new(limits.max_supersteps, spending),
            outer: None,
            nest,
            editing: Editing::at(Arc::clone(&graph.core) as Arc<dyn Desk>, is_stored || graph.host.is_some()),
        });
        // The records of a subgraph whose result is the sum of its updates contain these updates, also if an
        // edit writes them.
        let updates = parts.journal.as_deref().and_then(Journal::call).is_some_and(|call| call.updates);
        let traced = updates.then(AnyUpdate::default);
        let records = Records::new(parts.journal, &parts.position, parts.outputs, traced);
        let siblings = limits.siblings.unwrap_or(graph.core.rules.siblings);
        let runner = TaskRunner::of(graph.host.as_ref());
        let places = match &shared.nest {
            Some(nest) => nest.places.clone(),
            None => Places::new(limits.max_concurrency, false),
        };
        let runtime = TaskRuntime::new(runner, shared, siblings, places);
        let listeners = Listeners::new(events, halt);
        let conductors = (graph.driver.clone(), graph.express.clone());
        let mut run = Loop::new(parts.position, parts.inheritance, records, listeners, runtime, conductors);
        run.show_edits();
        let is_edit = matches!(next, FirstAction::Edit(..));
        Ok(PreparedCall { run, next, edits, further_edits, is_edit, has_begun: false })
    }

    /// Sets when a run's records are stored, under which fence, and which old ones go.
    fn set_up(&self, journal: &mut Journal, fence: u64) -> Result<(), Error> {
        let Some(persistence) = &self.graph.persistence else { return Ok(()) };
        match self.keeping.durability {
            Durability::Sync => {}
            Durability::Async => journal.hand_over_to(persistence.behind()?),
            Durability::Exit => {
                let random = || self.graph.shared.services.random();
                journal.wait_for_the_end(nested::moves_from(&self.graph.core, random));
            }
        }
        // Stores do not check the fence 0, which a call without a lease has.
        if fence > 0 {
            journal.set_fence(fence);
        }
        if let (Some(retention), Some(thread)) = (&persistence.retention, &self.thread) {
            journal.prune_with(upkeep::pruning(&self.graph, thread, retention));
        }
        Ok(())
    }

    /// The part of the run that subgraphs need, if the graph may have any.
    fn nest(&self, begun: &mut Opening, events: Option<&Arc<EventQueue>>) -> Option<Box<Nest>> {
        self.graph.core.uses.graphs.then(|| {
            let saver = begun.parts.journal.as_deref().map(Journal::saver);
            let resumed = !matches!(begun.next, FirstAction::Input { .. } | FirstAction::Fork);
            let drain = self.limits.halt.drain.clone();
            let memories =
                begun.parts.journal.as_deref_mut().map(Journal::share_memories).unwrap_or_default();
            let (durability, places) =
                (self.keeping.durability, Places::new(self.limits.max_concurrency, true));
            let mut nest = Nest::new(saver, durability, places, drain, resumed, memories);
            let heard = events.filter(|_| self.stream.subgraphs);
            nest.hears = heard.map(|events| Arc::clone(events) as _);
            nest.host = self.graph.host.as_ref().map(|runner| Arc::clone(runner.host()));
            Box::new(nest)
        })
    }
}

impl PreparedCall {
    /// Panics of nodes are caught where the nodes run. This catches those of routes, reducers and serialised
    /// values.
    pub(super) async fn drive_to_the_end(&mut self) -> Result<Pause, Error> {
        // After a panic the loop runs no further step: it stores the failure, and `position.merging` says
        // whether its state is that of a checkpoint.
        let graph = Arc::clone(self.run.graph_shared());
        let caught = {
            // Pinned here: an async function that pins its argument has room for it twice, and each run would
            // be four times as large.
            let run = pin!(self.drive());
            let run = pin!(levels::drive(run));
            let driven = graph.slow_polls.watch_run(&*graph.services, run);
            AssertUnwindSafe(driven).catch_unwind().await
        };
        match caught {
            Ok(driven) => driven,
            Err(payload) if self.is_edit => Err(panicked(&*payload)),
            Err(payload) => Box::pin(self.run.keep_panic(panicked(&*payload))).await,
        }
    }

    async fn drive(&mut self) -> Result<Pause, Error> {
        self.begin().await?;
        self.has_begun = true;
        let run = &mut self.run;
        if self.is_edit {
            return Ok(Pause::Finished);
        }
        let mut paused = run.run_until_pause().await;
        if run.may_keep_failure(&paused) {
            paused = Box::pin(run.keep_failure(paused)).await;
        }
        if run.has_unreported_stops() && matches!(paused, Ok(Pause::Interrupted(_))) {
            paused = match Box::pin(run.note_inner_stops_reported()).await {
                Ok(()) => paused,
                Err(error) => Err(error),
            };
        }
        // Last, since it waits until the store has everything that was queued before.
        if run.has_to_settle() { Box::pin(run.settle(paused)).await } else { paused }
    }

    async fn begin(&mut self) -> Result<(), Error> {
        let edits = std::mem::take(&mut self.edits);
        let run = &mut self.run;
        match std::mem::replace(&mut self.next, FirstAction::GoOn(Vec::new())) {
            FirstAction::Input { input, abandoned } => {
                let (input, made) = run.edit_before(edits, input)?;
                if !made.is_empty() {
                    self.edits = vec![make_again(made)];
                }
                run.input(input, abandoned).await
            }
            _ if !edits.is_empty() => Err(edits_of_an_earlier_run()),
            FirstAction::Answer(answers, inside) => {
                run.adopt_failures();
                run.check_left_over()?;
                Box::pin(run.give_answers(answers, inside)).await
            }
            FirstAction::GoOn(inside) => {
                run.adopt_failures();
                run.end_sleeps(inside).await
            }
            FirstAction::Fork => {
                run.announce_fork();
                Box::pin(run.edit(Edit::Here(None), None)).await
            }
            FirstAction::Edit(edit, from) => {
                let further = std::mem::take(&mut self.further_edits);
                Box::pin(edit_state(run, (edit, further), from)).await
            }
        }
    }

    /// Begins a call that is only tried out, on a store that stores nothing. Returns its edits for the call
    /// itself: a closure of the caller is called once.
    pub(super) async fn try_out(mut self, writes: &ReadOnly) -> Result<Vec<MakeEdits>, Error> {
        match AssertUnwindSafe(self.begin()).catch_unwind().await {
            Ok(Err(refused)) if !writes.was_written() => return Err(refused),
            Ok(_) => {}
            Err(payload) => return Err(panicked(&*payload)),
        }
        self.run.check_left_over()?;
        Ok(self.edits)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The id of the run.
    pub(super) fn run_id(&self) -> RunId {
        self.run.run_id()
    }

    pub(super) fn outcome(self, driven: Result<Pause, Error>) -> Result<Outcome<AnyState>, Error> {
        let mut run = self.run;
        run.gather_stuck();
        match driven {
            // An edit does not end a run: its joins may still fire.
            Ok(pause) if self.is_edit => Ok(Outcome::of(run.into_end(), pause)),
            Ok(pause) => match run.stuck_error(&pause) {
                None => Ok(Outcome::of(run.into_end(), pause)),
                Some(error) => Err(run.fail_with(error)),
            },
            Err(error) => Err(run.fail_with(error)),
        }
    }
}

async fn edit_state(
    run: &mut Loop,
    (edit, further): (Edit, Vec<Edit>),
    from: Option<EditBase>,
) -> Result<(), Error> {
    if let Some(from) = &from {
        // The edit is a run of its own, and the failures belong to the run before.
        run.adopt_failures_of(from.run, from.id.step.saturating_add(from.ahead), from.thread.as_deref());
    }
    let copied = from.as_ref().and_then(|from| from.thread.clone());
    let thread = copied.or(run.thread()).unwrap_or_default();
    let namespace = run.namespace();
    let behind = from.map(|from| EditedTasks {
        place: StepPlace {
            thread: &thread,
            namespace: &namespace,
            run: from.run,
            branch: from.id.branch,
            parent: from.id.step.saturating_add(from.ahead),
        },
        writes: from.writes,
    });
    run.edit_in_order(edit, further, behind).await
}

/// Makes edits that were accepted before.
fn make_again(made: Vec<CollectedEdit>) -> MakeEdits {
    Box::new(|edits| made.into_iter().try_for_each(|(edit, node)| edits.submit(edit, node)))
}

fn edits_of_an_earlier_run() -> Error {
    let problem = "`.for_this_run(..)` edits the graph of a new run, and this call continues one: let a node \
                   edit it, with `ctx.edits()`";
    Error::new(Code::EditRejected, problem)
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Error {
    let NodePanic { message } = panic_of(payload);
    let problem = format!("a route, a reducer or the serialisation of a value panicked: {message}");
    Error::new(Code::NodePanicked, problem).with_source(NodePanic { message })
}
