//! What the engine means, once more: sequential, slow, plain, and without any of the engine's code.

use std::collections::{BTreeMap, BTreeSet};

use agentgraph::checkpoint::Source;
use agentgraph::{CheckpointId, Memory, StopReason};

use super::behaviour::{
    Attempt, Called, Going, answer, attempt, child_input, child_output, is_exclusive, routed, time_at,
};
use super::events::{Happening, OfTask, add};
use super::rounds::{Arrivals, Rounds, Stuck};
use super::shape::{Child, Edit, From, Shape, Target, name};
use super::told::{Came, Seen, Status, Told};
use super::world::{Channel, Item, World, Write, Writes, given, key};

/// Something that is done to a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Act {
    pub what: What,
    /// On this checkpoint, or on the newest one.
    pub at: Option<CheckpointId>,
    /// How many acts there were before.
    pub round: u64,
    /// The wall clock when it begins, in milliseconds.
    pub now: u64,
    /// What the run may use up in all: supersteps and coins.
    pub budget: (Option<u64>, Option<u64>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum What {
    Invoke(Vec<Write>),
    /// Answers these of the open requests.
    Resume(Vec<usize>),
    #[default]
    Proceed,
    /// Changes the thread without running anything.
    Edit(Edit),
}

/// A task to come: its node, and the input of a dispatch.
type Task = (usize, Option<u64>);

/// Who acted, what it wrote, and where it goes.
type Ended = (usize, Vec<Writes>, Option<Going>);

/// What a task of the open superstep left behind.
#[derive(Clone, Default)]
struct Left<'a> {
    /// It failed, and its handler stands in its place.
    failure: Option<(String, String)>,
    answers: Vec<u64>,
    /// What it asks and has no answer to.
    open: Option<u64>,
    done: Option<(Vec<Writes>, Option<Going>)>,
    /// The joins that the graph which is the node ended with.
    stuck: Vec<Stuck>,
    /// The run of a graph that is the node.
    inner: Option<Box<Model<'a>>>,
}

/// Where the nodes of a superstep lead.
#[derive(Default)]
struct Leaving {
    /// What routes and commands name, in their order.
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
    /// The static interrupt after these nodes stopped the run here.
    halted: Vec<usize>,
    /// What graphs with a memory for the thread had in it. A call that is given up leaves nothing there.
    memories: BTreeMap<String, World>,
}

impl Left<'_> {
    /// What is untracked is not in the records of finished tasks and supersteps either.
    fn forget_untracked(&mut self) {
        let forget =
            |writes: &mut Writes| writes.writes.retain(|(write, _)| write.channel() != Channel::Loose);
        self.done.iter_mut().flat_map(|(writes, _)| writes).for_each(forget);
        if let Some(inner) = &mut self.inner {
            inner.world.loose.clear();
            inner.wrote.iter_mut().flatten().for_each(forget);
            inner.left.values_mut().for_each(Left::forget_untracked);
        }
    }
}

/// What a run has used up.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    supersteps: u64,
    coins: u64,
}

