//! The model of the engine: sequential, slow, plain, and without any of the engine's code.

use std::collections::{BTreeMap, BTreeSet};

use agentgraph::checkpoint::Source;
use agentgraph::{CheckpointId, Memory, StopReason};

use super::behaviour::{
    Attempt, Routing, TaskCall, answer, attempt, child_input, child_output, is_exclusive, routed, time_at,
};
use super::events::{StreamItem, TaskEvent, add};
use super::rounds::{Arrivals, Rounds, Stuck};
use super::shape::{Child, EdgeSource, Edit, Shape, Target, name};
use super::told::{ActEnd, ActResult, HistoryEntry, Status};
use super::world::{Channel, Item, World, Write, Writes, given, key};

/// An act on a thread: a call or an edit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Act {
    pub action: Action,
    /// The checkpoint to act on; the newest one if `None`.
    pub at: Option<CheckpointId>,
    /// The number of earlier acts.
    pub round: u64,
    /// The wall clock at the beginning of the act, in milliseconds.
    pub now: u64,
    /// The budget of the run: supersteps and coins.
    pub budget: (Option<u64>, Option<u64>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Action {
    Invoke(Vec<Write>),
    /// Answers the open requests at these places.
    Resume(Vec<usize>),
    #[default]
    Proceed,
    /// Edits the thread without running a task.
    Edit(Edit),
}

/// A task of the next superstep: its node, and the input of a dispatch.
type Task = (usize, Option<u64>);

/// The output of a task: the node that acted, its writes and its routing.
type TaskOutput = (usize, Vec<Writes>, Option<Routing>);

/// The state of a task of the open superstep.
#[derive(Clone, Default)]
struct TaskState<'a> {
    /// The failure that the error handler gets, if the task failed.
    failure: Option<(String, String)>,
    answers: Vec<u64>,
    /// The request that has no answer yet.
    open: Option<u64>,
    done: Option<(Vec<Writes>, Option<Routing>)>,
    /// The stuck joins of the subgraph, if the node is one.
    stuck: Vec<Stuck>,
    /// The unfinished run of the subgraph, if the node is one.
    inner: Option<Box<Model<'a>>>,
}

/// The tasks and join arrivals that a superstep leads to.
#[derive(Default)]
struct Departures {
    /// The targets of routes and commands, in order.
    next: Vec<Task>,
    arrivals: Arrivals,
}

#[derive(Clone, Debug)]
struct Checkpoint {
    id: CheckpointId,
    parent: Option<usize>,
    source: Source,
    world: World,
    next: Vec<Task>,
    deferred: BTreeSet<usize>,
    rounds: Rounds,
    stuck_inside: Vec<Stuck>,
    /// The nodes whose static interrupt after them stopped the run here.
    halted: Vec<usize>,
    /// The memories of subgraphs at this checkpoint. An abandoned call leaves nothing there.
    memories: BTreeMap<String, World>,
}

impl TaskState<'_> {
    /// Removes writes to untracked channels, which are not stored with finished tasks and supersteps.
    fn forget_untracked(&mut self) {
        let forget =
            |writes: &mut Writes| writes.writes.retain(|(write, _)| write.channel() != Channel::Loose);
        self.done.iter_mut().flat_map(|(writes, _)| writes).for_each(forget);
        if let Some(inner) = &mut self.inner {
            inner.world.loose.clear();
            inner.wrote.iter_mut().flatten().for_each(forget);
            inner.left.values_mut().for_each(TaskState::forget_untracked);
        }
    }
}

/// The supersteps and coins a run has spent.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    supersteps: u64,
    coins: u64,
}

#[derive(Clone)]
pub struct Model<'a> {
    shape: &'a Shape,
    /// Whether an act stores once, at its end.
    stores_at_end: bool,
    stored: Vec<Checkpoint>,
    head: Option<usize>,
    left: BTreeMap<usize, TaskState<'a>>,
    /// Whether the static interrupt at the head was reported to the caller.
    break_reported: bool,
    spent: Spent,
    /// The stream items of the last act.
    pub items: Vec<StreamItem>,
    // Fields of the current act.
    world: World,
    next: Vec<Task>,
    deferred: BTreeSet<usize>,
    rounds: Rounds,
    /// The stuck joins of subgraph calls that this run has merged.
    stuck_inside: Vec<Stuck>,
    halted: Vec<usize>,
    base: Option<usize>,
    /// Whether the act begins a branch.
    forks: bool,
    has_committed: bool,
    drains: bool,
    now: u64,
    round: u64,
    step: u64,
    // Fields of a subgraph.
    path: String,
    /// The merged updates of each superstep.
    wrote: Vec<Vec<Writes>>,
    /// The current memories of subgraphs, by their path.
    memories: BTreeMap<String, World>,
    /// Whether the model cannot predict the result.
    pub is_unclear: bool,
}

