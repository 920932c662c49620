//! [`EveryOrder`]: runs with parallel nodes in many orders.

use std::ops::Range;

use super::end::End;
use super::every_kill::{Input, Undisturbed};
use super::finding::{Finding, FindingKind, Report};
use super::play::Play;
use super::test_graph::{TestGraph, Testable};
use agentgraph_checkpoint::awaited;

/// Seeds if the test sets none.
const SEEDS: u64 = 64;

/// Runs a graph many times. In each run a seed draws which of the parallel nodes goes on next, whenever one
/// of them could: at its start, and after each of its waits.
///
/// The report lists ends that differ from the end of an undisturbed run, with the first node whose update
/// differs and the seed. A graph with supersteps ends the same in every order, unless its nodes share
/// something outside the state. An eager graph merges in the order in which tasks end, so its ends may differ
/// by intent; the report then shows that they do.
///
/// A node that never waits runs as a whole. To interrupt it, its substitutes for services await
/// [`Probe::pause`](super::Probe::pause).
///
/// ```
/// use std::sync::Mutex;
///
/// use agentgraph::prelude::*;
/// use agentgraph::testing::{FindingKind, TestGraph};
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Trip { #[reduce(append)] seats: Vec<String> }
/// async fn seat(ctx: Ctx, free: Dep<Mutex<u32>>) -> TripUpdate {
///     let mut free = free.lock().unwrap();
///     *free += 1;
///     Trip::update().seats([format!("{} has seat {free}", ctx.node())])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = || {
///     let graph = StateGraph::new().node("ada", seat).node("bob", seat).edge(START, "ada").edge(START, "bob");
///     graph.dep(Mutex::new(0_u32)).compile().unwrap()
/// };
/// let test = TestGraph::by(graph);
/// let report = test.every_order(Trip::update()).await;
/// let found = &report.findings()[0];
/// assert_eq!((found.kind(), found.node(), found.subject()), (FindingKind::OrderMatters, "ada", "seats"));
///
/// let again = test.every_order(Trip::update()).seed(found.seed().unwrap()).await;
/// assert_eq!(again.findings().len(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is run until it is awaited"]
#[derive(Debug)]
pub struct EveryOrder<'a, G: Testable> {
    test: &'a TestGraph<G>,
    input: Input<G>,
    seeds: Range<u64>,
}

impl<'a, G: Testable> EveryOrder<'a, G> {
    pub(super) fn new(test: &'a TestGraph<G>, input: G::Input) -> Self {
        EveryOrder { test, input: Input(input), seeds: 0..SEEDS }
    }

    /// Runs it with the seeds from 0 to `count`; 64 by default.
    pub fn seeds(mut self, count: u64) -> Self {
        self.seeds = 0..count;
        self
    }

    /// Runs it with this seed alone, which a [finding](Finding::seed) names.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seeds = seed..seed.saturating_add(1);
        self
    }

    async fn run(self) -> Report {
        let mut report = Report::default();
        let EveryOrder { test, input: Input(input), seeds } = self;
        let Some(expected) = Undisturbed::run_twice(test, &input, &mut report).await else { return report };
        for seed in seeds {
            let learned = Some(expected.play.answered().to_vec());
            let mut play = Play::new(test, None, Some(seed), learned);
            report.ran();
            let Some(ended) = play.run_to_end(input.clone()).await else { continue };
            if let Some((problem, channels)) = End::of(play.schema(), &ended).differs(&expected.end) {
                let node = expected.play.first_difference(&play).unwrap_or_default();
                let order = play.run.order();
                let problem = format!("{problem}, when nodes went on in the order {}", order.join(", "));
                report
                    .add(Finding::new(FindingKind::OrderMatters, &node, &channels, problem).with_seed(seed));
            }
        }
        report
    }
}

awaited!(['a, G: Testable] EveryOrder<'a, G>: 'a Report = |test| test.run());
