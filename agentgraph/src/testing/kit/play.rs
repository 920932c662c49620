//! [`Play`]: one run of a graph under test, from its input to its end, with its answers.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;

use super::drive::drive;
use super::finding::{Finding, FindingKind, Report};
use super::kill_switch::{KillSwitch, TestSaver};
use super::merged::{Fickle, Merged};
use super::paths::path_of;
use super::probe::{CodePlace, Here};
use super::script::{Answers, Question};
use super::test_graph::{SetUp, TestGraph, Testable};
use super::test_run::{DECISIONS, OutputRecord, TestRun, Watcher};
use super::trace::Trace;
use crate::erased::observed::{ObservedEnd, Observer};
use crate::error::{Code, Error};
use crate::run::{CompiledGraph, Event, EventKind, RunBuilder};
use crate::state::State;
use crate::words::{Interrupt, InterruptKind, Outcome, View};

/// The thread of every run; each run has a store of its own.
const THREAD: &str = "test";

/// The most calls of one run: a node that asks the same for ever gets its answer for ever.
const CALLS: usize = 1_000;

/// How a run ended.
pub(super) type Ended<S> = Result<Outcome<S>, Error>;

/// One run under test.
pub(super) struct Play<G: Testable> {
    graph: CompiledGraph<G::State>,
    pub(super) run: Arc<TestRun>,
    answers: Answers,
    set_up: Option<Arc<SetUp<G::State>>>,
    events: Vec<Event<G::State>>,
    asked: Vec<Interrupt>,
    /// The last committed state, for the reducers.
    before: Option<G::State>,
    /// Updates by node, that are to be merged again after the run.
    merged: Vec<(String, Merged<G::State>)>,
    pub(super) report: Report,
    round: u32,
}

impl<G: Testable> Play<G> {
    pub(super) fn new(
        test: &TestGraph<G>,
        kill: Option<Arc<KillSwitch>>,
        seed: Option<u64>,
        learned: Option<Vec<(Question, Value)>>,
    ) -> Self {
        let kill = kill.unwrap_or_else(|| KillSwitch::at(None));
        let run = TestRun::new(test.injections.clone(), Arc::clone(&kill), seed, test.holds_time);
        let watcher: Arc<dyn Observer> = Arc::new(Watcher(Arc::clone(&run)));
        let graph = test.graph(watcher).checkpointer(TestSaver::new(&kill)).services(run.time.clone());
        Play {
            graph,
            run,
            answers: Answers::new(test.script.clone(), learned),
            set_up: test.set_up.clone(),
            events: Vec::new(),
            asked: Vec::new(),
            before: None,
            merged: Vec::new(),
            report: Report::default(),
            round: 0,
        }
    }

    pub(super) fn schema(&self) -> &<G::State as State>::Schema {
        self.graph.schema()
    }

    pub(super) fn answered(&self) -> &[(Question, Value)] {
        self.answers.log()
    }

    /// Runs from the input to the end; `None` if the run was killed.
    pub(super) async fn run_to_end(&mut self, input: G::Input) -> Option<Ended<G::State>> {
        let call = G::begin(&self.graph, input);
        self.calls_from(call).await
    }

    /// Goes on after a kill as a program would that finds the thread in its store.
    pub(super) async fn continue_to_end(&mut self, input: G::Input) -> Option<Ended<G::State>> {
        let call = match self.graph.state(THREAD).await {
            Err(error) => return Some(Err(error)),
            Ok(None) => G::begin(&self.graph, input),
            Ok(Some(found)) if found.interrupts.is_empty() => self.graph.proceed(),
            Ok(Some(found)) => match self.reply(&found.interrupts) {
                Some(call) => call,
                // It waits where the undisturbed run does; a call that changes nothing shows its end.
                None => self.graph.proceed(),
            },
        };
        self.calls_from(call).await
    }

    /// The state of the thread, if its run has finished: nothing is left to continue.
    pub(super) async fn finished_state(&self, ended: &Ended<G::State>) -> Option<G::State> {
        match ended {
            Err(error) if error.code() == Code::NothingToResume => {
                Some(self.graph.state(THREAD).await.ok()??.values)
            }
            _ => None,
        }
    }