impl<'a> Model<'a> {
    pub fn new(shape: &'a Shape, stores_at_end: bool) -> Self {
        Model {
            shape,
            stores_at_end,
            stored: Vec::new(),
            head: None,
            left: BTreeMap::new(),
            break_reported: false,
            spent: Spent::default(),
            items: Vec::new(),
            world: World::default(),
            next: Vec::new(),
            deferred: BTreeSet::new(),
            rounds: Rounds::default(),
            stuck_inside: Vec::new(),
            halted: Vec::new(),
            base: None,
            forks: false,
            has_committed: false,
            drains: false,
            now: 0,
            round: 0,
            step: 0,
            path: String::new(),
            wrote: Vec::new(),
            memories: BTreeMap::new(),
            is_unclear: false,
        }
    }

    /// Returns the checkpoints from the first to the newest, along the branches that lead to the newest.
    pub fn history(&self) -> Vec<HistoryEntry> {
        let mut seen = Vec::new();
        let mut at = self.head;
        while let Some(checkpoint) = at.map(|at| &self.stored[at]) {
            seen.push(HistoryEntry {
                id: checkpoint.id,
                parent: checkpoint.parent.map(|parent| self.stored[parent].id),
                source: checkpoint.source,
                values: checkpoint.world.clone(),
                next: checkpoint.next.iter().map(|(node, _)| name(*node)).collect(),
                deferred: checkpoint.deferred.iter().map(|node| name(*node)).collect(),
            });
            at = checkpoint.parent;
        }
        seen.reverse();
        seen
    }

    /// Returns the status of the thread, or `None` if there is no checkpoint.
    pub fn status(&self) -> Option<Status> {
        let head = &self.stored[self.head?];
        let mut values = head.world.clone();
        let mut next = Vec::new();
        let mut asks = Vec::new();
        let mut finished = Vec::new();
        for (at, (node, _)) in head.next.iter().enumerate() {
            let left = self.left.get(&at).cloned().unwrap_or_default();
            if let Some((writes, _)) = &left.done {
                finished.extend(writes.iter().cloned());
                continue;
            }
            let handler = self.shape.nodes[*node].handler.filter(|_| left.failure.is_some());
            let actor = name(handler.unwrap_or(*node));
            asks.extend(left.open.map(|asked| (actor, asked)));
            asks.extend(left.inner.iter().flat_map(|inner| inner.open()));
            next.push(actor);
        }
        apply(&mut values, &finished);
        Some(Status { values: values.stored(), next, asks })
    }

    /// Returns every checkpoint ever made, with its tick, including those on left branches.
    pub fn checkpoints(&self) -> impl DoubleEndedIterator<Item = (CheckpointId, u64)> {
        self.stored.iter().map(|checkpoint| (checkpoint.id, checkpoint.world.tick))
    }

    /// Performs an act and returns its result.
    pub fn act(&mut self, act: &Act) -> ActResult {
        let at = match act.at {
            None => self.head,
            Some(id) => self.stored.iter().position(|checkpoint| checkpoint.id == id),
        };
        let left = (self.left.clone(), self.break_reported);
        // A call that names a checkpoint begins a branch, but for an edit of the newest one.
        let forks = at != self.head || (act.at.is_some() && !matches!(act.action, Action::Edit(_)));
        self.load(at, act, forks);
        let end = self.perform(act, forks);
        if !self.has_committed && forks {
            (self.left, self.break_reported) = left;
        }
        self.left.values_mut().for_each(TaskState::forget_untracked);
        let output = match &end {
            ActEnd::Edited(_) => None,
            end if end.is_hopeless() => None,
            _ => Some(self.world.clone()),
        };
        let coins = !matches!(end, ActEnd::Edited(_) | ActEnd::Failed(_));
        ActResult { end, output, coins: coins.then_some(self.spent.coins) }
    }