#[derive(Clone)]
pub struct Model<'a> {
    shape: &'a Shape,
    /// An act stores once, when it ends.
    stores_at_end: bool,
    stored: Vec<Checkpoint>,
    head: Option<usize>,
    left: BTreeMap<usize, Left<'a>>,
    /// The caller was told of the static interrupt at the head.
    told: bool,
    spent: Spent,
    /// What the last act showed to its stream.
    pub happened: Vec<Happening>,
    // Of the act that goes on.
    world: World,
    next: Vec<Task>,
    deferred: BTreeSet<usize>,
    rounds: Rounds,
    /// The joins that graphs ended with whose calls this run has merged.
    stuck_inside: Vec<Stuck>,
    halted: Vec<usize>,
    base: Option<usize>,
    has_committed: bool,
    drains: bool,
    now: u64,
    round: u64,
    step: u64,
    // Of a graph that is a node.
    path: String,
    /// The updates that were merged, superstep by superstep.
    wrote: Vec<Vec<Writes>>,
    /// What graphs with a memory for the thread have in it, by their path.
    memories: BTreeMap<String, World>,
    /// What came of it is not for the model to say.
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
            told: false,
            spent: Spent::default(),
            happened: Vec::new(),
            world: World::default(),
            next: Vec::new(),
            deferred: BTreeSet::new(),
            rounds: Rounds::default(),
            stuck_inside: Vec::new(),
            halted: Vec::new(),
            base: None,
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

    /// The checkpoints from the first to the newest, on the branches it came from.
    pub fn history(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut at = self.head;
        while let Some(checkpoint) = at.map(|at| &self.stored[at]) {
            seen.push(Seen {
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

    /// How the thread stands; none if there is none.
    pub fn status(&self) -> Option<Status> {
        let head = &self.stored[self.head?];
        let mut values = head.world.clone();
        let (mut next, mut asks, mut finished) = (Vec::new(), Vec::new(), Vec::new());
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

    /// Every checkpoint that was ever made, also of branches that were left.
    pub fn checkpoints(&self) -> impl DoubleEndedIterator<Item = (CheckpointId, u64)> {
        self.stored.iter().map(|checkpoint| (checkpoint.id, checkpoint.world.tick))
    }

    /// Does it.
    pub fn act(&mut self, act: &Act) -> Told {
        let at = match act.at {
            None => self.head,
            Some(id) => self.stored.iter().position(|checkpoint| checkpoint.id == id),
        };
        let left = (self.left.clone(), self.told);
        let forks = at != self.head;
        self.load(at, act);
        let came = self.came(act, forks);
        if !self.has_committed && forks {
            (self.left, self.told) = left;
        }
        self.left.values_mut().for_each(Left::forget_untracked);
        let output = match &came {
            Came::Edited(_) => None,
            came if came.is_hopeless() => None,
            _ => Some(self.world.clone()),
        };
        let coins = !matches!(came, Came::Edited(_) | Came::Failed(_));
        Told { came, output, coins: coins.then_some(self.spent.coins) }
    }

    fn load(&mut self, at: Option<usize>, act: &Act) {
        self.happened.clear();
        (self.round, self.now) = (act.round, act.now);
        (self.has_committed, self.drains, self.step) = (false, false, 0);
        if at != self.head {
            self.left.clear();
            self.told = false;
        }
        let is_given_up = at != self.head || matches!(act.what, What::Invoke(_));
        self.base = at;
        let Some(checkpoint) = at.map(|at| self.stored[at].clone()) else { return };
        if is_given_up {
            self.memories = checkpoint.memories;
        }
        self.world = checkpoint.world;
        self.next = checkpoint.next;
        self.deferred = checkpoint.deferred;
        self.rounds = checkpoint.rounds;
        self.stuck_inside = checkpoint.stuck_inside;
        self.halted = if self.told { Vec::new() } else { checkpoint.halted };
    }

    fn came(&mut self, act: &Act, forks: bool) -> Came {
        match &act.what {
            What::Invoke(input) => {
                if let Err(code) = self.begin(input) {
                    return Came::Failed(code);
                }
                self.spent = Spent::default();
                self.happened.push(Happening::Values(0, self.world.clone()));
                self.commit(Source::Input);
                self.run(act, false)
            }
            What::Edit(edit) => match self.edit(edit) {
                Ok(()) => Came::Edited(self.stored[self.head.expect("it was edited")].id),
                Err(code) => Came::Failed(code),
            },
            What::Proceed | What::Resume(_) if self.next.is_empty() => Came::Failed("E_NOTHING_TO_RESUME"),
            What::Resume(which) => {
                self.answer(which, &mut 0);
                self.run(act, self.told)
            }
            What::Proceed if forks => {
                self.commit(Source::Fork);
                self.halted.clear();
                self.run(act, false)
            }
            What::Proceed => self.run(act, self.told),
        }
    }

    /// The open requests, in task order.
    fn open(&self) -> Vec<(&'static str, u64)> {
        let mut open = Vec::new();
        for at in 0..self.next.len() {
            let Some(left) = self.left.get(&at) else { continue };
            open.extend(left.open.map(|asked| (name(self.actor(at)), asked)));
            open.extend(left.inner.iter().flat_map(|inner| inner.open()));
        }
        open
    }

    /// Answers those of the open requests whose places are among `which`.
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

    /// A new run: its own channels and what was for the next superstep only are gone, START's edges are
    /// followed.
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
        let mut left = Leaving::default();
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

    /// The tasks of the open superstep that have finished, with their places in it.
    fn finished(&self) -> Vec<(usize, Ended)> {
        let done = |at| {
            let (writes, going) = self.left.get(&at)?.done.clone()?;
            Some((at, (self.actor(at), writes, going)))
        };
        (0..self.next.len()).filter_map(done).collect()
    }

    /// A checkpoint on which everything waits as it did.
    fn copy(&mut self, source: Source) {
        let told = self.told;
        self.commit(source);
        self.told = told;
    }

    /// What the calls at these places of the open superstep ended with counts for the run from now on.
    fn take_stuck(&mut self, merged: Vec<usize>) {
        let stuck = merged.iter().filter_map(|at| self.left.get(at)).flat_map(|left| left.stuck.clone());
        self.stuck_inside.extend(stuck);
    }

    fn forget_superstep(&mut self) {
        self.left.clear();
        self.halted.clear();
    }

    fn run(&mut self, act: &Act, mut passes_breaks: bool) -> Came {
        if !self.halted.is_empty() {
            self.told = true;
            return Came::Broke(stops(&self.halted, false));
        }
        loop {
            if self.next.is_empty() {
                let own = self.rounds.stuck(self.shape, &self.path);
                return Came::Finished { stuck: own.into_iter().chain(self.stuck_inside.clone()).collect() };
            }
            let nodes: Vec<usize> = self.next.iter().map(|(node, _)| *node).collect();
            let breaks = stops(&among(&nodes, &self.shape.before), true);
            if !breaks.is_empty() && !std::mem::take(&mut passes_breaks) {
                self.told = true;
                return Came::Broke(breaks);
            }
            passes_breaks = false;
            if self.drains {
                return Came::Stopped(StopReason::Drained);
            }
            if self.step == self.shape.limit {
                return self.reach_limit();
            }
            let (supersteps, coins) = act.budget;
            if supersteps.is_some_and(|limit| self.spent.supersteps >= limit)
                || coins.is_some_and(|limit| self.spent.coins >= limit)
            {
                return Came::Stopped(StopReason::Budget);
            }
            self.step += 1;
            if let Some(came) = self.superstep() {
                return came;
            }
            if !self.halted.is_empty() {
                self.told = true;
                return Came::Broke(stops(&self.halted, false));
            }
        }
    }

    fn superstep(&mut self) -> Option<Came> {
        let mut failed = None;
        for at in 0..self.next.len() {
            let mut left = self.left.remove(&at).unwrap_or_default();
            if let Err(code) = self.task(at, &mut left) {
                failed.get_or_insert(code);
            }
            self.left.insert(at, left);
        }
        if let Some(code) = failed {
            return Some(Came::Failed(code));
        }
        let asked = self.open();
        if !asked.is_empty() {
            return Some(Came::Asked(asked));
        }
        let ended = (0..self.next.len()).filter_map(|at| {
            let (writes, going) = self.left[&at].done.clone()?;
            Some((self.actor(at), writes, going))
        });
        let ended: Vec<_> = ended.collect();
        let actors: Vec<usize> = ended.iter().map(|(actor, ..)| *actor).collect();
        if let Err(code) = self.merge(ended) {
            return Some(Came::Failed(code));
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
        self.happened.push(Happening::Values(self.step, self.world.clone()));
        self.commit(Source::Loop);
    }

    /// Who acts at a place of the frontier: the task's node, or whoever handles its failure.
    fn actor(&self, at: usize) -> usize {
        let (node, _) = self.next[at];
        let is_handled = self.left.get(&at).is_some_and(|left| left.failure.is_some());
        self.shape.nodes[node].handler.filter(|_| is_handled).unwrap_or(node)
    }

    /// Runs a task, and its handler if it fails, unless it has been run or waits.
    fn task(&mut self, at: usize, left: &mut Left<'a>) -> Result<(), &'static str> {
        let (node, input) = self.next[at];
        if let Some(child) = &self.shape.nodes[node].child {
            return self.call(at, child, left);
        }
        let handler = self.shape.nodes[node].handler;
        while left.done.is_none() && left.open.is_none() {
            let actor = handler.filter(|_| left.failure.is_some()).unwrap_or(node);
            let (answers, failure) = (left.answers.clone(), left.failure.clone());
            let called =
                Called { node: actor, input, failure, answers, path: self.path.clone(), round: self.round };
            match self.attempts(at, &called) {
                Ok(Attempt::Asks(asked)) => left.open = Some(asked),
                Ok(Attempt::Returns(writes, going)) => left.done = Some((vec![writes], going)),
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

    /// Calls a graph, or goes on with the call.
    fn call(&mut self, at: usize, child: &'a Child, left: &mut Left<'a>) -> Result<(), &'static str> {
        if left.done.is_some() {
            return Ok(());
        }
        let (node, input) = self.next[at];
        let (step, index) = (self.step, at as u32);
        add(&mut self.happened, step, index, OfTask::Started(name(node), input));
        let mut inner = match left.inner.take() {
            Some(inner) => inner,
            None => self.enter(node, child, input),
        };
        (inner.round, inner.step) = (self.round, 0);
        inner.memories = std::mem::take(&mut self.memories);
        let came = inner.run(&Act::default(), false);
        self.memories = std::mem::take(&mut inner.memories);
        if child.memory == Memory::PerThread {
            self.memories.insert(inner.path.clone(), inner.world.stored());
        }
        let twice = self.next.iter().filter(|(other, _)| *other == node).count() > 1;
        self.is_unclear |= inner.is_unclear || (twice && child.has_memory());
        let told = match came {
            Came::Finished { stuck } => {
                left.stuck = stuck;
                let writes = if child.embedded { vec![child_output(&inner.world)] } else { inner.sum() };
                left.done = Some((writes, None));
                OfTask::Done
            }
            Came::Asked(_) => {
                left.inner = Some(inner);
                OfTask::Waits
            }
            Came::Failed(code) => {
                left.inner = Some(inner).filter(|_| child.memory != Memory::None);
                add(&mut self.happened, step, index, OfTask::Failed(code));
                return Err(code);
            }
            came => unreachable!("a graph in a node came to {came:?}"),
        };
        add(&mut self.happened, step, index, told);
        Ok(())
    }

    /// A call that begins.
    fn enter(&self, node: usize, child: &'a Child, input: Option<u64>) -> Box<Model<'a>> {
        let mut inner = Box::new(Model::new(&child.shape, false));
        inner.path = format!("{}{}/", self.path, name(node));
        if child.embedded {
            let memory = self.memories.get(&inner.path).filter(|_| child.memory == Memory::PerThread);
            inner.world = memory.cloned().unwrap_or_default();
            inner.begin_with(child_input(&self.world, input)).expect("nothing leads nowhere");
        } else {
            inner.world = self.world.clone();
            let mut left = Leaving::default();
            inner.leave(None, &self.world, &mut left).expect("nothing leads nowhere");
            let next = inner.reached(left);
            inner.settle(next, 0);
        }
        inner
    }

    /// Its updates one after the other, as one writer. What was for the next superstep only is that of the
    /// last one.
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

    /// Attempt after attempt, until one is the last. A failure is its text, as a handler sees it, and its
    /// code.
    fn attempts(&mut self, at: usize, called: &Called) -> Result<Attempt, (String, &'static str)> {
        let node = &self.shape.nodes[called.node];
        let (step, index) = (self.step, at as u32);
        add(&mut self.happened, step, index, OfTask::Started(name(called.node), called.input));
        let mut count = 0;
        let last = loop {
            count += 1;
            self.spent.coins += node.coins;
            self.drains |= node.drains;
            if node.emits {
                add(&mut self.happened, step, index, OfTask::Emitted(name(called.node), count));
            }
            match attempt(self.shape, called, &self.world, count) {
                Attempt::Fails { again: true, .. } if count < node.attempts => {}
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
        let told = match &ended {
            Err((_, code)) => OfTask::Failed(code),
            Ok(Attempt::Returns(writes, _)) => {
                let updated = OfTask::Updated(name(called.node), writes.clone().into_json());
                add(&mut self.happened, step, index, updated);
                OfTask::Done
            }
            Ok(_) => OfTask::Waits,
        };
        add(&mut self.happened, step, index, told);
        ended
    }

    /// Clashes first, then routers in task order, then updates in task order.
    fn merge(&mut self, ended: Vec<Ended>) -> Result<(), &'static str> {
        if conflicts(ended.iter().map(|(_, writes, _)| writes)) {
            return Err("E_CONCURRENT_UPDATE");
        }
        let now = self.now_at();
        let mut world = World { flash: Vec::new(), ..self.world.clone() };
        let mut left = Leaving::default();
        let mut updates = Vec::new();
        for (node, writes, going) in ended {
            let (replaces, targets) = going.unwrap_or_default();
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

    /// Follows what leaves a node: edges, joins, routers.
    fn leave(&self, from: From, seen: &World, left: &mut Leaving) -> Result<(), &'static str> {
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

    /// What runs next: what routes and commands named, and the targets of the edges that fire.
    fn reached(&mut self, left: Leaving) -> Vec<Task> {
        let fired = self.rounds.arrive(self.shape, &left.arrivals, self.now_at());
        left.next.into_iter().chain(fired.into_iter().map(|node| (node, None))).collect()
    }

    /// The wall clock: tasks set it to the time of the state they see.
    fn now_at(&self) -> u64 {
        if self.step == 0 { self.now } else { time_at(self.world.tick) }
    }

    /// Nodes in order of declaration, each once; then dispatches in the order they were made. Deferred nodes
    /// wait until there is nothing else.
    fn settle(&mut self, next: Vec<Task>, now: u64) {
        let (dispatched, pulled): (Vec<Task>, Vec<Task>) =
            next.into_iter().partition(|(_, input)| input.is_some());
        let mut pulled: BTreeSet<usize> = pulled.into_iter().map(|(node, _)| node).collect();
        self.put_off(&mut pulled);
        let nothing_else = pulled.is_empty() && dispatched.is_empty();
        pulled.extend(self.rounds.due(self.shape, now, nothing_else));
        self.put_off(&mut pulled);
        if pulled.is_empty() && dispatched.is_empty() {
            pulled = std::mem::take(&mut self.deferred);
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

    /// The superstep beyond the limit: it writes, and goes nowhere.
    fn reach_limit(&mut self) -> Came {
        let stopped = Came::Stopped(StopReason::Limit);
        let Some(node) = self.shape.on_limit else { return stopped };
        self.step += 1;
        let called = Called { node, round: self.round, path: self.path.clone(), ..Called::default() };
        match self.attempts(0, &called) {
            Err((_, code)) => return Came::Failed(code),
            Ok(Attempt::Returns(writes, _)) => {
                self.world.flash.clear();
                apply(&mut self.world, &[writes]);
            }
            Ok(_) => return Came::Failed("E_NODE_FAILED"),
        }
        self.end_superstep();
        stopped
    }

    fn commit(&mut self, source: Source) {
        let (world, next) = (self.world.stored(), self.next.clone());
        let (deferred, rounds, halted) = (self.deferred.clone(), self.rounds.clone(), self.halted.clone());
        let (id, parent) = match self.base.map(|at| &self.stored[at]) {
            Some(last) if self.has_committed && self.stores_at_end => (last.id, last.parent),
            None => (CheckpointId::new(0, 0), None),
            Some(base) => {
                let newest = self.head.map_or(0, |head| self.stored[head].id.branch);
                let branch = if self.base == self.head { newest } else { newest + 1 };
                (CheckpointId::new(branch, base.id.step + 1), self.base)
            }
        };
        if self.has_committed && self.stores_at_end {
            self.stored.pop();
        }
        let (memories, stuck_inside) = (self.memories.clone(), self.stuck_inside.clone());
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
        (self.base, self.has_committed, self.told) = (self.head, true, false);
        let next = self.next.iter().map(|(node, _)| name(*node)).collect();
        self.happened.push(Happening::Checkpoint(id, source, next));
    }
}

/// Those of `nodes` at which the run stops.
fn among(nodes: &[usize], stops: &[usize]) -> Vec<usize> {
    nodes.iter().copied().filter(|node| stops.contains(node)).collect()
}

fn stops(nodes: &[usize], before: bool) -> Vec<(&'static str, bool)> {
    let mut told = BTreeSet::new();
    nodes.iter().copied().filter(|node| told.insert(*node)).map(|node| (name(node), before)).collect()
}

fn go((target, input): (Target, u64), next: &mut Vec<Task>) {
    match target {
        Target::Node(node) => next.push((node, None)),
        Target::Dispatch(node) => next.push((node, Some(input))),
        Target::End | Target::Ghost => {}
    }
}

/// Two tasks overwrite one channel, or write the one that takes a single writer.
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