    /// Makes calls until the run waits for nothing that the test has.
    async fn calls_from(&mut self, first: RunBuilder<G::State>) -> Option<Ended<G::State>> {
        let mut ended = self.call(first).await?;
        for _ in 1..CALLS {
            let next = match &ended {
                Ok(outcome) => self.reply(outcome.interrupts()),
                Err(_) => None,
            };
            let Some(call) = next else { break };
            ended = self.call(call).await?;
        }
        Some(ended)
    }

    /// The call that continues a run which waits.
    fn reply(&mut self, open: &[Interrupt]) -> Option<RunBuilder<G::State>> {
        let answers: Vec<_> = open.iter().filter_map(|open| self.answers.to(open)).collect();
        if !answers.is_empty() {
            return Some(self.graph.resume_many(answers));
        }
        if open.is_empty() || open.iter().any(|open| open.kind == InterruptKind::Asked) {
            return None;
        }
        if let Some(until) = open.iter().filter_map(|open| open.until).min() {
            self.run.time.advance_to(until);
        }
        Some(self.graph.proceed())
    }

    async fn call(&mut self, call: RunBuilder<G::State>) -> Option<Ended<G::State>> {
        let call = G::limited(call).thread(THREAD).subgraphs().views([
            View::Debug,
            View::Values,
            View::Updates,
            View::Custom,
            View::Messages,
        ]);
        let call = match &self.set_up {
            None => call,
            Some(change) => change(call),
        };
        self.round += 1;
        self.run.begin_round();
        let run = Arc::clone(&self.run);
        let mut stream = call.stream();
        let ended = loop {
            let next = pin!(stream.next());
            match drive(next, || run.kill.is_killed(), |rested| run.idle(rested)).await? {
                Some(Event { kind: EventKind::Ended(ended), .. }) => break ended,
                Some(event) => self.heard(event),
                None => break Err(Error::new(Code::NothingToResume, "the stream of the run has no end")),
            }
        };
        if let Ok(outcome) = &ended {
            self.asked.extend(outcome.interrupts().iter().cloned());
        }
        Some(ended)
    }

    fn heard(&mut self, event: Event<G::State>) {
        match &event.kind {
            EventKind::Values(state) => self.before = Some(G::State::clone(state)),
            EventKind::Update { node, update: Some(update) } => self.check_reducers(node, update),
            _ => {}
        }
        self.events.push(event);
    }

    /// Applies an update again to copies of the state that it is merged into.
    fn check_reducers(&mut self, node: &str, update: &<G::State as State>::Update) {
        let Some(before) = &self.before else { return };
        let place = Arc::new(CodePlace::Reducer(Arc::from(node)));
        let here = Here { run: Arc::clone(&self.run), place };
        let schema = self.graph.schema();
        let Some((merged, fickle)) = here.scope(|| {
            let merged = Merged::new(schema, before, update)?;
            let fickle = merged.differs_now(schema);
            Some((merged, fickle))
        }) else {
            return;
        };
        match fickle {
            Some((fickle, channels)) => self.add_fickle_reducer(node, &channels, fickle),
            None if self.merged.len() < DECISIONS => self.merged.push((node.to_owned(), merged)),
            None => {}
        }
    }

    fn add_fickle_reducer(&mut self, node: &str, channels: &[String], fickle: Fickle) {
        let channels = channels.join(", ");
        let problem = format!("a reducer gives another value of {channels} for its update {}", fickle.when());
        self.report.add(Finding::new(FindingKind::FickleReducer, node, &channels, problem));
    }

    /// Applies the updates of the run again, after it.
    fn check_reducers_later(&mut self) {
        for (node, merged) in std::mem::take(&mut self.merged) {
            let channels = merged.differs_later(self.graph.schema());
            if !channels.is_empty() {
                self.add_fickle_reducer(&node, &channels, Fickle::Later);
            }
        }
    }