    fn load(&mut self, at: Option<usize>, act: &Act, forks: bool) {
        self.items.clear();
        (self.round, self.now) = (act.round, act.now);
        (self.has_committed, self.drains, self.step) = (false, false, 0);
        if forks {
            self.left.clear();
            self.break_reported = false;
        }
        let abandons = forks || matches!(act.action, Action::Invoke(_));
        (self.base, self.forks) = (at, forks);
        let Some(checkpoint) = at.map(|at| self.stored[at].clone()) else { return };
        if abandons {
            self.memories = checkpoint.memories;
        }
        self.world = checkpoint.world;
        self.next = checkpoint.next;
        self.deferred = checkpoint.deferred;
        self.rounds = checkpoint.rounds;
        self.stuck_inside = checkpoint.stuck_inside;
        self.halted = if self.break_reported { Vec::new() } else { checkpoint.halted };
    }

    fn perform(&mut self, act: &Act, forks: bool) -> ActEnd {
        match &act.action {
            Action::Invoke(input) => {
                if let Err(code) = self.begin(input) {
                    return ActEnd::Failed(code);
                }
                self.spent = Spent::default();
                self.items.push(StreamItem::Values(0, self.world.clone()));
                self.commit(Source::Input);
                self.run(act, false)
            }
            Action::Edit(edit) => match self.edit(edit) {
                Ok(()) => ActEnd::Edited(self.stored[self.head.expect("an edit makes a checkpoint")].id),
                Err(code) => ActEnd::Failed(code),
            },
            Action::Proceed | Action::Resume(_) if self.next.is_empty() => {
                ActEnd::Failed("E_NOTHING_TO_RESUME")
            }
            Action::Resume(which) => {
                self.answer(which, &mut 0);
                self.show_start();
                self.run(act, self.break_reported)
            }
            Action::Proceed if forks => {
                self.items.push(StreamItem::Values(0, self.world.clone()));
                self.commit(Source::Fork);
                self.halted.clear();
                self.run(act, false)
            }
            Action::Proceed => {
                self.show_start();
                self.run(act, self.break_reported)
            }
        }
    }

    /// A call that continues a run begins with its state and checkpoint.
    fn show_start(&mut self) {
        self.items.push(StreamItem::Values(0, self.world.clone()));
        let Some(at) = self.base.map(|at| &self.stored[at]) else { return };
        let next = at.next.iter().map(|(node, _)| name(*node)).collect();
        self.items.push(StreamItem::Checkpoint(at.id, at.source, next));
    }

    /// Returns the open requests, in task order.
    fn open(&self) -> Vec<(&'static str, u64)> {
        let mut open = Vec::new();
        for at in 0..self.next.len() {
            let Some(left) = self.left.get(&at) else { continue };
            open.extend(left.open.map(|asked| (name(self.actor(at)), asked)));
            open.extend(left.inner.iter().flat_map(|inner| inner.open()));
        }
        open
    }

    /// Answers the open requests whose places are in `which`.
    fn answer(&mut self, which: &[usize], place: &mut usize) {
        for left in self.left.values_mut() {
            if let Some(inner) = &mut left.inner {
                inner.answer(which, place);
            }
            if left.open.is_some() {
                if which.contains(place) {
                    left.answers.extend(left.open.take().map(answer));
                }
                *place += 1;
            }
        }
    }

