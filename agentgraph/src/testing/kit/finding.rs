//! [`Finding`]: a mistake that the kit has found in a graph, and [`Report`], all of them.

use std::path::Path;
use std::{fmt, fs, io};

use serde_json::{Value, json};

use super::kill_switch::KillPoint;

/// The findings of a test, in the order in which they were made, each once.
#[derive(Clone, Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
    runs: usize,
}

impl Report {
    /// The findings.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The number of times that the graph was run.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Asserts that there are no findings.
    ///
    /// # Panics
    /// With all findings, if there are any.
    #[track_caller]
    #[allow(clippy::panic)]
    pub fn assert_none(&self) {
        if !self.findings.is_empty() {
            panic!("{self}");
        }
    }

    /// Writes the findings to a JSON file, and makes its folder if it is not there. The page of
    /// `agentgraph-server` shows such files over the graph.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::testing::TestGraph;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { sum: u32 }
    /// # async fn price() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Order>::new().node("price", price).edge(START, "price").compile()?;
    /// let report = TestGraph::of(graph).every_kill(Order::update()).await;
    /// # let folder = std::env::temp_dir().join(format!("findings-{}", std::process::id()));
    /// # let path = folder.join("kills.json");
    /// report.save(&path)?; // such as "target/findings/kills.json"
    /// assert!(std::fs::read_to_string(&path)?.contains(r#""findings":[]"#));
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let findings: Value = self.findings.iter().map(Finding::json).collect();
        fs::write(path, json!({ "runs": self.runs, "findings": findings }).to_string())
    }

    pub(super) fn ran(&mut self) {
        self.runs += 1;
    }

    /// Adds a finding, unless it is known already from another run.
    pub(super) fn add(&mut self, finding: Finding) {
        let same = |known: &&mut Finding| {
            known.kind == finding.kind && known.node == finding.node && known.subject == finding.subject
        };
        match self.findings.iter_mut().find(same) {
            Some(known) => known.times += 1,
            None => self.findings.push(finding),
        }
    }

    /// Takes over the findings about single runs.
    pub(super) fn include(&mut self, other: &Report) {
        other.findings.iter().for_each(|finding| self.add(finding.clone()));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let findings = self.findings.len();
        writeln!(out, "{findings} finding{} in {} runs", if findings == 1 { "" } else { "s" }, self.runs)?;
        self.findings.iter().try_for_each(|finding| writeln!(out, "- {finding}"))
    }
}

/// A mistake in a graph: the node, what happened, and what to do.
#[derive(Clone, Debug)]
pub struct Finding {
    kind: FindingKind,
    node: String,
    /// The effect or the channels.
    subject: String,
    problem: String,
    kill: Option<KillPoint>,
    seed: Option<u64>,
    times: usize,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// An effect happened more often in a run that was killed and continued than in an undisturbed one.
    EffectTwice,
    /// An effect happened less often in a run that was killed and continued than in an undisturbed one.
    EffectLost,
    /// A run that was killed and continued ended differently, or asked another question or called another
    /// durable step.
    EndDiffers,
    /// A node has an effect, then asks a question. The effect happens again with each answer.
    EffectBeforeQuestion,
    /// A route has an effect.
    EffectInRoute,
    /// A reducer has an effect.
    EffectInReducer,
    /// A route decided differently when it was called again with the same state: at once, with the state as
    /// another process reads it, or after the run.
    FickleRoute,
    /// A reducer gave another value when it was called again with the same values, in one of these ways.
    FickleReducer,
    /// Parallel nodes that ran in another order changed the result.
    OrderMatters,
    /// Two undisturbed runs with the same input ended differently, or asked other questions or called other
    /// durable steps, so that others cannot be compared with them.
    NotRepeatable,
}

