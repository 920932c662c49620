//! The behaviour of nodes and routers, as a pure function of what they read. The model and the nodes of
//! the engine both call it.

use super::shape::{EdgeSource, NODES, Shape, Target, name};
use super::world::{Channel, World, Write, Writes};

/// The arguments of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskCall {
    /// The path of the subgraph nodes around the task.
    pub path: String,
    pub node: usize,
    /// The input of a dispatch.
    pub input: Option<u64>,
    /// The node and the text of the handled failure.
    pub failure: Option<(String, String)>,
    pub answers: Vec<u64>,
    /// The number of the act that runs the task.
    pub round: u64,
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    Asks(u64),
    Fails { text: String, again: bool },
    Returns(Writes, Option<Routing>),
}

/// Whether a command replaces the edges, and its targets with their inputs.
pub type Routing = (bool, Vec<(Target, u64)>);

/// Returns the result of an attempt of a task.
pub fn attempt(shape: &Shape, called: &TaskCall, world: &World, attempt: u32) -> Attempt {
    let node = &shape.nodes[called.node];
    if (called.answers.len() as u32) < node.asks {
        return Attempt::Asks(request(called, called.answers.len() as u32));
    }
    let key = called.key(world.tick);
    let (calls, good) = node.heals;
    if called.round % calls != good {
        return Attempt::Fails { text: format!("{key} not in this call"), again: false };
    }
    let seen = called.input_digest(world);
    if node.fails.is_some_and(|modulus| seen.is_multiple_of(modulus)) {
        return Attempt::Fails { text: format!("{key} never"), again: false };
    }
    if attempt <= node.retries {
        return Attempt::Fails { text: format!("{key} not at this attempt"), again: true };
    }
    let values = node.writes.iter().enumerate();
    let writes = values.map(|(at, write)| (*write, (seen >> (3 * at)) % 1009 + called.node as u64 * 10_000));
    let writes = Writes { trace: Some(key), tick: Some(world.tick + 1), writes: writes.collect() };
    let command = node.command.as_ref();
    let slot = 50 + (called.input.unwrap_or(0) % 49) as usize;
    let routing =
        command.map(|command| (command.replaces, choose(&command.options, seen, Some(called.node), slot)));
    Attempt::Returns(writes, routing)
}

impl TaskCall {
    /// Returns a text that identifies the task within its run.
    pub fn key(&self, tick: u64) -> String {
        let handled = self.failure.as_ref().map_or("", |(node, _)| node);
        format!("<{}{}@{tick}#{:?}{handled}>", self.path, name(self.node), self.input)
    }

    fn input_digest(&self, world: &World) -> u64 {
        let mut seen = digest(world);
        for number in self.input.iter().chain(&self.answers) {
            seen = mixed(seen, &number.to_le_bytes());
        }
        for text in self.failure.iter().flat_map(|(node, text)| [node, text]) {
            seen = mixed(seen, text.as_bytes());
        }
        seen >> 8
    }
}

/// Returns the input of a subgraph that has a state of its own.
pub fn child_input(world: &World, input: Option<u64>) -> Writes {
    let writes = vec![(Write::Reduce(Channel::Log), input.unwrap_or(5) % 1009)];
    Writes { trace: None, tick: Some(world.tick * 1_000), writes }
}

/// Returns the writes of the outer graph for the last state of such a subgraph.
pub fn child_output(world: &World) -> Writes {
    let writes = vec![(Write::Reduce(Channel::Log), digest(world) % 1009)];
    Writes { trace: world.trace.last().cloned(), tick: Some(world.tick / 1_000 + 1), writes }
}

/// Returns the value of an interrupt, unique for each task and request of a superstep.
fn request(called: &TaskCall, n: u32) -> u64 {
    let handles = u64::from(called.failure.is_some());
    called.node as u64 * 10_000
        + called.input.map_or(0, |input| 1 + input % 499) * 20
        + handles * 10
        + u64::from(n)
}

/// Returns the answer to a request.
pub fn answer(request: u64) -> u64 {
    request * 3 + 1
}

/// Returns the targets a router chooses.
pub fn routed(options: &[Vec<Target>], world: &World, from: EdgeSource, slot: usize) -> Vec<(Target, u64)> {
    choose(options, digest(world) >> 8, from, slot)
}

/// Chooses one of the options and returns its targets, each with the input it gets if it is a dispatch.
fn choose(options: &[Vec<Target>], seen: u64, from: EdgeSource, slot: usize) -> Vec<(Target, u64)> {
    let Some(option) = options.get((seen % options.len().max(1) as u64) as usize) else { return Vec::new() };
    let places = option.iter().enumerate();
    places.map(|(place, target)| (*target, dispatch_input(seen, from, slot, place))).collect()
}

/// Returns the input of a dispatch, unique within its superstep.
fn dispatch_input(seen: u64, from: EdgeSource, slot: usize, place: usize) -> u64 {
    let from = from.unwrap_or(NODES) as u64;
    (seen % 1_000_000) * 100_000 + from * 10_000 + slot as u64 * 100 + place as u64
}

/// Returns a hash of every part of the state that nodes read.
fn digest(world: &World) -> u64 {
    let World { trace, tick, log, table, last, items, top, single, heard, flash, loose: _ } = world;
    let mut seen = 0xcbf2_9ce4_8422_2325;
    // The trace only grows, and each entry depends on the earlier ones: its length and its last entry
    // suffice.
    seen = mixed(seen, &trace.len().to_le_bytes());
    seen = mixed(seen, trace.last().map_or(&[], |last| last.as_bytes()));
    for number in [tick, top, single].into_iter().chain(log).chain(heard).chain([&77]).chain(flash) {
        seen = mixed(seen, &number.to_le_bytes());
    }
    for (key, value) in table.iter().chain(items.iter().map(|item| (&item.id, &item.value))) {
        seen = mixed(mixed(seen, key.as_bytes()), &value.to_le_bytes());
    }
    mixed(seen, last.as_bytes())
}

fn mixed(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the wall clock in milliseconds while tasks that see this tick run.
pub fn time_at(tick: u64) -> u64 {
    1_000 * tick
}

/// Whether only one task of a superstep may make such a write to a channel.
pub fn is_exclusive(write: Write) -> bool {
    write.overwrites() || write.channel() == Channel::Single
}