    /// Begins a new run: clears run channels and ephemeral channels, applies the input and follows the
    /// edges of START.
    fn begin(&mut self, input: &[Write]) -> Result<(), &'static str> {
        self.begin_with(given(input))
    }

    fn begin_with(&mut self, input: Writes) -> Result<(), &'static str> {
        let before = self.world.clone();
        self.world.heard.clear();
        self.world.flash.clear();
        apply(&mut self.world, &[input]);
        (self.rounds, self.deferred) = (Rounds::default(), BTreeSet::new());
        self.stuck_inside.clear();
        let mut left = Departures::default();
        if let Err(code) = self.leave(None, &self.world.clone(), &mut left) {
            self.world = before;
            return Err(code);
        }
        let next = self.reached(left);
        self.forget_superstep();
        self.wrote.clear();
        self.settle(next, self.now);
        Ok(())
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), &'static str> {
        match edit {
            Edit::Copy if self.base.is_none() => return Err("E_NOTHING_TO_RESUME"),
            Edit::Copy => {
                self.copy(Source::Fork);
                return Ok(());
            }
            Edit::Here(writes) => {
                apply(&mut self.world, &[given(writes)]);
                self.copy(Source::Update);
                return Ok(());
            }
            Edit::As(several) => {
                let acts = |node| several.iter().any(|(acting, _)| *acting == node);
                let mut ended = self.finished();
                ended.retain(|(at, _)| {
                    let (node, input) = self.next[*at];
                    input.is_some() || self.left[at].failure.is_some() || !acts(node)
                });
                self.take_stuck(ended.iter().map(|(at, _)| *at).collect());
                let place = |(at, ended)| match self.next[at] {
                    (node, None) => ((false, node), ended),
                    (_, Some(_)) => ((true, 0), ended),
                };
                let mut ended: Vec<_> = ended.into_iter().map(place).collect();
                ended.extend(
                    several.iter().map(|(node, writes)| ((false, *node), (*node, vec![given(writes)], None))),
                );
                ended.sort_by_key(|(place, _)| *place);
                self.merge(ended.into_iter().map(|(_, ended)| ended).collect())?;
            }
            Edit::Start(writes) => self.begin(writes)?,
            Edit::End(writes) => {
                self.take_stuck(self.finished().iter().map(|(at, _)| *at).collect());
                let finished: Vec<_> =
                    self.finished().into_iter().flat_map(|(_, (_, writes, _))| writes).collect();
                apply(&mut self.world, &finished);
                apply(&mut self.world, &[given(writes)]);
                (self.rounds, self.deferred, self.next) = Default::default();
            }
            Edit::Proceed | Edit::Invoke(_) => unreachable!("these are no edits"),
        }
        self.forget_superstep();
        self.commit(Source::Update);
        Ok(())
    }

    /// Returns the finished tasks of the open superstep, with their places in it.
    fn finished(&self) -> Vec<(usize, TaskOutput)> {
        let done = |at| {
            let (writes, routing) = self.left.get(&at)?.done.clone()?;
            Some((at, (self.actor(at), writes, routing)))
        };
        (0..self.next.len()).filter_map(done).collect()
    }

    /// Commits a copy of the checkpoint on which every task waits as before.
    fn copy(&mut self, source: Source) {
        let break_reported = self.break_reported;
        self.commit(source);
        self.break_reported = break_reported;
    }

    /// Adds the stuck joins of the calls at these places of the open superstep to the run.
    fn take_stuck(&mut self, merged: Vec<usize>) {
        let stuck = merged.iter().filter_map(|at| self.left.get(at)).flat_map(|left| left.stuck.clone());
        self.stuck_inside.extend(stuck);
    }

    fn forget_superstep(&mut self) {
        self.left.clear();
        self.halted.clear();
    }

    fn run(&mut self, act: &Act, mut skips_breaks: bool) -> ActEnd {
        if !self.halted.is_empty() {
            self.break_reported = true;
            return ActEnd::Broke(stops(&self.halted, false));
        }
        loop {
            if self.next.is_empty() {
                let own = self.rounds.stuck(self.shape, &self.path);
                return ActEnd::Finished {
                    stuck: own.into_iter().chain(self.stuck_inside.clone()).collect(),
                };
            }
            let nodes: Vec<usize> = self.next.iter().map(|(node, _)| *node).collect();
            let breaks = stops(&among(&nodes, &self.shape.before), true);
            if !breaks.is_empty() && !std::mem::take(&mut skips_breaks) {
                self.break_reported = true;
                return ActEnd::Broke(breaks);
            }
            skips_breaks = false;
            if self.drains {
                return ActEnd::Stopped(StopReason::Drained);
            }
            if self.step == self.shape.limit {
                return self.reach_limit();
            }
            let (supersteps, coins) = act.budget;
            if supersteps.is_some_and(|limit| self.spent.supersteps >= limit)
                || coins.is_some_and(|limit| self.spent.coins >= limit)
            {
                return ActEnd::Stopped(StopReason::Budget);
            }
            self.step += 1;
            if let Some(end) = self.superstep() {
                return end;
            }
            if !self.halted.is_empty() {
                self.break_reported = true;
                return ActEnd::Broke(stops(&self.halted, false));
            }
        }
    }

    fn superstep(&mut self) -> Option<ActEnd> {
        let mut failed = None;
        for at in 0..self.next.len() {
            let mut left = self.left.remove(&at).unwrap_or_default();
            if let Err(code) = self.task(at, &mut left) {
                failed.get_or_insert(code);
            }
            self.left.insert(at, left);
        }
        if let Some(code) = failed {
            return Some(ActEnd::Failed(code));
        }
        let asked = self.open();
        if !asked.is_empty() {
            return Some(ActEnd::Asked(asked));
        }
        let ended = (0..self.next.len()).filter_map(|at| {
            let (writes, routing) = self.left[&at].done.clone()?;
            Some((self.actor(at), writes, routing))
        });
        let ended: Vec<_> = ended.collect();
        let actors: Vec<usize> = ended.iter().map(|(actor, ..)| *actor).collect();
        if let Err(code) = self.merge(ended) {
            return Some(ActEnd::Failed(code));
        }
        self.take_stuck(self.left.keys().copied().collect());
        self.forget_superstep();
        if !self.next.is_empty() {
            self.halted = among(&actors, &self.shape.after);
        }
        self.end_superstep();
        None
    }

    fn end_superstep(&mut self) {
        self.spent.supersteps += 1;
        self.items.push(StreamItem::Values(self.step, self.world.clone()));
        self.commit(Source::Loop);
    }

    /// Returns the node that acts at a place of the frontier: the task's node, or the handler of its
    /// failure.
    fn actor(&self, at: usize) -> usize {
        let (node, _) = self.next[at];
        let is_handled = self.left.get(&at).is_some_and(|left| left.failure.is_some());
        self.shape.nodes[node].handler.filter(|_| is_handled).unwrap_or(node)
    }

    /// Runs a task, and its handler if it fails, unless the task is finished or waits.
    fn task(&mut self, at: usize, left: &mut TaskState<'a>) -> Result<(), &'static str> {
        let (node, input) = self.next[at];
        if let Some(child) = &self.shape.nodes[node].child {
            return self.call(at, child, left);
        }
        let handler = self.shape.nodes[node].handler;
        while left.done.is_none() && left.open.is_none() {
            let actor = handler.filter(|_| left.failure.is_some()).unwrap_or(node);
            let answers = left.answers.clone();
            let failure = left.failure.clone();
            let called =
                TaskCall { node: actor, input, failure, answers, path: self.path.clone(), round: self.round };
            match self.attempts(at, &called) {
                Ok(Attempt::Asks(asked)) => left.open = Some(asked),
                Ok(Attempt::Returns(writes, routing)) => left.done = Some((vec![writes], routing)),
                Ok(Attempt::Fails { .. }) => unreachable!("a failure has a code"),
                Err((_, code)) if handler.is_none() || left.failure.is_some() => return Err(code),
                Err((text, _)) => {
                    left.failure = Some((name(node).to_owned(), text));
                    left.answers.clear();
                }
            }
        }
        Ok(())
    }

    /// Calls a subgraph, or continues its call.
    fn call(&mut self, at: usize, child: &'a Child, left: &mut TaskState<'a>) -> Result<(), &'static str> {
        if left.done.is_some() {
            return Ok(());
        }
        let (node, input) = self.next[at];
        let step = self.step;
        let index = at as u32;
        add(&mut self.items, step, index, TaskEvent::Started(name(node), input));
        let mut inner = match left.inner.take() {
            Some(inner) => inner,
            None => self.enter(node, child, input),
        };
        (inner.round, inner.step) = (self.round, 0);
        inner.memories = std::mem::take(&mut self.memories);
        let end = inner.run(&Act::default(), false);
        self.memories = std::mem::take(&mut inner.memories);
        if child.memory == Memory::PerThread {
            self.memories.insert(inner.path.clone(), inner.world.stored());
        }
        let twice = self.next.iter().filter(|(other, _)| *other == node).count() > 1;
        self.is_unclear |= inner.is_unclear || (twice && child.has_memory());
        let event = match end {
            ActEnd::Finished { stuck } => {
                left.stuck = stuck;
                let writes = if child.embedded { vec![child_output(&inner.world)] } else { inner.sum() };
                left.done = Some((writes, None));
                TaskEvent::Done
            }
            ActEnd::Asked(_) => {
                left.inner = Some(inner);
                TaskEvent::Waits
            }
            ActEnd::Failed(code) => {
                left.inner = Some(inner).filter(|_| child.memory != Memory::None);
                add(&mut self.items, step, index, TaskEvent::Failed(code));
                return Err(code);
            }
            other => unreachable!("a subgraph ended with {other:?}"),
        };
        add(&mut self.items, step, index, event);
        Ok(())
    }

    /// Begins a call of a subgraph.
    fn enter(&self, node: usize, child: &'a Child, input: Option<u64>) -> Box<Model<'a>> {
        let mut inner = Box::new(Model::new(&child.shape, false));
        inner.path = format!("{}{}/", self.path, name(node));
        if child.embedded {
            let memory = self.memories.get(&inner.path).filter(|_| child.memory == Memory::PerThread);
            inner.world = memory.cloned().unwrap_or_default();
            inner.begin_with(child_input(&self.world, input)).expect("a subgraph has no unknown targets");
        } else {
            inner.world = self.world.clone();
            let mut left = Departures::default();
            inner.leave(None, &self.world, &mut left).expect("a subgraph has no unknown targets");
            let next = inner.reached(left);
            inner.settle(next, 0);
        }
        inner
    }

    /// Returns all updates of the run, in order, as those of one writer. Ephemeral writes count only if
    /// they are from the last superstep.
    fn sum(&self) -> Vec<Writes> {
        let supersteps = self.wrote.len();
        let updates =
            self.wrote.iter().enumerate().flat_map(|(at, updates)| updates.iter().map(move |one| (at, one)));
        let kept = updates.map(|(at, update)| {
            let mut update = update.clone();
            update.writes.retain(|(write, _)| at + 1 == supersteps || write.channel() != Channel::Flash);
            update
        });
        kept.collect()
    }

    /// Runs attempts until one is the last. A failure is returned as its text, as a handler sees it, and
    /// its code.
    fn attempts(&mut self, at: usize, called: &TaskCall) -> Result<Attempt, (String, &'static str)> {
        let node = &self.shape.nodes[called.node];
        let step = self.step;
        let index = at as u32;
        add(&mut self.items, step, index, TaskEvent::Started(name(called.node), called.input));
        let mut count = 0;
        let last = loop {
            count += 1;
            self.spent.coins += node.coins;
            self.drains |= node.drains;
            if node.emits {
                add(&mut self.items, step, index, TaskEvent::Emitted(name(called.node), count));
            }
            match attempt(self.shape, called, &self.world, count) {
                Attempt::Fails { text, again } if node.attempts > 1 => {
                    let again = again && count < node.attempts;
                    let failed = TaskEvent::AttemptFailed(count, text.clone(), again);
                    add(&mut self.items, step, index, failed);
                    if !again {
                        break Attempt::Fails { text, again };
                    }
                    add(&mut self.items, step, index, TaskEvent::AttemptStarted(count + 1));
                }
                last => break last,
            }
        };
        let ended = match last {
            Attempt::Fails { text, .. } => Err((text, "E_NODE_FAILED")),
            Attempt::Returns(_, Some((_, ref targets)))
                if targets.iter().any(|(target, _)| *target == Target::Ghost) =>
            {
                Err(("E_UNKNOWN_TARGET".to_owned(), "E_UNKNOWN_TARGET"))
            }
            last => Ok(last),
        };
        let event = match &ended {
            Err((_, code)) => TaskEvent::Failed(code),
            Ok(Attempt::Returns(writes, _)) => {
                let updated = TaskEvent::Updated(name(called.node), count, writes.clone().into_json());
                add(&mut self.items, step, index, updated);
                TaskEvent::Done
            }
            Ok(_) => TaskEvent::Waits,
        };
        add(&mut self.items, step, index, event);
        ended
    }

    /// Checks for clashes, then runs routers in task order, then applies updates in task order.
    fn merge(&mut self, ended: Vec<TaskOutput>) -> Result<(), &'static str> {
        if conflicts(ended.iter().map(|(_, writes, _)| writes)) {
            return Err("E_CONCURRENT_UPDATE");
        }
        let now = self.now_at();
        let mut world = World { flash: Vec::new(), ..self.world.clone() };
        let mut left = Departures::default();
        let mut updates = Vec::new();
        for (node, writes, routing) in ended {
            let (replaces, targets) = routing.unwrap_or_default();
            targets.into_iter().for_each(|target| go(target, &mut left.next));
            if !replaces {
                let mut own = world.clone();
                apply(&mut own, &writes);
                self.leave(Some(node), &own, &mut left)?;
            }
            updates.extend(writes);
        }
        let next = self.reached(left);
        apply(&mut world, &updates);
        self.wrote.push(updates);
        self.world = world;
        self.settle(next, now);
        Ok(())
    }

    /// Follows the edges, joins and routers that leave a node.
    fn leave(&self, from: EdgeSource, seen: &World, left: &mut Departures) -> Result<(), &'static str> {
        let edges = self.shape.edges.iter().enumerate().filter(|(_, edge)| edge.from.contains(&from));
        left.arrivals.extend(edges.map(|(at, _)| (at, from)));
        for (slot, router) in self.shape.routers.iter().enumerate().filter(|(_, router)| router.from == from)
        {
            for target in routed(&router.options, seen, from, slot) {
                match target {
                    (Target::Ghost, _) if router.typed => {}
                    (Target::Ghost, _) => return Err("E_UNKNOWN_TARGET"),
                    known => go(known, &mut left.next),
                }
            }
        }
        Ok(())
    }

    /// Returns the tasks of the next superstep: the targets of routes and commands, then the targets of
    /// the edges that fire.
    fn reached(&mut self, left: Departures) -> Vec<Task> {
        let fired = self.rounds.arrive(self.shape, &left.arrivals, self.now_at());
        left.next.into_iter().chain(fired.into_iter().map(|node| (node, None))).collect()
    }

    /// Returns the wall clock. Tasks set it to the time of the state they see.
    fn now_at(&self) -> u64 {
        if self.step == 0 { self.now } else { time_at(self.world.tick) }
    }

    /// Orders the next frontier: nodes in order of declaration, each once, then dispatches in the order
    /// in which they were made. Deferred nodes wait until nothing else can run.
    fn settle(&mut self, next: Vec<Task>, now: u64) {
        let (dispatched, pulled): (Vec<Task>, Vec<Task>) =
            next.into_iter().partition(|(_, input)| input.is_some());
        let mut pulled: BTreeSet<usize> = pulled.into_iter().map(|(node, _)| node).collect();
        self.put_off(&mut pulled);
        let nothing_else = pulled.is_empty() && dispatched.is_empty();
        pulled.extend(self.rounds.due(self.shape, now, nothing_else));
        self.put_off(&mut pulled);
        if pulled.is_empty() && dispatched.is_empty() {
            // One that another waiting one leads to waits on, unless it leads back.
            let waits = |node: &usize| {
                let leads = |from: usize, to: usize| self.shape.leads(from, to);
                self.deferred.iter().any(|other| leads(*other, *node) && !leads(*node, *other))
            };
            let (held, released) = self.deferred.iter().copied().partition(waits);
            (self.deferred, pulled) = (held, released);
            pulled.iter().for_each(|node| self.rounds.release(self.shape, *node));
        }
        self.next = pulled.into_iter().map(|node| (node, None)).chain(dispatched).collect();
    }

    fn put_off(&mut self, pulled: &mut BTreeSet<usize>) {
        let (deferred, rest) =
            std::mem::take(pulled).into_iter().partition(|node| self.shape.nodes[*node].defers);
        *pulled = rest;
        self.deferred.extend::<BTreeSet<usize>>(deferred);
    }

    /// Runs the node for the limit, in a superstep beyond it. Its writes are applied; its routing is
    /// ignored.
    fn reach_limit(&mut self) -> ActEnd {
        let stopped = ActEnd::Stopped(StopReason::Limit);
        let Some(node) = self.shape.on_limit else { return stopped };
        self.step += 1;
        let called = TaskCall { node, round: self.round, path: self.path.clone(), ..TaskCall::default() };
        match self.attempts(0, &called) {
            Err((_, code)) => return ActEnd::Failed(code),
            Ok(Attempt::Returns(writes, _)) => {
                self.world.flash.clear();
                apply(&mut self.world, &[writes]);
            }
            Ok(_) => return ActEnd::Failed("E_NODE_FAILED"),
        }
        self.end_superstep();
        stopped
    }

    fn commit(&mut self, source: Source) {
        let world = self.world.stored();
        let next = self.next.clone();
        let deferred = self.deferred.clone();
        let rounds = self.rounds.clone();
        let halted = self.halted.clone();
        let (id, parent) = match self.base.map(|at| &self.stored[at]) {
            Some(last) if self.has_committed && self.stores_at_end => (last.id, last.parent),
            None => (CheckpointId::new(0, 0), None),
            Some(base) => {
                let newest = self.head.map_or(0, |head| self.stored[head].id.branch);
                let branch = if self.forks && !self.has_committed { newest + 1 } else { newest };
                (CheckpointId::new(branch, base.id.step + 1), self.base)
            }
        };
        if self.has_committed && self.stores_at_end {
            self.stored.pop();
        }
        let memories = self.memories.clone();
        let stuck_inside = self.stuck_inside.clone();
        self.stored.push(Checkpoint {
            id,
            parent,
            source,
            world,
            next,
            deferred,
            rounds,
            stuck_inside,
            halted,
            memories,
        });
        self.head = Some(self.stored.len() - 1);
        (self.base, self.has_committed, self.break_reported) = (self.head, true, false);
        let next = self.next.iter().map(|(node, _)| name(*node)).collect();
        self.items.push(StreamItem::Checkpoint(id, source, next));
    }
}

