//! The loop of a dependency graph. A pass is to a dependency graph what a superstep is to a state graph.
//!
//! A pass is committed as a whole: until it is over, its checkpoint is that of its start. Each node's result
//! is a pending write on that checkpoint, with the node's position in the order of completion and its edits.
//! A call that continues the pass replays these results in order, and has the same graph and the same queue.

mod commit;
mod execute;
mod far;
mod merge;
mod plan;

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_util::future::BoxFuture;

use crate::context::TaskOrigin;
use crate::context::edits;
use crate::context::edits::CollectedEdit;
use crate::context::host::{EncodedState, TaskCall, TaskDetails};
use crate::dependency::deps::Slot;
use crate::dependency::edits::{Op, PassDesk, SettledEdits, Transaction};
use crate::dependency::outputs::{Outputs, OutputsUpdate};
use crate::dependency::plan::MissReason;
use crate::dependency::wiring::Wiring;
use crate::dependency::{NotRun, NotRunReason, Output, PassInput, inline};
use crate::engine::driver::{Driver, FarNode, PassTurn};
use crate::engine::executor::node_error;
use crate::engine::halt::Cutoff;
use crate::engine::left_over::{Leftovers, TaskRemains};
use crate::engine::pass::far::far_node;
use crate::engine::pass::plan::PassReplay;
use crate::engine::running_tasks::RunningTasks;
use crate::engine::task_id::nowhere;
use crate::engine::{Loop, Pause, STEPS_WITHOUT_YIELD, yield_now};
use crate::error::Error;
use crate::failure::Failure;
use crate::policy::Siblings;
use crate::record::codec::Codec;
use crate::record::once::StoredOnce;
use crate::typed::{AnySchema, AnyState, AnyUpdate};
use crate::words::{AskedQuestion, DroppedEdits, EditError, GraphEdit, Interrupt, StopReason};
use agentgraph_checkpoint::{PendingWrite, TaskId};

impl<O: Output, S: PassInput> Driver for Wiring<O, S> {
    fn entry(self: Arc<Self>, state: &AnyState, input: &AnyUpdate, kept: bool) -> Result<Vec<u32>, Error> {
        let begins = input.seen::<Outputs<O, S>>().and_then(|input| input.begins.as_ref());
        if let Some(begins) = begins.filter(|begins| !begins.before.is_empty()) {
            let desk = PassDesk::new(Arc::clone(&self), outputs::<O, S>(state).kept(), kept);
            settle_before(&desk, &begins.before)?;
        }
        // The list is only needed for a record; an unstored pass has none.
        Ok(if kept { self.base.roots().collect() } else { Vec::new() })
    }

    fn edit_before(&self, input: &mut AnyUpdate, edits: Vec<CollectedEdit>) -> Result<(), Error> {
        let Some(begins) = &mut input.get_mut::<Outputs<O, S>>().begins else { return Ok(()) };
        for (edit, made) in edits {
            let op = Op::of(&edit, made).map_err(|why| refused(EditError::new(edit, why)))?;
            begins.before.push(op);
        }
        Ok(())
    }

    fn edits(&self, state: &AnyState) -> (Vec<GraphEdit>, Vec<String>) {
        outputs::<O, S>(state).edits_that_hold()
    }

    #[cfg(feature = "draw")]
    fn finished(&self, state: &AnyState) -> Vec<String> {
        outputs::<O, S>(state).names().map(str::to_owned).collect()
    }

    #[cfg(feature = "draw")]
    fn topology(self: Arc<Self>, edits: &[GraphEdit]) -> crate::graph::GraphTopology {
        crate::dependency::draw::topology_of(&self, edits)
    }

    fn check(self: Arc<Self>, thread: &str, state: &AnyState, left: &Leftovers) -> Result<(), Error> {
        let state = outputs::<O, S>(state);
        let desk = PassDesk::new(self, state.kept(), true);
        let asked = left.values().filter_map(TaskRemains::asked_by).collect();
        let mut again = PassReplay::new(&desk, thread, &asked);
        again.begin(&state.before);
        for turn in plan::turns(left)? {
            if let Some((node, _)) = again.turn(&turn)? {
                desk.pass().plan.finish(node);
            }
        }
        for name in &asked {
            again.asked(name)?;
        }
        again.end()
    }

