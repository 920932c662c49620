//! Threads whose calls are cut short. Each call is a process of its own: a runtime and a graph of which
//! only the store survives. The next process decides by the state of the thread how to continue.

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
use super::model::{Act, Action};
use super::outside::Outside;
use super::script::{CHECKPOINTS, Scene};
use super::shape::Shape;
use super::told::{ActEnd, ActResult, HistoryEntry, Status};
use super::world::World;

/// The maximum number of acts on a thread.
const ACTS: u64 = 80;

/// The store of a thread.
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

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process ends after the call.
    InTime,
    /// The run is dropped after this many polls; the store still carries out its handed-over work.
    Dropped(u32),
    /// The whole process ends after this many polls.
    Killed(u32),
}

/// The state after a process: the result of the call, unless it was cut short, and the thread.
struct AfterProcess {
    result: Option<ActResult>,
    history: Vec<HistoryEntry>,
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
            // A subgraph may call the same node with the same state again, within another call.
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

    /// Runs processes until the thread is done. `ends` cuts the first ones short; later ones end in time.
    /// Asserts after each process that the history agrees with `expected`. Returns the end of the last
    /// call and the history.
    pub fn live(&mut self, ends: &[End], expected: &[HistoryEntry]) -> (Option<ActEnd>, Vec<HistoryEntry>) {
        let mut ends = ends.iter();
        let mut last = None;
        let mut after = AfterProcess { result: None, history: Vec::new(), status: None };
        for round in 0..ACTS {
            let Some(action) = next_action(self.shape, &after) else { break };
            let now = after.history.last().map_or(0, |newest| time_at(newest.values.tick));
            let doing = Act { action, at: None, round, now, budget: (None, None) };
            after = self.process(&doing, *ends.next().unwrap_or(&End::InTime));
            for (step, (lived, expected)) in after.history.iter().zip(expected).enumerate() {
                assert_eq!(lived, expected, "checkpoint {step} after act {round}, {doing:?}");
            }
            if let Some(output) = after.result.as_ref().and_then(|result| result.output.as_ref()) {
                let newest = after.history.last().map(|newest| &newest.values);
                assert_eq!(
                    newest,
                    Some(&output.stored()),
                    "the output of a call is stored; act {round}, {doing:?}"
                );
            }
            last = after.result.as_ref().map(|result| result.end.clone());
            if last.as_ref().is_some_and(ActEnd::is_hopeless) {
                // The script stopped before this failure. The thread has reached every checkpoint of the
                // script.
                assert!(after.history.len() >= expected.len(), "{last:?} in act {round}, {doing:?}");
                break;
            }
            if after.history.len() >= CHECKPOINTS {
                break;
            }
        }
        self.check_effects();
        (last, after.history)
    }

    /// Plays a thread that is stored at the end of each call. A call that is cut short is either stored
    /// or has no effect.
    pub fn play(&mut self, scenes: &[Scene], ends: &[End]) {
        let mut ends = ends.iter();
        let nothing = (Vec::new(), None);
        let mut before = (&nothing.0, &nothing.1);
        for (round, scene) in scenes.iter().enumerate() {
            let mut doing = scene.act.clone();
            loop {
                let after = self.process(&doing, *ends.next().unwrap_or(&End::InTime));
                if let Some(result) = after.result {
                    assert_eq!(result.end, scene.result.end, "act {round}, {doing:?}");
                    break;
                }
                if (&after.history, &after.status) == before {
                    continue;
                }
                // The call was cut short after its commit. The commit is stored; pending writes of its
                // tasks may be missing.
                assert_eq!(after.history, scene.history, "act {round}, {doing:?}");
                if after.status == scene.status {
                    break;
                }
                doing.action = Action::Proceed;
                before = (&scene.history, &scene.status);
            }
            before = (&scene.history, &scene.status);
        }
    }

    fn process(&mut self, doing: &Act, end: End) -> AfterProcess {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (result, graph) = runtime.block_on(async {
            let graph = self.graph().await;
            let acting = act(&graph, &self.outside, self.shape, &self.manner, doing).await;
            let result = match end {
                End::InTime => Some(acting.await),
                End::Dropped(polls) | End::Killed(polls) => at_most(acting, polls).await,
            };
            (result.map(|(result, _)| result), graph)
        });
        self.kills += usize::from(result.is_none());
        if let End::Dropped(_) = end {
            return runtime.block_on(after_process(result, &graph));
        }
        drop((runtime, graph));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { after_process(result, &self.graph().await).await })
    }

    async fn graph(&self) -> CompiledGraph<World> {
        build(self.shape, &self.outside).checkpointer(self.store.open().await)
    }

    fn check_effects(&self) {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for effect in self.outside.effects() {
            *times.entry(effect).or_default() += 1;
        }
        // A sibling that was cancelled because of a failure runs again too.
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

async fn after_process(result: Option<ActResult>, graph: &CompiledGraph<World>) -> AfterProcess {
    AfterProcess { result, history: history(graph).await, status: status(graph).await }
}

/// Returns the next action, chosen by the state of the thread.
fn next_action(shape: &Shape, after: &AfterProcess) -> Option<Action> {
    let is_unfinished = after.history.last().is_some_and(|newest| !newest.next.is_empty());
    let open = after.status.as_ref().map_or(0, |status| status.asks.len());
    match (is_unfinished, open) {
        (true, 0) => Some(Action::Proceed),
        (true, open) => Some(Action::Resume(shape.answers.of(open))),
        (false, _) => {
            let begun = after.history.iter().filter(|seen| seen.source == Source::Input).count();
            Some(Action::Invoke(shape.inputs.get(begun)?.clone()))
        }
    }
}
