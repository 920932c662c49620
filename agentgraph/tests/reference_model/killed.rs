//! Threads whose calls are cut short. Each call is a process of its own: a runtime and a graph that nothing
//! outlives but the store. Whoever finds the thread afterwards goes by what it says.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agentgraph::checkpoint::Source;
use agentgraph::prelude::*;
use agentgraph::{Durability, SqliteSaver};

use crate::common::poll::at_most;
use crate::common::saver::NotingSaver;

use super::behaviour::time_at;
use super::build::build;
use super::drive::{Manner, act, history, status};
use super::model::{Act, What};
use super::outside::Outside;
use super::script::{CHECKPOINTS, Scene};
use super::shape::Shape;
use super::told::{Came, Seen, Status, Told};
use super::world::World;

/// Acts after which a thread is left alone.
const ACTS: u64 = 80;

/// Where checkpoints are kept.
#[derive(Clone)]
pub enum Store {
    Memory(NotingSaver),
    File(PathBuf),
}

impl Store {
    pub fn memory() -> Self {
        Store::Memory(NotingSaver::memory())
    }

    pub async fn open(&self) -> NotingSaver {
        match self {
            Store::Memory(saver) => saver.clone(),
            Store::File(path) => NotingSaver::new(SqliteSaver::open(path).await.unwrap()),
        }
    }
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// When the call is over.
    InTime,
    /// The run is dropped after so many polls, and what it handed over is carried out.
    Dropped(u32),
    /// Everything is gone after so many polls.
    Killed(u32),
}

/// What a process leaves: what the call came to, unless it was cut short, and the thread.
struct Left {
    told: Option<Told>,
    history: Vec<Seen>,
    status: Option<Status>,
}

pub struct Life<'a> {
    shape: &'a Shape,
    store: Store,
    outside: Outside,
    manner: Manner,
    kills: usize,
}

impl<'a> Life<'a> {
    pub fn new(shape: &'a Shape, store: Store, manner: Manner) -> Self {
        let outside = match &store {
            // The same node of the same graph may be called with the same state again, within another call.
            _ if shape.has_children() => Outside::default(),
            Store::File(_) => Outside::default(),
            Store::Memory(saver) => {
                let saver = saver.clone();
                Outside::checked(move |key| {
                    assert!(!saver.has_stored_marked(key), "{key} runs although its record is stored");
                })
            }
        };
        Life { shape, store, outside, manner, kills: 0 }
    }

    /// Lives it, each process up to one of these ends and the others to theirs. Checks at every end that
    /// `expected` goes on from what is there. Gives what the last call came to, and the thread's history.
    pub fn live(&mut self, ends: &[End], expected: &[Seen]) -> (Option<Came>, Vec<Seen>) {
        let (mut ends, mut last) = (ends.iter(), None);
        let mut left = Left { told: None, history: Vec::new(), status: None };
        for round in 0..ACTS {
            let Some(what) = next(self.shape, &left) else { break };
            let now = left.history.last().map_or(0, |newest| time_at(newest.values.tick));
            let doing = Act { what, at: None, round, now, budget: (None, None) };
            left = self.process(&doing, *ends.next().unwrap_or(&End::InTime));
            for (step, (lived, expected)) in left.history.iter().zip(expected).enumerate() {
                assert_eq!(lived, expected, "checkpoint {step} after act {round}, {doing:?}");
            }
            if let Some(output) = left.told.as_ref().and_then(|told| told.output.as_ref()) {
                let newest = left.history.last().map(|newest| &newest.values);
                assert_eq!(
                    newest,
                    Some(&output.stored()),
                    "what a call gives is stored, act {round}, {doing:?}"
                );
            }
            last = left.told.as_ref().map(|told| told.came.clone());
            if last.as_ref().is_some_and(Came::is_hopeless) {
                // The script was left alone before it came to that, and what it knows has been lived.
                assert!(left.history.len() >= expected.len(), "{last:?} in act {round}, {doing:?}");
                break;
            }
            if left.history.len() >= CHECKPOINTS {
                break;
            }
        }
        self.check_effects();
        (last, left.history)
    }

    /// Plays a thread that is stored at the end of each call. A call that is cut short has not happened, or
    /// has.
    pub fn play(&mut self, scenes: &[Scene], ends: &[End]) {
        let mut ends = ends.iter();
        let nothing = (Vec::new(), None);
        let mut before = (&nothing.0, &nothing.1);
        for (round, scene) in scenes.iter().enumerate() {
            let mut doing = scene.act.clone();
            loop {
                let left = self.process(&doing, *ends.next().unwrap_or(&End::InTime));
                if let Some(told) = left.told {
                    assert_eq!(told.came, scene.told.came, "act {round}, {doing:?}");
                    break;
                }
                if (&left.history, &left.status) == before {
                    continue;
                }
                // Cut short behind its commit: it stands, and what its tasks left behind beside it may be
                // missing.
                assert_eq!(left.history, scene.history, "act {round}, {doing:?}");
                if left.status == scene.status {
                    break;
                }
                doing.what = What::Proceed;
                before = (&scene.history, &scene.status);
            }
            before = (&scene.history, &scene.status);
        }
    }

    fn process(&mut self, doing: &Act, end: End) -> Left {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (told, graph) = runtime.block_on(async {
            let graph = self.graph().await;
            let acting = act(&graph, &self.outside, self.shape, &self.manner, doing).await;
            let told = match end {
                End::InTime => Some(acting.await),
                End::Dropped(polls) | End::Killed(polls) => at_most(acting, polls).await,
            };
            (told.map(|(told, _)| told), graph)
        });
        self.kills += usize::from(told.is_none());
        if let End::Dropped(_) = end {
            return runtime.block_on(left(told, &graph));
        }
        drop((runtime, graph));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { left(told, &self.graph().await).await })
    }

    async fn graph(&self) -> CompiledGraph<World> {
        build(self.shape, &self.outside).checkpointer(self.store.open().await)
    }

    fn check_effects(&self) {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for effect in self.outside.effects() {
            *times.entry(effect).or_default() += 1;
        }
        // A sibling that is dropped with a failed one runs again too.
        if !self.shape.has_children()
            && self.manner.siblings == agentgraph::policy::Siblings::Drain
            && self.manner.durability == Durability::Sync
        {
            for (task, times) in times {
                assert!(times <= 1 + self.kills, "{task} completed {times} times with {} kills", self.kills);
            }
        }
    }
}

async fn left(told: Option<Told>, graph: &CompiledGraph<World>) -> Left {
    Left { told, history: history(graph).await, status: status(graph).await }
}

/// What is to be done, by what the thread says.
fn next(shape: &Shape, left: &Left) -> Option<What> {
    let is_unfinished = left.history.last().is_some_and(|newest| !newest.next.is_empty());
    let open = left.status.as_ref().map_or(0, |status| status.asks.len());
    match (is_unfinished, open) {
        (true, 0) => Some(What::Proceed),
        (true, open) => Some(What::Resume(shape.answers.of(open))),
        (false, _) => {
            let begun = left.history.iter().filter(|seen| seen.source == Source::Input).count();
            Some(What::Invoke(shape.inputs.get(begun)?.clone()))
        }
    }
}
