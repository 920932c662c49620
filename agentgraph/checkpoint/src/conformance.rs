//! Whether a store does what [`Checkpointer`] asks of it: for authors of stores (feature
//! `conformance`).
//!
//! [`run`] tries every [`Clause`] on a store of its own and says which hold. It needs no particular runtime;
//! with tokio's the clauses about concurrent writers spawn them, and on several worker threads they run at
//! once.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use agentgraph_checkpoint::{MemorySaver, conformance};
//!
//! let report = conformance::run(|| async { Ok(MemorySaver::new()) }).await;
//! assert!(report.holds(), "{report}");
//! # }
//! ```
//!
//! Whether a graph goes on from what was stored, and tells what was damaged, can only be tried with one:
//! `agentgraph::testing::store_clauses` has all clauses from here and those.
//!
//! While you work on one of them, take that one alone:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use agentgraph_checkpoint::{MemorySaver, conformance};
//!
//! let clause = conformance::clause("a lost race is stale and changes nothing").expect("there is one");
//! assert_eq!(clause.check(MemorySaver::new()).await, Ok(()));
//! # }
//! ```
//!
//! Most clauses are calls with their answers, as lines of text; a clause that does not hold shows the first
//! line that differs with those before it. The language is that of [`transcript`].

mod counted;
mod crowds;
mod given_back;
mod large;
mod leases;
mod rows;
mod script;
mod values;
mod whole_threads;

pub use script::transcript;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::checkpointer::Checkpointer;
use crate::error::StoreError;

/// One thing that a store has to do.
#[derive(Clone, Copy)]
pub struct Clause {
    name: &'static str,
    test: Test,
    optional: bool,
}

/// A store under test.
type Store = Arc<dyn Checkpointer>;

/// A clause as code: it says what the store did instead.
type Trial = fn(Arc<dyn Checkpointer>) -> BoxFuture<'static, Result<(), String>>;

#[derive(Clone, Copy)]
enum Test {
    /// Lines of calls and answers.
    Script(&'static str),
    Code(Trial),
}

impl Clause {
    const fn script((name, script): (&'static str, &'static str)) -> Self {
        Clause { name, test: Test::Script(script), optional: false }
    }

    /// A clause of one's own: `test` says what the store did instead. For [`check`].
    pub const fn code(name: &'static str, test: Trial) -> Self {
        Clause { name, test: Test::Code(test), optional: false }
    }

    /// A good store may lack it.
    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// What it says.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a store may do without, as one that encrypts cannot see that two values are equal.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Tries it on a store, which must be empty.
    ///
    /// # Errors
    /// What the store did instead. A panic of the store is one of these.
    pub async fn check(&self, store: impl Checkpointer) -> Result<(), String> {
        let store: Store = Arc::new(store);
        let test = async move {
            match self.test {
                Test::Script(script) => script::check(&*store, script).await,
                Test::Code(test) => test(store).await,
            }
        };
        match AssertUnwindSafe(test).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(payload) => Err(format!("the store panicked: {}", text_of(&*payload))),
        }
    }
}

/// What a panic says.
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
    let scripts = [rows::CASES, leases::CASES, whole_threads::CASES].concat();
    let mut clauses: Vec<Clause> = scripts.into_iter().map(Clause::script).collect();
    clauses.extend(values::CLAUSES);
    clauses.extend(counted::CLAUSES);
    clauses.extend(crowds::CLAUSES);
    clauses.extend(given_back::CLAUSES);
    clauses.extend(large::CLAUSES);
    clauses
}

/// The clause of that name.
pub fn clause(name: &str) -> Option<Clause> {
    clauses().into_iter().find(|clause| clause.name == name)
}

/// Tries every clause on a store of its own, which `make_store` makes.
pub async fn run<C, F, M>(make_store: M) -> Report
where
    C: Checkpointer,
    F: Future<Output = Result<C, StoreError>>,
    M: Fn() -> F,
{
    check(&clauses(), make_store).await
}

/// Tries some clauses, each on a store of its own, which `make_store` makes.
pub async fn check<C, F, M>(clauses: &[Clause], make_store: M) -> Report
where
    C: Checkpointer,
    F: Future<Output = Result<C, StoreError>>,
    M: Fn() -> F,
{
    let mut findings = Vec::new();
    for clause in clauses {
        let (problem, optional) = match make_store().await {
            Ok(store) => (clause.check(store).await.err(), clause.optional),
            Err(error) => (Some(format!("the store could not be made: {error}")), false),
        };
        findings.push(Finding { clause: clause.name, problem, optional });
    }
    Report { findings }
}

/// What was found about a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a report says whether the store holds"]
pub struct Report {
    /// One for each clause.
    pub findings: Vec<Finding>,
}

/// What was found about a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its name.
    pub clause: &'static str,
    /// What the store did instead; `None` if it holds.
    pub problem: Option<String>,
    /// A store may do without it.
    pub optional: bool,
}

impl Report {
    /// Whether every clause holds, but those that a store may do without.
    pub fn holds(&self) -> bool {
        self.broken().next().is_none()
    }

    /// The clauses that do not, and have to.
    pub fn broken(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.problem.is_some() && !finding.optional)
    }

    /// The optional clauses that do not hold.
    pub fn lacks(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.problem.is_some() && finding.optional)
    }
}

/// A line for each clause, and what is wrong below it.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { clause, problem, optional } in &self.findings {
            match problem {
                None => writeln!(out, "holds   {clause}")?,
                Some(_) if *optional => writeln!(out, "lacks   {clause}")?,
                Some(problem) => {
                    writeln!(out, "BROKEN  {clause}")?;
                    problem.lines().try_for_each(|line| writeln!(out, "        {line}"))?;
                }
            }
        }
        let (without, all) = (self.broken().chain(self.lacks()).count(), self.findings.len());
        write!(out, "{} of {all} clauses hold", all - without)
    }
}