impl FindingKind {
    fn advice(self) -> &'static str {
        match self {
            FindingKind::EffectTwice => {
                "a kill came after the effect and before its result was stored, and no engine can prevent that: give the \
                 receiver a key by which it ignores the second call (and report it with `probe.idempotent(name, key)`), or \
                 move the effect into a node or a `ctx.once` of its own, so that as little as possible is done again"
            }
            FindingKind::EffectLost => {
                "the node took the effect for done although it was not: record that it is done after it, in the state or by \
                 `ctx.once`, never before it or in a variable of the process"
            }
            FindingKind::EndDiffers => {
                "the node uses something that a kill loses or that changes from call to call: keep it in the state (not in an \
                 untracked channel), or take it from `ctx.once`. The entries of a `HashMap` or `HashSet` come in any order; \
                 sort them, or use a `BTreeMap`"
            }
            FindingKind::EffectBeforeQuestion => {
                "the node runs again from its start with each answer: move the effect behind the question, into a node before \
                 this one, or into `ctx.once`"
            }
            FindingKind::EffectInRoute => {
                "a route must only read the state, since it may be called again: move the effect into a node"
            }
            FindingKind::EffectInReducer => {
                "a reducer must only compute, since it may be called again: move the effect into a node"
            }
            FindingKind::FickleRoute => {
                "a route must depend on the state alone, or a run that is continued, replayed or driven by a durable engine \
                 takes another way: decide in a node, and write the decision into the state. The entries of a `HashMap` come \
                 in any order; sort them, or use a `BTreeMap`"
            }
            FindingKind::FickleReducer => {
                "a reducer must depend on its arguments alone, or a restored state is another one: compute the value in a \
                 node. The entries of a `HashMap` or `HashSet` come in any order; sort them, or use a `BTreeMap`"
            }
            FindingKind::OrderMatters => {
                "its result depends on which of the parallel nodes came first, by something outside the state: give it the \
                 value through the state, behind an edge or a join. In an eager graph, a reducer whose result does not depend \
                 on the order of updates"
            }
            FindingKind::NotRepeatable => {
                "make the graph for each run with `TestGraph::by`, so that its dependencies start anew, and take time and \
                 randomness from the graph's services or from `ctx.once`. The entries of a `HashMap` or `HashSet` come in any \
                 order; sort them, or use a `BTreeMap`"
            }
        }
    }
}

impl Finding {
    pub(super) fn new(kind: FindingKind, node: &str, subject: &str, problem: String) -> Self {
        let (node, subject) = (node.to_owned(), subject.to_owned());
        Finding { kind, node, subject, problem, kill: None, seed: None, times: 1 }
    }

    pub(super) fn killed_at(mut self, point: KillPoint) -> Self {
        self.kill = Some(point);
        self
    }

    pub(super) fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    fn json(&self) -> Value {
        json!({
            "kind": format!("{:?}", self.kind), "node": self.node, "problem": self.problem,
            "advice": self.advice(), "kill": self.kill.map(|kill| kill.to_string()), "seed": self.seed,
            "times": self.times,
        })
    }

    /// The kind.
    pub fn kind(&self) -> FindingKind {
        self.kind
    }

    /// The node, with the names of the graphs around it, separated by `/`. Empty if no node is known to
    /// cause it.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The effect, or the channels that differ.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// What to do.
    pub fn advice(&self) -> &'static str {
        self.kind.advice()
    }

    /// The first kill that showed it, for [`EveryKill::at`](super::EveryKill::at).
    pub fn kill(&self) -> Option<KillPoint> {
        self.kill
    }

    /// The first seed that showed it, for [`EveryOrder::seed`](super::EveryOrder::seed).
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The number of runs that showed it.
    pub fn times(&self) -> usize {
        self.times
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.node.is_empty() {
            write!(out, "`{}`: ", self.node)?;
        }
        out.write_str(&self.problem)?;
        if let Some(kill) = self.kill {
            write!(out, ", after a kill {kill}")?;
        }
        if let Some(seed) = self.seed {
            write!(out, ", with the seed {seed}")?;
        }
        if self.times > 1 {
            write!(out, " (and in {} more runs)", self.times - 1)?;
        }
        write!(out, "\n  {}", self.advice())
    }
}

impl fmt::Display for KillPoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KillPoint::BeforeWrite(nth) => write!(out, "before write {nth}"),
            KillPoint::AfterWrite(nth) => write!(out, "after write {nth}"),
            KillPoint::InNode(nth) => write!(out, "inside a node, at wait {nth}"),
        }
    }
}
