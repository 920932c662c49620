//! [`EveryKill`]: a run for each point at which its process could die.

use std::sync::Arc;

use super::end::End;
use super::finding::{Finding, FindingKind, Report};
use super::kill_switch::{KillPoint, KillSwitch};
use super::play::Play;
use super::test_graph::{TestGraph, Testable};
use super::test_run::{EffectRecord, counted};
use agentgraph_checkpoint::awaited;

/// Runs a graph once for each point at which its process could die: before and after each write to the
/// store, and whenever a node waits in its middle. There the run is dropped, which equals a kill; then it
/// goes on from the store to its end.
///
/// The report lists effects that happened more or less often than in the undisturbed run, and ends that
/// differ: another kind of end, or other values of stored channels. Each run is as long as the graph's, so a
/// test of n supersteps takes the time of about n² supersteps.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph::testing::{FindingKind, Probe, TestGraph};
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Order { id: u32, paid: bool }
/// async fn pay(probe: Probe) -> OrderUpdate {
///     probe.effect("charge");
///     Order::update().paid(true)
/// }
///
/// /// The bank ignores a second call with the same key.
/// async fn pay_with_key(probe: Probe, order: Snapshot<Order>) -> OrderUpdate {
///     probe.idempotent("charge", order.id);
///     Order::update().paid(true)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?;
/// let report = TestGraph::of(graph).every_kill(Order::update()).await;
/// let [twice] = report.findings() else { panic!("{report}") };
/// assert_eq!((twice.kind(), twice.node(), twice.subject()), (FindingKind::EffectTwice, "pay", "charge"));
///
/// let graph = StateGraph::new().node("pay", pay_with_key).edge(START, "pay").compile()?;
/// TestGraph::of(graph).every_kill(Order::update()).await.assert_none();
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is run until it is awaited"]
#[derive(Debug)]
pub struct EveryKill<'a, G: Testable> {
    test: &'a TestGraph<G>,
    input: Input<G>,
    only: Option<KillPoint>,
}

/// Leaves the input out of `Debug`.
pub(super) struct Input<G: Testable>(pub(super) G::Input);

impl<G: Testable> std::fmt::Debug for Input<G> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("..")
    }
}

impl<'a, G: Testable> EveryKill<'a, G> {
    pub(super) fn new(test: &'a TestGraph<G>, input: G::Input) -> Self {
        EveryKill { test, input: Input(input), only: None }
    }

    /// Kills the run only at this point, which a [finding](Finding::kill) names.
    pub fn at(mut self, point: KillPoint) -> Self {
        self.only = Some(point);
        self
    }

    async fn run(self) -> Report {
        let mut report = Report::default();
        let EveryKill { test, input: Input(input), only } = self;
        let Some(expected) = Undisturbed::run_twice(test, &input, &mut report).await else { return report };
        let writes = expected.play.run.kill.writes();
        let points = (1..=writes).flat_map(|nth| [KillPoint::BeforeWrite(nth), KillPoint::AfterWrite(nth)]);
        let points = points.chain((1..=expected.play.run.pended()).map(KillPoint::InNode));
        for point in points.filter(|point| only.is_none_or(|only| only == *point)) {
            expected.killed_at(test, &input, point, &mut report).await;
            report.ran();
        }
        report
    }
}