    /// The node of the first output that `other` does not have, in the order of ends.
    pub(super) fn first_difference(&self, other: &Self) -> Option<Arc<str>> {
        first_difference(&self.run.outputs(), &other.run.outputs())
    }

    /// A question or a durable step of `other` that this run does not have, and its node.
    pub(super) fn new_request(&self, other: &Self) -> Option<(String, String)> {
        let known = self.requests();
        other.requests().into_iter().find(|request| !known.contains(request))
    }

    /// The nodes with their questions and durable steps.
    fn requests(&self) -> Vec<(String, String)> {
        let asked = self.asked.iter().filter(|open| open.kind == InterruptKind::Asked).map(|open| {
            // A question with a key may be for any value.
            let asks = open
                .key
                .as_ref()
                .map_or_else(|| open.value.to_string(), |key| format!("with the key `{key}`"));
            (path_of(&open.namespace, &open.node), format!("it asks {asks}"))
        });
        let steps = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Step { node, step, .. } => {
                let key = step.key.as_ref().map(|key| format!(" with the key `{key}`")).unwrap_or_default();
                let problem = format!("it makes the durable step `{}`{key}", step.name);
                Some((path_of(&event.namespace, node), problem))
            }
            _ => None,
        });
        asked.chain(steps).collect()
    }

    /// Findings about this run alone.
    pub(super) fn look_back(&mut self) {
        let calls = self.run.calls();
        for happened in self.run.effects() {
            let node = happened.place.node();
            let effect = happened.effect.to_string();
            let found = match &*happened.place {
                CodePlace::Route(_) => {
                    (FindingKind::EffectInRoute, format!("the effect `{effect}` happens in its route"))
                }
                CodePlace::Reducer(_) => {
                    (FindingKind::EffectInReducer, format!("the effect `{effect}` happens in a reducer"))
                }
                CodePlace::Node { call, .. } => {
                    let waits = calls.get(*call).is_some_and(|call| call.end == Some(ObservedEnd::Waits));
                    if !waits || happened.in_once || happened.effect.once_per_key {
                        continue;
                    }
                    let problem = format!("the effect `{effect}` happens before a question of the node");
                    (FindingKind::EffectBeforeQuestion, problem)
                }
            };
            self.report.add(Finding::new(found.0, node, &happened.effect.to_string(), found.1));
        }
        for (node, fickle) in self.run.fickle_routes() {
            let problem = format!("its route decides differently {}", fickle.when());
            self.report.add(Finding::new(FindingKind::FickleRoute, &node, "", problem));
        }
        self.check_reducers_later();
        self.report.ran();
    }

    pub(super) fn into_trace(mut self, ended: Option<Ended<G::State>>) -> Trace<G::State> {
        self.look_back();
        // Only a run with a kill has no end.
        let ended = ended.unwrap_or_else(|| Err(Error::new(Code::NothingToResume, "the run was killed")));
        Trace::new(ended, self.run, self.events, self.asked, self.report)
    }
}

/// The node of the first output that differs. Tasks are compared with themselves; without supersteps, where
/// they have no names of their own, with any call of the node.
fn first_difference(own: &[OutputRecord], others: &[OutputRecord]) -> Option<Arc<str>> {
    let same = |one: &OutputRecord, other: &OutputRecord| one.path == other.path && one.key == other.key;
    let is = |one: &OutputRecord, other: &OutputRecord| one.content.differing(&other.content).is_empty();
    let mut left: Vec<&OutputRecord> = others.iter().collect();
    let mut has = |record: &&OutputRecord| {
        // A kill may make tasks run again: the last output counts.
        let found = match record.key {
            Some(_) => left.iter().rposition(|other| same(record, other)),
            None => left.iter().position(|other| same(record, other) && is(record, other)),
        };
        found.is_some_and(|at| is(record, left.remove(at)))
    };
    let known =
        |other: &&OutputRecord| own.iter().any(|record| record.path == other.path && is(record, other));
    let differs = own.iter().find(|record| !has(record));
    let differs = differs.or_else(|| others.iter().find(|other| !known(other)));
    differs.map(|record| Arc::clone(&record.path))
}
