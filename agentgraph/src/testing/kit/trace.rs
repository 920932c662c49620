//! [`Trace`]: what a run under test has done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::finding::Report;
use super::test_run::{CallRecord, TestRun};
use crate::erased::observed::ObservedEnd;
use crate::error::Error;
use crate::run::Event;
use crate::state::State;
use crate::words::{Interrupt, InterruptKind, Outcome};

/// What a run has done, from its input to its end.
pub struct Trace<S: State> {
    ended: Result<Outcome<S>, Error>,
    calls: Vec<CallRecord>,
    effects: Vec<String>,
    waits: Vec<Duration>,
    elapsed: Duration,
    events: Vec<Event<S>>,
    interrupts: Vec<Interrupt>,
    report: Report,
}

impl<S: State> Trace<S> {
    pub(super) fn new(
        ended: Result<Outcome<S>, Error>,
        run: Arc<TestRun>,
        events: Vec<Event<S>>,
        interrupts: Vec<Interrupt>,
        report: Report,
    ) -> Self {
        let effects = run.effects();
        Trace {
            ended,
            calls: run.calls(),
            effects: effects.iter().map(|one| format!("{}: {}", one.place.node(), one.effect)).collect(),
            waits: run.time.waits(),
            elapsed: run.time.elapsed(),
            events,
            interrupts,
            report,
        }
    }

    /// The nodes of the graph that are done, in the order of supersteps, and of tasks in each. Without
    /// supersteps, in the order in which they started. A node that failed, or was stopped by a question, is
    /// not done; nodes of subgraphs are in [`ran_in`](Trace::ran_in).
    pub fn ran(&self) -> Vec<&str> {
        self.steps().into_iter().flatten().collect()
    }

    /// The nodes of a subgraph that are done, in the order in which they started.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::testing::TestGraph;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text { text: String }
    /// # async fn write() -> TextUpdate { Text::update().text("hello") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let inner = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// let outer = StateGraph::new().node("draft", inner).edge(START, "draft").compile()?;
    /// let trace = TestGraph::of(outer).trace(Text::update()).await;
    /// assert_eq!(trace.ran(), ["draft"]);
    /// assert_eq!(trace.ran_in("draft"), ["write"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ran_in(&self, subgraph: &str) -> Vec<&str> {
        let inside = |call: &CallRecord| call.end == Some(ObservedEnd::Done);
        let name = |call: &'_ CallRecord| -> Option<usize> {
            let rest = call.path.strip_prefix(subgraph)?.strip_prefix('/')?;
            (!rest.contains('/')).then(|| call.path.len() - rest.len())
        };
        let calls = self.calls.iter().filter(|call| inside(call));
        calls.filter_map(|call| Some(&call.path[name(call)?..])).collect()
    }

    /// The same nodes as [`ran`](Trace::ran), by superstep; without supersteps, one by one.
    pub fn steps(&self) -> Vec<Vec<&str>> {
        let done = |call: &&CallRecord| call.end == Some(ObservedEnd::Done) && !call.path.contains('/');
        let mut calls: Vec<&CallRecord> = self.calls.iter().filter(done).collect();
        calls.sort_by_key(|call| (call.round, call.request.step, call.request.index));
        let mut steps: Vec<((u32, u64), Vec<&str>)> = Vec::new();
        for call in calls {
            let at = (call.round, call.request.step);
            match steps.last_mut().filter(|(last, _)| *last == at) {
                Some((_, nodes)) => nodes.push(&call.path),
                None => steps.push((at, vec![&call.path])),
            }
        }
        steps.into_iter().map(|(_, nodes)| nodes).collect()
    }

    /// How often a node was called, by its path: once for each attempt, and again for each answer.
    pub fn attempts(&self, node: &str) -> usize {
        self.calls.iter().filter(|call| &*call.path == node).count()
    }

    /// How the run ended.
    ///
    /// # Errors
    /// The error of a run that failed.
    pub fn outcome(&self) -> Result<&Outcome<S>, &Error> {
        self.ended.as_ref()
    }

    /// The last state, however the run ended.
    ///
    /// # Panics
    /// If the run failed before it had a state.
    #[track_caller]
    #[allow(clippy::panic)]
    pub fn state(&self) -> &S {
        match &self.ended {
            Ok(outcome) => outcome.output(),
            Err(error) => error.state().unwrap_or_else(|| panic!("the run failed without a state: {error}")),
        }
    }

    /// The questions that were asked, in order. A question that is still open after a call is asked again.
    pub fn asked(&self) -> Vec<&Value> {
        let asked = self.interrupts.iter().filter(|open| open.kind == InterruptKind::Asked);
        asked.map(|open| &open.value).collect()
    }

    /// Everything that the run waited for: questions, sleeps and static interrupts.
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.interrupts
    }

    /// The waits that ended, in the order of their ends: between attempts, for timeouts that fired, in
    /// delayed nodes, and of nodes on the clock. Sleeps of the thread are [`interrupts`](Trace::interrupts).
    pub fn waits(&self) -> &[Duration] {
        &self.waits
    }

    /// The virtual time that the run took, with its sleeps.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The effects that [probes](super::Probe) reported, each with its node: `pay: charge 7`.
    pub fn effects(&self) -> &[String] {
        &self.effects
    }

    /// The events of all calls, without the last one of each.
    pub fn events(&self) -> &[Event<S>] {
        &self.events
    }

    /// What is wrong with this run: effects before questions, and routes and reducers that are not pure, so
    /// that a run which is continued, replayed or driven by a durable engine goes another way.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl<S: State> fmt::Debug for Trace<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("Trace");
        parts.field("steps", &self.steps()).field("effects", &self.effects).field("waits", &self.waits);
        parts.field("elapsed", &self.elapsed).field("report", &self.report);
        match &self.ended {
            Ok(outcome) => parts.field("interrupts", &outcome.interrupts()),
            Err(error) => parts.field("error", error),
        };
        parts.finish_non_exhaustive()
    }
}