    fn upcoming(
        self: Arc<Self>,
        thread: &str,
        state: &mut AnyState,
        done: Vec<PassTurn>,
        asked: &HashSet<String>,
    ) -> Result<Vec<String>, Error> {
        let state = state.get_mut::<Outputs<O, S>>();
        let desk = PassDesk::new(self, state.kept(), true);
        let mut again = PassReplay::new(&desk, thread, asked);
        let made = again.begin(&state.before);
        nodes_added(state, made.added);
        for (turn, update) in done {
            let Some((node, made)) = again.turn(&turn)? else { continue };
            edited(state, made);
            state.report.dropped.extend(turn.dropped.map(DroppedEdits::from));
            let update = update.map(AnyUpdate::into_update::<Outputs<O, S>>);
            if let Some(output) = update.and_then(|mut update| update.outputs.pop()) {
                state.slots[node as usize] = Slot::Shared(output.1);
            }
            state.finish(node);
            desk.pass().plan.finish(node);
        }
        for name in asked {
            if let Some(node) = again.asked(name)? {
                desk.pass().plan.start_again(node);
            }
        }
        again.end()?;
        state.report.not_run = not_run(state, desk.pass().plan.missed(), None);
        Ok(desk.upcoming())
    }

    fn drive<'a>(self: Arc<Self>, run: &'a mut Loop) -> BoxFuture<'a, Result<Pause, Error>> {
        if self.is_plain && run.runtime.runner.as_host().is_none() && is_bare::<O, S>(run) {
            return Box::pin(async move { bare(&self, run) });
        }
        Box::pin(async move { Pass::new(self, run)?.run().await })
    }

    fn far_node(
        self: Arc<Self>,
        codec: &Codec,
        schema: &AnySchema,
        call: &TaskCall,
        details: &TaskDetails,
    ) -> Result<FarNode, Error> {
        far_node(self, codec, schema, call, details)
    }

    fn named_output(&self, node: &str, update: AnyUpdate) -> AnyUpdate {
        let update = update.into_update::<Outputs<O, S>>();
        AnyUpdate::new::<Outputs<O, S>>(match update.own {
            Some(output) => OutputsUpdate::output(Arc::from(node), Arc::new(output)),
            None => update,
        })
    }
}

/// The outputs of a pass, which are its state.
pub(super) fn outputs<O: Output, S: PassInput>(state: &AnyState) -> &Outputs<O, S> {
    state.shared()
}

/// The outputs of a pass, to be changed.
pub(super) fn outputs_mut<O: Output, S: PassInput>(state: &mut Arc<AnyState>) -> &mut Outputs<O, S> {
    Arc::make_mut(state).get_mut()
}

/// Adds edits and new nodes to the outputs of a pass.
fn edited<O, S>(outputs: &mut Outputs<O, S>, made: SettledEdits) {
    nodes_added(outputs, made.added);
    outputs.edits.extend(made.edits);
}

fn nodes_added<O, S>(outputs: &mut Outputs<O, S>, names: Vec<Arc<str>>) {
    for name in names {
        outputs.add_temporary(name);
    }
}

/// The nodes that did not run, with the reasons. Those that may still run are left out, unless `unfinished`
/// is the reason why they did not.
fn not_run<O, S>(
    outputs: &Outputs<O, S>,
    missed: Vec<(u32, MissReason)>,
    unfinished: Option<&NotRunReason>,
) -> Vec<NotRun> {
    let name = |node: u32| outputs.name(node).to_owned();
    let not_run = missed.into_iter().filter_map(|(node, missed)| {
        let reason = match missed {
            MissReason::Pruned => NotRunReason::Pruned,
            MissReason::WaitsFor(nodes) => NotRunReason::WaitsFor(nodes.into_iter().map(name).collect()),
            MissReason::Unfinished => unfinished?.clone(),
        };
        Some(NotRun { node: name(node), reason })
    });
    not_run.collect()
}

/// Whether the pass has no events, no limits, no store and no edits.
fn is_bare<O: Output, S: PassInput>(run: &Loop) -> bool {
    let watched = run.listeners.events.is_some()
        || run.listeners.spans.is_some()
        || run.listeners.halt.is_some()
        || run.runtime.shared.bounds.spending.has_budget();
    let limited = run.runtime.shared.bounds.max_supersteps != u64::MAX;
    !(watched
        || limited
        || run.records.journal.is_some()
        || !outputs::<O, S>(&run.position.state).before.is_empty())
}