/// Returns those of `nodes` that are in `stops`.
fn among(nodes: &[usize], stops: &[usize]) -> Vec<usize> {
    nodes.iter().copied().filter(|node| stops.contains(node)).collect()
}

fn stops(nodes: &[usize], before: bool) -> Vec<(&'static str, bool)> {
    let mut reported = BTreeSet::new();
    nodes.iter().copied().filter(|node| reported.insert(*node)).map(|node| (name(node), before)).collect()
}

fn go((target, input): (Target, u64), next: &mut Vec<Task>) {
    match target {
        Target::Node(node) => next.push((node, None)),
        Target::Dispatch(node) => next.push((node, Some(input))),
        Target::End | Target::Ghost => {}
    }
}

/// Whether two tasks overwrite one channel, or both write the channel that takes a single writer.
fn conflicts<'w>(mut updates: impl Iterator<Item = &'w Vec<Writes>>) -> bool {
    let mut taken = BTreeSet::new();
    updates.any(|update| {
        let writes = update.iter().flat_map(|update| &update.writes);
        let exclusive = writes.filter(|(write, _)| is_exclusive(*write));
        let exclusive: BTreeSet<Channel> = exclusive.map(|(write, _)| write.channel()).collect();
        exclusive.into_iter().any(|channel| !taken.insert(channel))
    })
}

