//! [`TestRun`]: what happens in one run of a graph under test, and the control of it.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, pending};

use super::drive::Idle;
use super::kill_switch::KillSwitch;
use super::merged::{Fickle, REREADS};
use super::probe::{CodePlace, Effect, Here};
use super::time::VirtualTime;
use super::turns::Turns;
use crate::context::TaskRequest;
use crate::erased::observed::{DecideLater, ObservedCall, ObservedEnd, ObservedTask, Observer, TaskKey};
use crate::error::BoxError;
use crate::record::content::{Content, Tree};
use agentgraph_checkpoint::engine::Lock;

/// What a test does to nodes, by their paths.
#[derive(Clone, Default)]
pub(super) struct Injections {
    pub(super) replaced: HashMap<String, Arc<dyn Any + Send + Sync>>,
    pub(super) failures: HashMap<String, Vec<Failures>>,
    pub(super) delays: HashMap<String, Delay>,
}

/// The first calls of a node that fail.
#[derive(Clone)]
pub(super) struct Failures {
    pub(super) calls: u32,
    pub(super) error: Arc<dyn Fn() -> BoxError + Send + Sync>,
}

#[derive(Clone, Copy)]
pub(super) enum Delay {
    For(Duration),
    /// The node never gets further.
    Forever,
}

/// One run of a graph under test: its log, its clock, and the order and the kill that the test wants. Code of
/// the user is called without a lock.
pub(super) struct TestRun {
    injections: Injections,
    pub(super) time: VirtualTime,
    pub(super) kill: Arc<KillSwitch>,
    turns: Option<Turns>,
    /// Time stands while a node waits for anything but the clock.
    holds_time: bool,
    log: Lock<Log>,
}

#[derive(Default)]
struct Log {
    calls: Vec<CallRecord>,
    /// The outputs of calls, in the order of their ends.
    outputs: Vec<OutputRecord>,
    effects: Vec<EffectRecord>,
    /// Routes that decided differently for one state.
    fickle_routes: Vec<(Arc<str>, Fickle)>,
    /// Decisions that are to be made again after the run.
    decisions: Vec<Decision>,
    /// The number of calls of each node.
    called: HashMap<Arc<str>, u32>,
    /// The call of the program: 0 for `invoke`, then `resume` and `proceed`.
    round: u32,
    /// Calls that are pending, and do not wait for the clock.
    outside: HashSet<usize>,
    pended: u64,
}

/// The most decisions of a run, and updates, that are made again after it: each holds a copy of its state.
pub(super) const DECISIONS: usize = 500;

/// A decision of a route.
struct Decision {
    path: Arc<str>,
    text: String,
    later: DecideLater,
}

/// One call of a node.
#[derive(Clone)]
pub(super) struct CallRecord {
    pub(super) path: Arc<str>,
    pub(super) round: u32,
    pub(super) request: TaskRequest,
    /// `None` while it runs, and if it was dropped.
    pub(super) end: Option<ObservedEnd>,
}

/// What a call led to: its output, or a decision behind it.
#[derive(Clone)]
pub(super) struct OutputRecord {
    pub(super) path: Arc<str>,
    pub(super) key: Option<TaskKey>,
    pub(super) content: Content,
}

/// One effect.
#[derive(Clone)]
pub(super) struct EffectRecord {
    pub(super) effect: Effect,
    pub(super) place: Arc<CodePlace>,
    /// Whether it happened in a durable step.
    pub(super) in_once: bool,
}

impl TestRun {
    pub(super) fn new(
        injections: Injections,
        kill: Arc<KillSwitch>,
        seed: Option<u64>,
        holds_time: bool,
    ) -> Arc<Self> {
        Arc::new(TestRun {
            injections,
            time: VirtualTime::new(),
            kill,
            turns: seed.map(Turns::new),
            holds_time,
            log: Lock::default(),
        })
    }