awaited!(['a, G: Testable] EveryKill<'a, G>: 'a Report = |test| test.run());

/// A run without a kill, which the others are compared with.
pub(super) struct Undisturbed<G: Testable> {
    pub(super) play: Play<G>,
    pub(super) end: End,
    effects: Vec<EffectRecord>,
}

impl<G: Testable> Undisturbed<G> {
    /// Runs it twice. `None` if the two runs differ, so that nothing can be compared with it; the report says
    /// so.
    pub(super) async fn run_twice(
        test: &TestGraph<G>,
        input: &G::Input,
        report: &mut Report,
    ) -> Option<Self> {
        let (expected, again) = (Self::run(test, input).await?, Self::run(test, input).await?);
        report.include(&expected.play.report);
        report.ran();
        report.ran();
        match expected.not_repeatable(&again) {
            None => Some(expected),
            Some(finding) => {
                report.add(finding);
                None
            }
        }
    }

    async fn run(test: &TestGraph<G>, input: &G::Input) -> Option<Self> {
        let mut play = Play::new(test, None, None, None);
        let ended = play.run_to_end(input.clone()).await?;
        play.look_back();
        let end = End::of(play.schema(), &ended);
        let effects = play.run.effects();
        Some(Undisturbed { play, end, effects })
    }

    /// Why two undisturbed runs are not the same.
    fn not_repeatable(&self, again: &Self) -> Option<Finding> {
        let differs = |problem: String, node: &str, subject: &str| {
            let problem = format!("two undisturbed runs differ: {problem}");
            Finding::new(FindingKind::NotRepeatable, node, subject, problem)
        };
        let node = || self.play.first_difference(&again.play);
        if let Some((problem, channels)) = again.end.differs(&self.end) {
            return Some(differs(problem, &node().unwrap_or_default(), &channels));
        }
        if let Some((node, problem)) = self.play.new_request(&again.play) {
            return Some(differs(problem, &node, ""));
        }
        let (first, second) = (counted(&self.effects), counted(&again.effects));
        let other = |(effect, times): &(&(Arc<str>, String), &usize)| {
            first.get(*effect) != Some(*times) || second.get(*effect) != Some(*times)
        };
        let ((place, _), _) = first.iter().chain(&second).find(other)?;
        Some(differs("other effects happened".to_owned(), &node().unwrap_or_else(|| Arc::clone(place)), ""))
    }

    /// Kills a run at this point, continues it, and compares.
    async fn killed_at(&self, test: &TestGraph<G>, input: &G::Input, point: KillPoint, report: &mut Report) {
        let kill = KillSwitch::at(Some(point));
        let learned = Some(self.play.answered().to_vec());
        let mut play = Play::new(test, Some(kill), None, learned);
        let mut ended = play.run_to_end(input.clone()).await;
        let last = play.run.calls().last().map(|call| Arc::clone(&call.path)).unwrap_or_default();
        play.run.kill.restart();
        if ended.is_none() {
            ended = play.continue_to_end(input.clone()).await;
        }
        let Some(ended) = ended else { return };
        let end = match play.finished_state(&ended).await {
            Some(state) => End::finished(play.schema(), &state),
            None => End::of(play.schema(), &ended),
        };
        if let Some((problem, channels)) = end.differs(&self.end) {
            let problem = match &ended {
                Err(error) if channels.is_empty() => format!("{problem} ({error})"),
                _ => problem,
            };
            let node = self.play.first_difference(&play).unwrap_or(last);
            report.add(Finding::new(FindingKind::EndDiffers, &node, &channels, problem).killed_at(point));
        } else if let Some((node, problem)) = self.play.new_request(&play) {
            report.add(Finding::new(FindingKind::EndDiffers, &node, "", problem).killed_at(point));
        }
        self.compare_effects(&play.run.effects(), point, report);
    }

    fn compare_effects(&self, happened: &[EffectRecord], point: KillPoint, report: &mut Report) {
        let (expected, happened) = (counted(&self.effects), counted(happened));
        for ((node, effect), times) in &happened {
            let known = expected.get(&(node.clone(), effect.clone())).copied().unwrap_or_default();
            if *times > known {
                let problem = format!("the effect `{effect}` happened {times} times instead of {known}");
                report.add(Finding::new(FindingKind::EffectTwice, node, effect, problem).killed_at(point));
            }
        }
        for ((node, effect), known) in &expected {
            let times = happened.get(&(node.clone(), effect.clone())).copied().unwrap_or_default();
            if times < *known {
                let problem = format!("the effect `{effect}` happened {times} times instead of {known}");
                report.add(Finding::new(FindingKind::EffectLost, node, effect, problem).killed_at(point));
            }
        }
    }
}