/// Applies updates in order. An overwrite wins over every other write to its channel.
fn apply(world: &mut World, updates: &[Writes]) {
    let all = updates.iter().flat_map(|update| &update.writes);
    let overwritten: BTreeSet<Channel> =
        all.filter(|(write, _)| write.overwrites()).map(|(write, _)| write.channel()).collect();
    for update in updates {
        world.trace.extend(update.trace.clone());
        world.tick = update.tick.unwrap_or(world.tick);
        for (write, value) in &update.writes {
            if write.overwrites() || !overwritten.contains(&write.channel()) {
                apply_one(world, *write, *value);
            }
        }
    }
}

fn apply_one(world: &mut World, write: Write, value: u64) {
    if write.overwrites() {
        clear(world, write.channel());
    }
    match write {
        Write::Remove => world.items.retain(|item| item.id != key(value)),
        Write::Reduce(channel) | Write::Overwrite(channel) => match channel {
            Channel::Log => world.log.push(value),
            Channel::Table => drop(world.table.insert(key(value), value)),
            Channel::Last => world.last = value.to_string(),
            Channel::Items => match world.items.iter_mut().find(|item| item.id == key(value)) {
                Some(item) => item.value = value,
                None => world.items.push(Item { id: key(value), value }),
            },
            Channel::Top => world.top = world.top.max(value),
            Channel::Single => world.single = value,
            Channel::Heard => world.heard.push(value),
            Channel::Flash => world.flash.push(value),
            Channel::Loose => world.loose.push(value),
        },
    }
}

fn clear(world: &mut World, channel: Channel) {
    match channel {
        Channel::Log => world.log.clear(),
        Channel::Table => world.table.clear(),
        Channel::Last => world.last.clear(),
        Channel::Items => world.items.clear(),
        Channel::Top => world.top = 0,
        Channel::Single => world.single = 0,
        Channel::Heard => world.heard.clear(),
        Channel::Flash => world.flash.clear(),
        Channel::Loose => world.loose.clear(),
    }
}