    /// What goes on inside a run that is pending and was not woken: a task whose turn it is, else time.
    pub(super) fn idle(&self, rested: bool) -> Idle {
        if self.turns.as_ref().is_some_and(Turns::next) {
            return Idle::Continue;
        }
        let holds = self.holds_time && !self.log.lock().outside.is_empty();
        if rested && !holds && self.time.advance_to_next() { Idle::Continue } else { Idle::Wait }
    }

    /// The program calls the graph again.
    pub(super) fn begin_round(&self) {
        self.log.lock().round += 1;
    }

    pub(super) fn happened(&self, place: &Arc<CodePlace>, effect: Effect, in_once: bool) {
        self.log.lock().effects.push(EffectRecord { effect, place: Arc::clone(place), in_once });
    }

    pub(super) fn calls(&self) -> Vec<CallRecord> {
        self.log.lock().calls.clone()
    }

    pub(super) fn outputs(&self) -> Vec<OutputRecord> {
        self.log.lock().outputs.clone()
    }

    pub(super) fn effects(&self) -> Vec<EffectRecord> {
        self.log.lock().effects.clone()
    }

    /// The routes that decided differently for one state. Lets each decide again as it did in the run.
    pub(super) fn fickle_routes(&self) -> Vec<(Arc<str>, Fickle)> {
        let decisions = std::mem::take(&mut self.log.lock().decisions);
        let differ = decisions.into_iter().filter(|made| (made.later)() != made.text);
        let later: Vec<_> = differ.map(|made| (made.path, Fickle::Later)).collect();
        let mut log = self.log.lock();
        log.fickle_routes.extend(later);
        log.fickle_routes.clone()
    }

    /// How often calls of nodes were pending.
    pub(super) fn pended(&self) -> u64 {
        self.log.lock().pended
    }

    /// The nodes in the order in which they were polled, if the test gives turns.
    pub(super) fn order(&self) -> Vec<Arc<str>> {
        let Some(turns) = &self.turns else { return Vec::new() };
        let log = self.log.lock();
        turns.taken().into_iter().filter_map(|call| Some(Arc::clone(&log.calls.get(call)?.path))).collect()
    }
}

/// The effects by node and effect, and how often each happened. Those that a receiver ignores count once.
pub(super) fn counted(effects: &[EffectRecord]) -> BTreeMap<(Arc<str>, String), usize> {
    let mut counts = BTreeMap::new();
    let mut keys = HashSet::new();
    for EffectRecord { effect, place, .. } in effects {
        let node = Arc::clone(place.node());
        // A receiver that knows keys is one place, regardless of its caller.
        if !effect.once_per_key {
            *counts.entry((node, effect.to_string())).or_default() += 1;
        } else if keys.insert(effect.clone()) {
            *counts.entry((node, effect.name.clone())).or_default() += 1;
        }
    }
    counts
}

/// Hands the run to the observed graph.
pub(super) struct Watcher(pub(super) Arc<TestRun>);

impl Observer for Watcher {
    fn replacement(&self, path: &str) -> Option<&(dyn Any + Send + Sync)> {
        self.0.injections.replaced.get(path).map(|node| &**node)
    }

    #[allow(clippy::panic)] // A mistake in the test, which has no other way to hear of it.
    fn unfit(&self, path: &str, state: &'static str) {
        panic!("the replacement of `{path}` is a node over another state: it must be one over `{state}`");
    }

    fn called(&self, task: ObservedTask) -> Box<dyn ObservedCall> {
        let run = Arc::clone(&self.0);
        let ObservedTask { path, request, key, is_graph } = task;
        let mut log = run.log.lock();
        let nth = log.called.entry(Arc::clone(&path)).or_default();
        let failure = run.injections.failure(&path, *nth);
        *nth += 1;
        let call = log.calls.len();
        let round = log.round;
        log.calls.push(CallRecord { path: Arc::clone(&path), round, request, end: None });
        drop(log);
        let delay = run.injections.delays.get(&*path).map(|delay| match delay {
            Delay::For(time) => run.time.sleep(*time).boxed(),
            Delay::Forever => pending().boxed(),
        });
        let place = Arc::new(CodePlace::Node { path, call });
        Box::new(WatchedCall { call, key, failure, delay, is_graph, here: Here { run, place } })
    }

