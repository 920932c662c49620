//! Whether a host does what runs ask of it: for authors of hosts.
//!
//! A host is whatever runs the tasks of graphs elsewhere. It is one of two things, and the clauses are the
//! same for both:
//!
//! - an implementation of [`Host`](agentgraph::host::Host): the loop runs here, its tasks run there.
//!   [`HostedRuns`] makes it a host under test.
//! - a *driver* of [`DrivenRun`](agentgraph::host::DrivenRun)s: it carries the whole loop, and is reached by calls
//!   alone. Implement [`HostUnderTest`] for its client.
//!
//! The kit has [graphs](graphs()) of its own. Both sides build them, with the same [`Notes`]: a file in which
//! the nodes write that they run, so that a clause sees what ran, how often, and in which order. [`check`]
//! calls these graphs and compares the results with the promises of the documentation.
//!
//! ```
//! use agentgraph::BoxError;
//! use agentgraph::host::{FarSide, Host, HostedGraph, TaskCall, TaskReply};
//! use agentgraph_host_conformance::{self as conformance, Ability, HostedRuns, Notes};
//! use std::sync::Arc;
//!
//! /// Runs tasks on another value of the graph. A real host carries the call to another process.
//! struct Worker(Arc<dyn HostedGraph>);
//!
//! #[async_trait::async_trait]
//! impl Host for Worker {
//!     async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
//!         let far = FarSide::new().context(conformance::context_of(call.thread.as_deref()));
//!         Ok(self.0.run_task(call, far).await?)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let notes = Notes::temporary()?;
//! let far = conformance::graphs(&notes); // in the other process: Notes::open(path)
//! let worker = |name: &str| {
//!     let graph = far.iter().find(|graph| graph.name() == name).expect("the same graphs");
//!     Worker(graph.hosted())
//! };
//! let host = HostedRuns::new(&notes, worker).with([Ability::Contexts]);
//!
//! # let some = ["each attempt has its number", "a node's context is made where the node runs, for its thread"];
//! # let some: Vec<_> = some.iter().filter_map(|name| conformance::clause(name)).collect();
//! # assert_eq!(some.len(), 2);
//! # let report = conformance::check(&some, &host, &notes).await;
//! # assert!(report.holds(), "{report}");
//! # return Ok(());
//! let report = conformance::run(&host, &notes).await;
//! assert!(report.holds(), "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! A clause may need an [`Ability`] that a host need not have. The report lists it then, and the host holds
//! nevertheless.
//!
//! The kit needs a tokio runtime with a clock that is not paused: some clauses wait for something to happen
//! in another process.

mod attempts;
mod case;
mod dispatches;
mod eager;
mod edits;
mod failures;
mod far_side;
mod graphs;
mod identity;
mod kills;
mod limits;
mod notes;
mod passes;
mod questions;
mod report;
mod runs;
mod sessions;
mod sheet;
mod subgraphs;
mod supersteps;
mod threads;
mod values;

pub use far_side::{TaskContext, context_of};
pub use graphs::{KitGraph, graphs};
pub use notes::Notes;
pub use report::{Finding, Report};
pub use runs::{HostedRuns, LocalRuns};
pub use sheet::Sheet;
pub use values::Values;

use std::fmt;
use std::panic::AssertUnwindSafe;

use agentgraph::BoxError;
use agentgraph::host::{RunCall, RunEnd, ThreadState};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::case::Case;

/// A host under test: what its callers can do with the [graphs of the kit](graphs()).
#[async_trait::async_trait]
pub trait HostUnderTest: Send + Sync {
    /// Makes a call on a thread of a graph, and returns its end. An error means that the call had no end:
    /// its caller did not reach the host. A call that failed has an end, which says so.
    async fn call(&self, graph: &str, thread: &str, call: RunCall) -> Result<RunEnd, BoxError>;

    /// The newest checkpoint of a thread; `None` if there is no such thread.
    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError>;

    /// The abilities of the host.
    fn abilities(&self) -> Vec<Ability>;

    /// The checkpoints of a thread, newest first: [`Ability::History`].
    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        let _ = (graph, thread);
        Err(Ability::History.lack().into())
    }

    /// Cancels the call that has a thread: [`Ability::Cancel`].
    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        let _ = (graph, thread);
        Err(Ability::Cancel.lack().into())
    }

    /// Kills every process that runs tasks, as a power cut does, and starts others in their place:
    /// [`Ability::Kill`].
    async fn kill_workers(&self) -> Result<(), BoxError> {
        Err(Ability::Kill.lack().into())
    }
}