fn bare<O: Output, S: PassInput>(wiring: &Wiring<O, S>, run: &mut Loop) -> Result<Pause, Error> {
    let outputs = outputs_mut::<O, S>(&mut run.position.state);
    inline::run(wiring, outputs).map_err(|(node, error)| {
        let error = node_error(error).at_node(outputs.name(node));
        let failure = Failure::of(outputs.name(node), &error, &[]);
        error.with_failures(vec![failure])
    })?;
    Ok(Pause::Finished)
}

/// Applies the edits that were requested before the pass.
fn settle_before<O: Output, S: PassInput>(
    desk: &PassDesk<O, S>,
    before: &[Op<O, S>],
) -> Result<SettledEdits, Error> {
    let mut before = Transaction { ops: before.to_vec() };
    desk.settle_before(&mut before).map_err(refused)
}

fn refused(error: EditError) -> Error {
    Error::new(error.code(), error.to_string()).with_source(error)
}

/// A pass under way: the call that it belongs to, the graph, the tasks that run, and what ended and is not
/// stored yet. Its parts borrow from one another in every step, so they are in one struct.
struct Pass<'a, O, S>
where
    O: Output,
    S: PassInput,
{
    run: &'a mut Loop,
    wiring: Arc<Wiring<O, S>>,
    desk: Arc<PassDesk<O, S>>,
    /// The origin of all its tasks.
    origin: TaskOrigin,
    /// The view of the last node.
    view: Arc<Outputs<O, S>>,
    running: RunningTasks,
    /// The number of tasks that this call has started.
    started: u32,
    /// What nodes did in earlier calls.
    earlier: EarlierWork,
    /// The nodes that have ended.
    ended: EndedNodes,
    /// The reason why no further node starts.
    stopped: Option<StopReason>,
    sources: Vec<u32>,
    /// What the node that was sent last reads, for others with the same sources: see [`far`].
    sent: Option<(Vec<u32>, EncodedState)>,
}

/// What the unfinished nodes of a pass did before.
#[derive(Default)]
struct EarlierWork {
    /// Their questions in earlier calls, with the answers.
    answers: HashMap<u32, Vec<AskedQuestion>>,
    /// The results of their durable steps in earlier calls.
    once: HashMap<TaskId, Vec<(u32, StoredOnce)>>,
    /// Tasks with a stored error from an earlier call.
    had_error: HashSet<TaskId>,
    /// The sources that a node which may ask started with, if other sources could be done when it starts
    /// again.
    began_with: HashMap<u32, Vec<u32>>,
}

/// The nodes of a pass that are finished, wait or failed.
#[derive(Default)]
struct EndedNodes {
    /// The number of finished nodes, over all calls.
    done: u64,
    /// Results that are not stored yet.
    writes: Vec<PendingWrite>,
    /// Whether a node became ready because of an unstored result.
    must_store: bool,
    /// The interrupts that tasks wait for, with their nodes.
    asked: Vec<(u32, Interrupt)>,
    /// The failed nodes, in the order in which they ended.
    failed: Vec<(u32, Error)>,
}

