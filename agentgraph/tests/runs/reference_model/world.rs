//! The state of the random graphs, with one channel for each kind of reducer, and writes to it as data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentgraph::{Keyed, State};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct World {
    /// One entry per merged task; never overwritten.
    #[reduce(append)]
    pub trace: Vec<String>,
    /// The number of merged supersteps.
    #[reduce(last)]
    pub tick: u64,
    #[reduce(append)]
    pub log: Vec<u64>,
    #[reduce(merge)]
    pub table: BTreeMap<String, u64>,
    #[reduce(last)]
    pub last: String,
    #[reduce(by_id)]
    pub items: Vec<Item>,
    #[reduce(with = keep_max)]
    pub top: u64,
    pub single: u64,
    #[reduce(append)]
    #[channel(run)]
    pub heard: Vec<u64>,
    #[reduce(append)]
    #[channel(ephemeral)]
    pub flash: Vec<u64>,
    /// Never stored, so nodes do not look at it.
    #[reduce(append)]
    #[channel(untracked)]
    pub loose: Vec<u64>,
}

impl World {
    /// Returns the state as a store gives it back.
    pub fn stored(&self) -> World {
        World { loose: Vec::new(), ..self.clone() }
    }
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Item {
    pub id: String,
    pub value: u64,
}

impl Keyed for Item {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

fn keep_max(value: &mut u64, write: u64) {
    *value = (*value).max(write);
}

/// The channels that a random node may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    Log,
    Table,
    Last,
    Items,
    Top,
    Single,
    Heard,
    Flash,
    Loose,
}

/// One write of a node. Its value is computed when the node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Reduce(Channel),
    /// Removes an item by key.
    Remove,
    Overwrite(Channel),
}

impl Write {
    pub fn channel(self) -> Channel {
        match self {
            Write::Reduce(channel) | Write::Overwrite(channel) => channel,
            Write::Remove => Channel::Items,
        }
    }

    pub fn overwrites(self) -> bool {
        matches!(self, Write::Overwrite(_))
    }
}

pub fn key(value: u64) -> String {
    format!("k{}", value % 3)
}

/// Returns the writes of an input or an edit.
pub fn given(writes: &[Write]) -> Writes {
    let writes = writes.iter().enumerate().map(|(at, write)| (*write, 3 + at as u64));
    Writes { writes: writes.collect(), ..Writes::default() }
}

/// The update of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    pub trace: Option<String>,
    pub tick: Option<u64>,
    pub writes: Vec<(Write, u64)>,
}

impl Writes {
    /// Returns the update as events show it.
    pub fn into_json(self) -> serde_json::Value {
        update_json(&self.into_update())
    }

    pub fn into_update(self) -> WorldUpdate {
        let mut update = World::update();
        if let Some(trace) = self.trace {
            update = update.trace([trace]);
        }
        if let Some(tick) = self.tick {
            update = update.tick(tick);
        }
        self.writes.into_iter().fold(update, |update, (write, value)| match write {
            Write::Reduce(channel) => reduce(update, channel, value),
            Write::Remove => update.remove_items([key(value)]),
            Write::Overwrite(channel) => overwrite(update, channel, value),
        })
    }
}

/// Returns an update as events show it. Any graph over this state converts it the same way.
pub fn update_json(update: &WorldUpdate) -> serde_json::Value {
    use agentgraph::{START, StateGraph};
    thread_local! {
        static GRAPH: agentgraph::CompiledGraph<World> =
            StateGraph::new().node("any", || std::future::ready(())).edge(START, "any").compile().unwrap();
    }
    GRAPH.with(|graph| graph.update_json(update).unwrap())
}

fn reduce(update: WorldUpdate, channel: Channel, value: u64) -> WorldUpdate {
    match channel {
        Channel::Log => update.log([value]),
        Channel::Table => update.table([(key(value), value)]),
        Channel::Last => update.last(value.to_string()),
        Channel::Items => update.items([Item { id: key(value), value }]),
        Channel::Top => update.top(value),
        Channel::Single => update.single(value),
        Channel::Heard => update.heard([value]),
        Channel::Flash => update.flash([value]),
        Channel::Loose => update.loose([value]),
    }
}

fn overwrite(update: WorldUpdate, channel: Channel, value: u64) -> WorldUpdate {
    match channel {
        Channel::Log => update.overwrite_log(vec![value]),
        Channel::Table => update.overwrite_table(BTreeMap::from([(key(value), value)])),
        Channel::Last => update.overwrite_last(value.to_string()),
        Channel::Items => update.overwrite_items(vec![Item { id: key(value), value }]),
        Channel::Top => update.overwrite_top(value),
        Channel::Single => update.single(value),
        Channel::Heard => update.overwrite_heard(vec![value]),
        Channel::Flash => update.overwrite_flash(vec![value]),
        Channel::Loose => update.overwrite_loose(vec![value]),
    }
}