/// An optional ability of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ability {
    /// Its tasks run on another value of the graph, so that all they share with the run goes to and fro.
    Elsewhere,
    /// Its workers give tasks a store for the results of durable steps
    /// ([`FarSide::once_in`](agentgraph::host::FarSide::once_in)).
    DurableSteps,
    /// Its workers give tasks the context of [`context_of`].
    Contexts,
    /// It keeps the history of threads: [`HostUnderTest::history`].
    History,
    /// A call can be cancelled from outside: [`HostUnderTest::cancel`].
    Cancel,
    /// The processes that run tasks can be killed: [`HostUnderTest::kill_workers`].
    Kill,
}

impl Ability {
    /// Every ability.
    pub const ALL: [Ability; 6] = [
        Ability::Elsewhere,
        Ability::DurableSteps,
        Ability::Contexts,
        Ability::History,
        Ability::Cancel,
        Ability::Kill,
    ];

    fn lack(self) -> String {
        format!("the host has no ability `{self:?}`")
    }
}

/// One thing that a host has to do.
#[derive(Clone, Copy)]
pub struct Clause {
    name: &'static str,
    text: &'static str,
    needs: &'static [Ability],
    trial: Trial,
}

/// Tries a clause. Its error says what the host did instead.
type Trial = for<'a> fn(&'a Case<'a>) -> BoxFuture<'a, Result<(), String>>;

impl Clause {
    const fn new(name: &'static str, text: &'static str, trial: Trial) -> Self {
        Clause { name, text, needs: &[], trial }
    }

    const fn needing(mut self, needs: &'static [Ability]) -> Self {
        self.needs = needs;
        self
    }

    /// Its name: a short statement.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// More about it, with the probable mistake of a host that breaks it.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// The abilities that it needs.
    pub fn needs(&self) -> &'static [Ability] {
        self.needs
    }

    /// Tries it on a host.
    ///
    /// # Errors
    /// What the host did instead. A panic of the host is one of these, and so is a call without an end.
    async fn check(&self, kit: &Kit<'_>) -> Result<(), String> {
        let case = Case::new(kit, self.name);
        let trial = AssertUnwindSafe((self.trial)(&case)).catch_unwind();
        match trial.await {
            Ok(found) => found.map_err(shortened),
            Err(payload) => Err(shortened(format!("the host panicked: {}", text_of(&*payload)))),
        }
    }
}

/// The longest problem of a report, in characters: a state of some clauses is large.
const LONGEST: usize = 1_500;

fn shortened(problem: String) -> String {
    match problem.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ..", &problem[..end]),
        None => problem,
    }
}

/// The message of a panic.
fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

impl fmt::Debug for Clause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Clause").field(&self.name).finish()
    }
}

/// Every clause there is.
pub fn clauses() -> Vec<Clause> {
    [
        supersteps::CLAUSES,
        values::CLAUSES,
        dispatches::CLAUSES,
        attempts::CLAUSES,
        failures::CLAUSES,
        questions::CLAUSES,
        sessions::CLAUSES,
        identity::CLAUSES,
        subgraphs::CLAUSES,
        edits::CLAUSES,
        passes::CLAUSES,
        eager::CLAUSES,
        limits::CLAUSES,
        threads::CLAUSES,
        far_side::CLAUSES,
        kills::CLAUSES,
    ]
    .concat()
}

/// The clause of that name.
pub fn clause(name: &str) -> Option<Clause> {
    clauses().into_iter().find(|clause| clause.name == name)
}

/// Tries every clause on a host. `notes` are those of the graphs that the host runs.
pub async fn run(host: &dyn HostUnderTest, notes: &Notes) -> Report {
    check(&clauses(), host, notes).await
}

/// Tries some clauses, one after the other, each on threads of its own.
pub async fn check(clauses: &[Clause], host: &dyn HostUnderTest, notes: &Notes) -> Report {
    let abilities = host.abilities();
    let kit = Kit { host, notes, prefix: fresh_prefix() };
    let mut findings = Vec::new();
    for clause in clauses {
        let lacks: Vec<Ability> =
            clause.needs.iter().copied().filter(|need| !abilities.contains(need)).collect();
        let problem = match lacks.is_empty() {
            true => clause.check(&kit).await.err(),
            false => None,
        };
        findings.push(Finding { clause: *clause, problem, lacks });
    }
    Report { findings }
}

/// The parts that all clauses share.
struct Kit<'a> {
    host: &'a dyn HostUnderTest,
    notes: &'a Notes,
    /// Begins the names of all threads, so that a host can be tested again while it keeps the threads of the
    /// last time.
    prefix: String,
}

fn fresh_prefix() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("kit-{:x}-{:x}", since.as_micros(), std::process::id())
}
