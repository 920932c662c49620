//! The usage of a program's LLM nodes.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentgraph::checkpoint::RunId;

use crate::model::Usage;

/// The number of runs for which a [`Meter`] keeps separate readings.
const RUNS: usize = 1_000;

/// Counts the usage of LLM nodes: in total, by node, and by pass. Refused answers and failed passes are
/// included. Clones share the counts, so all nodes of a graph or of a program can have one meter.
///
/// A meter lives as long as its last clone. The run itself has the usage of all its calls in all processes,
/// under the unit `tokens`: see [`Outcome::spent`](agentgraph::Outcome::spent) and
/// [`Budget`](agentgraph::Budget).
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    total: MeterReading,
    nodes: BTreeMap<String, MeterReading>,
    /// Newest last.
    runs: VecDeque<(RunId, MeterReading)>,
}

/// A reading of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeterReading {
    /// The number of answers, including refused ones.
    pub answers: u64,
    /// The usage of the answers, and of rounds of tool calls before an error.
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

    /// The total.
    pub fn total(&self) -> MeterReading {
        self.lock().total
    }

    /// The reading of the nodes with this name, in all passes.
    pub fn of_node(&self, name: &str) -> MeterReading {
        self.lock().nodes.get(name).copied().unwrap_or_default()
    }

    /// The readings by node, in the order of names.
    pub fn nodes(&self) -> Vec<(String, MeterReading)> {
        self.lock().nodes.iter().map(|(name, used)| (name.clone(), *used)).collect()
    }

    /// The reading of this pass, as far as it ran in this process. The newest 1,000 are kept.
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
