//! What the engine means, once more: sequential, slow, plain, and without any of the engine's code.

use std::collections::{BTreeMap, BTreeSet};

use super::shape::{
    From, Shape, Target, answer, choose, digest, name, request, result, source_name, target_name,
};
use super::world::{Channel, Item, World, Write, Writes, key};

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    Finished {
        stuck: Vec<(&'static str, Vec<&'static str>, Vec<&'static str>)>,
    },
    /// Open requests: node and what it asks, in task order.
    Asked(Vec<(&'static str, u64)>),
    /// Static interrupts: the nodes, and whether before them.
    Broke(Vec<(&'static str, bool)>),
    Limit,
    Failed(&'static str),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Invoke {
        input: Vec<Write>,
        abandon: bool,
    },
    /// How many of the open requests are answered, the first ones.
    Resume(usize),
    Proceed,
}

/// A task to come: its node, and the input of a dispatch.
type Task = (usize, Option<u64>);

/// What a task of the open superstep left behind.
#[derive(Clone, Debug)]
enum Left {
    Done(Writes, Option<(bool, Vec<(Target, u64)>)>),
    Asks { answered: u32, open: bool },
}

pub struct Model<'a> {
    shape: &'a Shape,
    pub world: World,
    pub next: Vec<Task>,
    arrived: BTreeMap<usize, BTreeSet<From>>,
    left: BTreeMap<usize, Left>,
    /// Every checkpoint: its state, and who runs next.
    pub history: Vec<(World, Vec<&'static str>)>,
}

impl<'a> Model<'a> {
    pub fn new(shape: &'a Shape) -> Self {
        let (world, next) = (World::default(), Vec::new());
        Model { shape, world, next, arrived: BTreeMap::new(), left: BTreeMap::new(), history: Vec::new() }
    }

    /// Does a call; `round` counts them from 0.
    pub fn call(&mut self, call: &Call, round: u64) -> Came {
        let mut passes_breaks = true;
        match call {
            Call::Invoke { input, .. } => {
                passes_breaks = false;
                if let Err(code) = self.begin(input) {
                    return Came::Failed(code);
                }
            }
            Call::Resume(count) => {
                let open = self.left.values_mut().filter_map(|left| match left {
                    Left::Asks { answered, open: open @ true } => Some((answered, open)),
                    _ => None,
                });
                for (answered, open) in open.take(*count) {
                    (*answered, *open) = (*answered + 1, false);
                }
            }
            Call::Proceed => {}
        }
        for step in 0.. {
            if self.next.is_empty() {
                return Came::Finished { stuck: self.stuck() };
            }
            let stops = self.broken(&self.shape.before, true);
            if !stops.is_empty() && !std::mem::take(&mut passes_breaks) {
                return Came::Broke(stops);
            }
            passes_breaks = false;
            if step == self.shape.limit {
                return Came::Limit;
            }
            let stops = self.broken(&self.shape.after, false);
            if let Some(came) = self.superstep(round) {
                return came;
            }
            if !stops.is_empty() && !self.next.is_empty() {
                return Came::Broke(stops);
            }
        }
        unreachable!("the loop only ends by returning")
    }

    fn begin(&mut self, input: &[Write]) -> Result<(), &'static str> {
        let before = (self.world.clone(), self.next.clone());
        self.world.heard.clear();
        self.world.flash.clear();
        let writes = input.iter().enumerate().map(|(at, write)| (*write, 3 + at as u64)).collect();
        apply(&mut self.world, &[Writes { writes, ..Writes::default() }]);
        self.arrived.clear();
        let mut next = Vec::new();
        if let Err(code) = self.leave(None, &self.world.clone(), &mut next) {
            (self.world, self.next) = before;
            return Err(code);
        }
        self.left.clear();
        self.commit(next);
        Ok(())
    }

    fn superstep(&mut self, round: u64) -> Option<Came> {
        let mut failed = None;
        for (at, (node, input)) in self.next.clone().into_iter().enumerate() {
            let answered = match self.left.get(&at) {
                Some(Left::Done(..) | Left::Asks { open: true, .. }) => continue,
                Some(Left::Asks { answered, .. }) => *answered,
                None => 0,
            };
            let shape = &self.shape.nodes[node];
            if answered < shape.asks {
                self.left.insert(at, Left::Asks { answered, open: true });
            } else if round % shape.heals.0 != shape.heals.1 {
                failed.get_or_insert("E_NODE_FAILED");
            } else {
                let answers: Vec<u64> = (0..answered).map(|n| answer(request(node, input, n))).collect();
                let (writes, command) = result(self.shape, node, &self.world, input, &answers);
                self.left.insert(at, Left::Done(writes, command));
            }
        }
        if let Some(code) = failed {
            return Some(Came::Failed(code));
        }
        let tasks = self.next.iter().enumerate();
        let asked = tasks.filter_map(|(at, (node, input))| match self.left[&at] {
            Left::Asks { answered, .. } => Some((name(*node), request(*node, *input, answered))),
            Left::Done(..) => None,
        });
        let asked: Vec<_> = asked.collect();
        if !asked.is_empty() {
            return Some(Came::Asked(asked));
        }
        self.merge().err().map(Came::Failed)
    }

    /// Routers in task order, then updates in task order.
    fn merge(&mut self) -> Result<(), &'static str> {
        let arrived = self.arrived.clone();
        let mut world = World { flash: Vec::new(), ..self.world.clone() };
        let mut next = Vec::new();
        let mut updates = Vec::new();
        for (at, (node, _)) in self.next.clone().into_iter().enumerate() {
            let Left::Done(writes, command) = self.left[&at].clone() else { unreachable!("a task is open") };
            let (replaces, targets) = command.unwrap_or_default();
            if !replaces {
                let mut own = world.clone();
                apply(&mut own, std::slice::from_ref(&writes));
                if let Err(code) = self.leave(Some(node), &own, &mut next) {
                    self.arrived = arrived;
                    return Err(code);
                }
            }
            targets.into_iter().for_each(|target| go(target, &mut next));
            updates.push(writes);
        }
        if conflicts(&updates) {
            self.arrived = arrived;
            return Err("E_CONCURRENT_UPDATE");
        }
        apply(&mut world, &updates);
        self.world = world;
        self.left.clear();
        self.commit(next);
        Ok(())
    }

    /// Follows what leaves a node: edges, joins, routers.
    fn leave(&mut self, from: From, seen: &World, next: &mut Vec<Task>) -> Result<(), &'static str> {
        for (at, edge) in self.shape.edges.iter().enumerate().filter(|(_, edge)| edge.from.contains(&from)) {
            let arrived = self.arrived.entry(at).or_default();
            arrived.insert(from);
            if arrived.len() == edge.from.len() {
                arrived.clear();
                next.extend(edge.to.map(|to| (to, None)));
            }
        }
        for (slot, router) in self.shape.routers.iter().enumerate().filter(|(_, router)| router.from == from)
        {
            for target in choose(&router.options, digest(seen), from, slot) {
                match target {
                    (Target::Ghost, _) if router.typed => {}
                    (Target::Ghost, _) => return Err("E_UNKNOWN_TARGET"),
                    known => go(known, next),
                }
            }
        }
        Ok(())
    }

    /// Nodes in order of declaration, each once; then dispatches in the order they were made.
    fn commit(&mut self, next: Vec<Task>) {
        let (dispatched, pulled): (Vec<Task>, Vec<Task>) =
            next.into_iter().partition(|(_, input)| input.is_some());
        let pulled: BTreeSet<Task> = pulled.into_iter().collect();
        self.next = pulled.into_iter().chain(dispatched).collect();
        self.history.push((self.world.clone(), self.next.iter().map(|(node, _)| name(*node)).collect()));
    }

    fn broken(&self, at: &[usize], before: bool) -> Vec<(&'static str, bool)> {
        let mut stops: Vec<_> =
            self.next.iter().filter(|(node, _)| at.contains(node)).map(|(node, _)| *node).collect();
        stops.dedup();
        stops.into_iter().map(|node| (name(node), before)).collect()
    }

    fn stuck(&self) -> Vec<(&'static str, Vec<&'static str>, Vec<&'static str>)> {
        let edges = self.shape.edges.iter().enumerate();
        let stuck = edges.filter_map(|(at, edge)| {
            let arrived = self.arrived.get(&at).filter(|arrived| !arrived.is_empty())?;
            let (here, missing): (Vec<From>, Vec<From>) =
                edge.from.iter().partition(|from| arrived.contains(from));
            let names = |from: Vec<From>| from.into_iter().map(source_name).collect();
            Some((target_name(edge.to), names(here), names(missing)))
        });
        stuck.collect()
    }
}

fn go((target, input): (Target, u64), next: &mut Vec<Task>) {
    match target {
        Target::Node(node) => next.push((node, None)),
        Target::Dispatch(node) => next.push((node, Some(input))),
        Target::End | Target::Ghost => {}
    }
}

/// Two tasks overwrite one channel, or write the one that takes a single writer.
fn conflicts(updates: &[Writes]) -> bool {
    let mut taken = BTreeSet::new();
    updates.iter().any(|update| {
        let exclusive = |(write, _): &(Write, u64)| write.overwrites() || write.channel() == Channel::Single;
        let exclusive: BTreeSet<Channel> =
            update.writes.iter().filter(|one| exclusive(one)).map(|(write, _)| write.channel()).collect();
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
    }
}
