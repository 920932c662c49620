//! What the LLM nodes of a program have used.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentgraph::RunId;

use crate::model::Usage;

/// How many runs a [`Meter`] remembers one by one.
const RUNS: usize = 1_000;

/// Counts what LLM nodes use: in all, for each node, and for each pass. Refused answers and passes that fail
/// are in it. Clones share the counts, so one meter is given to all nodes of a graph, or of a program.
///
/// It lives as long as its last clone. What a run has spent in all its calls and processes is in the run
/// itself, under the unit `tokens`: see [`Outcome::spent`](agentgraph::Outcome::spent) and
/// [`Budget`](agentgraph::Budget).
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    total: MeterReading,
    nodes: BTreeMap<String, MeterReading>,
    /// The newest last.
    runs: VecDeque<(RunId, MeterReading)>,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeterReading {
    /// How many answers were given, refused ones too.
    pub answers: u64,
    /// What they cost, and what rounds of tools cost that came to no answer because a later one failed.
    pub usage: Usage,
}

impl MeterReading {
    fn add(&mut self, more: MeterReading) {
        self.answers += more.answers;
        self.usage += more.usage;
    }
}

impl Meter {
    /// A meter at zero.
    pub fn new() -> Self {
        Meter::default()
    }

    /// In all.
    pub fn total(&self) -> MeterReading {
        self.lock().total
    }

    /// By the nodes of this name, in all passes.
    pub fn of_node(&self, name: &str) -> MeterReading {
        self.lock().nodes.get(name).copied().unwrap_or_default()
    }

    /// By each node, in the order of names.
    pub fn nodes(&self) -> Vec<(String, MeterReading)> {
        self.lock().nodes.iter().map(|(name, used)| (name.clone(), *used)).collect()
    }

    /// In this pass, as far as it ran in this process. The newest 1,000 are remembered.
    pub fn of_run(&self, run: RunId) -> MeterReading {
        let counts = self.lock();
        counts.runs.iter().rev().find(|(known, _)| *known == run).map(|(_, used)| *used).unwrap_or_default()
    }

    pub(super) fn count(&self, run: RunId, node: &str, more: MeterReading) {
        let mut counts = self.lock();
        counts.total.add(more);
        match counts.nodes.get_mut(node) {
            Some(used) => used.add(more),
            None => counts.nodes.entry(node.to_owned()).or_default().add(more),
        }
        match counts.runs.iter_mut().rev().find(|(known, _)| *known == run) {
            Some((_, used)) => used.add(more),
            None => {
                if counts.runs.len() == RUNS {
                    counts.runs.pop_front();
                }
                counts.runs.push_back((run, more));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Meter").field(&self.total()).finish()
    }
}