    fn decides(&self, path: &str, decide: &mut dyn FnMut() -> String, later: DecideLater) {
        let path: Arc<str> = Arc::from(path);
        let here = Here { run: Arc::clone(&self.0), place: Arc::new(CodePlace::Route(Arc::clone(&path))) };
        let (text, second) = here.scope(|| (decide(), decide()));
        let found = if text != second {
            Some(Fickle::AtOnce)
        } else {
            (0..REREADS).any(|_| later() != text).then_some(Fickle::Reread)
        };
        let content = Content::ordered("route", Tree::text(&text));
        let mut log = self.0.log.lock();
        log.outputs.push(OutputRecord { path: Arc::clone(&path), key: None, content });
        match found {
            Some(fickle) => log.fickle_routes.push((path, fickle)),
            None if log.decisions.len() < DECISIONS => log.decisions.push(Decision { path, text, later }),
            None => {}
        }
    }
}

impl Injections {
    /// The error of the n-th call of a node.
    fn failure(&self, path: &str, nth: u32) -> Option<BoxError> {
        let mut before = 0;
        let failures = self.failures.get(path)?;
        let due = failures.iter().find(|failures| {
            before += failures.calls;
            nth < before
        });
        due.map(|failures| (failures.error)())
    }
}

/// A call under way.
struct WatchedCall {
    call: usize,
    key: Option<TaskKey>,
    failure: Option<BoxError>,
    delay: Option<BoxFuture<'static, ()>>,
    is_graph: bool,
    here: Here,
}

impl ObservedCall for WatchedCall {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        poll: &mut dyn FnMut(&mut Context<'_>) -> Option<ObservedEnd>,
    ) -> Poll<Result<(), BoxError>> {
        let run = &self.here.run;
        if run.kill.is_killed() {
            return Poll::Pending;
        }
        if let Some(delay) = &mut self.delay {
            if delay.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.delay = None;
        }
        if let Some(turns) = run.turns.as_ref().filter(|_| !self.is_graph)
            && !turns.take(self.call, cx.waker())
        {
            return Poll::Pending;
        }
        if let Some(error) = self.failure.take() {
            self.ended(ObservedEnd::Failed);
            return Poll::Ready(Err(error));
        }
        let before = run.time.pending_polls();
        match self.here.clone().scope(|| poll(cx)) {
            Some(end) => {
                self.ended(end);
                Poll::Ready(Ok(()))
            }
            None => {
                self.pended(run.time.pending_polls() > before);
                Poll::Pending
            }
        }
    }

    fn done(&self, content: Content) {
        let (path, key) = (Arc::clone(self.here.place.node()), self.key.clone());
        self.here.run.log.lock().outputs.push(OutputRecord { path, key, content });
    }
}

impl WatchedCall {
    fn ended(&self, end: ObservedEnd) {
        let mut log = self.here.run.log.lock();
        log.outside.remove(&self.call);
        if let Some(call) = log.calls.get_mut(self.call) {
            call.end = Some(end);
        }
    }

    /// A graph is pending when its nodes are, which count themselves.
    fn pended(&self, waits_for_time: bool) {
        if self.is_graph {
            return;
        }
        let mut log = self.here.run.log.lock();
        log.pended += 1;
        if waits_for_time {
            log.outside.remove(&self.call);
        } else {
            log.outside.insert(self.call);
        }
        let pended = log.pended;
        drop(log);
        self.here.run.kill.pended(pended);
    }
}

impl Drop for WatchedCall {
    fn drop(&mut self) {
        self.here.run.log.lock().outside.remove(&self.call);
        if let Some(turns) = &self.here.run.turns {
            turns.forget(self.call);
        }
    }
}