impl<'a, O, S> Pass<'a, O, S>
where
    O: Output,
    S: PassInput,
{
    /// The pass at its position: at its start, or at the point that earlier calls reached.
    fn new(wiring: Arc<Wiring<O, S>>, run: &'a mut Loop) -> Result<Self, Error> {
        let stored = run.runtime.shared.editing.stores;
        let desk =
            Arc::new(PassDesk::new(Arc::clone(&wiring), outputs::<O, S>(&run.position.state).kept(), stored));
        let view = Arc::new(outputs::<O, S>(&run.position.state).view(None, &desk));
        run.runtime.shared.lock_visible().desk = Some(Arc::clone(&desk) as Arc<dyn edits::Desk>);
        run.runtime.shared.control.begin_step(1);
        if let Some(journal) = &mut run.records.journal {
            journal.begin();
        }
        if let Some(halt) = &mut run.listeners.halt {
            halt.begin_step();
        }
        if let Some(events) = &run.listeners.events {
            events.begin_step(1, Vec::new());
        }
        let origin = match &run.records.journal {
            None => TaskOrigin::unstored(0),
            Some(journal) => journal.step_place().origin(),
        };
        let mut pass = Pass {
            run,
            origin,
            wiring,
            desk,
            view,
            running: RunningTasks::default(),
            started: 0,
            earlier: EarlierWork::default(),
            ended: EndedNodes::default(),
            stopped: None,
            sources: Vec::new(),
            sent: None,
        };
        pass.go_through()?;
        pass.run.announce_start();
        Ok(pass)
    }

    async fn run(mut self) -> Result<Pause, Error> {
        let cut = self.run_nodes().await?;
        self.end(cut).await
    }

    /// Runs nodes until none can start and none runs. Returns the cutoff, if the nodes were cut off.
    async fn run_nodes(&mut self) -> Result<Option<Cutoff>, Error> {
        loop {
            while self.may_start() {
                if self.ended.must_store {
                    self.store().await?;
                    continue;
                }
                let Some(node) = self.next_node() else { break };
                poll_fn(|cx| Poll::Ready(self.start(node, cx))).await?;
                if u64::from(self.started).is_multiple_of(STEPS_WITHOUT_YIELD) {
                    yield_now().await;
                }
            }
            if self.store().await? {
                continue;
            }
            let cancels = !self.ended.failed.is_empty() && self.run.runtime.siblings == Siblings::Cancel;
            if self.running.is_empty() || cancels {
                let held_up = self.run.listeners.events.as_ref().is_some_and(|events| !events.has_room());
                if !held_up || cancels || self.is_over() {
                    return Ok(None);
                }
            } else {
                let control = &self.run.runtime.shared.control;
                let halt = self.run.listeners.halt.as_deref_mut();
                match self.running.next(control, halt).await {
                    Ok(Some((request, result))) => self.ended(request, result)?,
                    Ok(None) => {}
                    Err(cut) => return Ok(Some(cut)),
                }
            }
            if let Some(events) = &self.run.listeners.events {
                events.room().await;
            }
        }
    }

    /// Whether no further node can start.
    fn is_over(&self) -> bool {
        !self.ended.failed.is_empty() || self.stopped.is_some() || !self.desk.pass().plan.has_next()
    }

    /// Whether another node may start. A slow reader delays it.
    fn may_start(&self) -> bool {
        self.ended.failed.is_empty()
            && self.stopped.is_none()
            && self.running.len() < self.run.runtime.places.most()
            && self.run.listeners.events.as_ref().is_none_or(|events| events.has_room())
    }

    /// The next node, unless the call must end before it.
    fn next_node(&mut self) -> Option<u32> {
        if !self.desk.pass().plan.has_next() {
            return None;
        }
        self.stopped = self.boundary();
        if self.stopped.is_some() {
            return None;
        }
        self.desk.pass().plan.next()
    }

    fn boundary(&mut self) -> Option<StopReason> {
        if let Some(reason) = self.run.listeners.halt.as_mut().and_then(|halt| halt.at_boundary()) {
            return Some(reason);
        }
        let shared = &self.run.runtime.shared;
        let merged = self.run.position.merged;
        if shared.bounds.drains.load(Ordering::Acquire) {
            return Some(StopReason::Drained);
        }
        if u64::from(self.started) >= shared.bounds.max_supersteps {
            return Some(StopReason::Limit);
        }
        let spent = shared.bounds.spending.has_budget() && shared.bounds.spending.is_used_up(merged);
        spent.then_some(StopReason::Budget)
    }

    /// Adds edits and new nodes to the state of the pass.
    fn edited(&mut self, made: SettledEdits) {
        if !made.edits.is_empty() {
            edited(outputs_mut::<O, S>(&mut self.run.position.state), made);
        }
    }

    fn name(&self, node: u32) -> &str {
        outputs::<O, S>(&self.run.position.state).name(node)
    }

    /// The id of a node's task, which is the same in every call of a pass.
    fn task_id(&self, node: u32) -> TaskId {
        let place = match &self.run.records.journal {
            Some(journal) => journal.step_place(),
            None => nowhere(&self.run.runtime.shared, 0),
        };
        place.task(self.name(node), None)
    }
}
