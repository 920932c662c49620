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
//! Some clauses need a graph: that it continues from stored data, and that it reports damaged data.
//! `agentgraph::testing::store_clauses` has those and all clauses from here.
//!
//! While you work on one clause, try it alone:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use agentgraph_checkpoint::{MemorySaver, conformance};
//!
//! let clause = conformance::clause("a commit that loses a race is stale and changes nothing");
//! assert_eq!(clause.expect("there is one").check(MemorySaver::new()).await, Ok(()));
//! # }
//! ```
//!
//! A store that wraps another one holds the same clauses. [`delegate!`](crate::delegate) writes the methods
//! that it does not change.
//!
//! Most clauses are scripts: lines of calls and answers in the language of [`transcript`], in text files
//! beside this one. A clause that does not hold shows the first answer that differs and the lines before it.

mod counted;
mod crowds;
mod extension;
mod given_back;
mod large;
mod script;
mod values;

pub use extension::Extension;
pub use script::transcript;

use std::error::Error;
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
    /// The extensions that a clause as code needs; those of a script follow from its calls.
    needs: &'static [Extension],
    optional: bool,
}

/// A store under test.
type Store = Arc<dyn Checkpointer>;

/// A clause as code. Its error says what the store did instead.
type Trial = fn(Arc<dyn Checkpointer>) -> BoxFuture<'static, Result<(), String>>;

/// What a clause of this crate found. Its error is one of the store, or says what the store did instead.
pub(crate) type Tried<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Clone, Copy)]
enum Test {
    /// Lines of calls and answers.
    Script(&'static str),
    Code(Trial),
}

impl Clause {
    /// A clause of your own for [`check`](fn@check). The error of `test` says what the store did instead.
    ///
    /// ```
    /// use agentgraph_checkpoint::conformance::{self, Clause};
    /// use agentgraph_checkpoint::{Checkpointer, MemorySaver};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let is_volatile = Clause::code("the store does not outlive its process", |store| {
    ///     Box::pin(async move {
    ///         match store.outlives_its_process() {
    ///             true => Err("`outlives_its_process` returns true".to_owned()),
    ///             false => Ok(()),
    ///         }
    ///     })
    /// });
    /// let report = conformance::check(&[is_volatile], || async { Ok(MemorySaver::new()) }).await;
    /// assert!(report.holds(), "{report}");
    /// # }
    /// ```
    pub const fn code(name: &'static str, test: Trial) -> Self {
        Clause { name, test: Test::Code(test), needs: &[], optional: false }
    }

    /// The same clause with the extensions that it needs. A store that lacks one of them fails the clause
    /// without running the test.
    #[must_use]
    pub const fn needing(mut self, needs: &'static [Extension]) -> Self {
        self.needs = needs;
        self
    }

    /// Marks a clause that a good store need not hold.
    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Returns its text.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a store need not hold it. An encrypting store, for example, cannot see that two values are
    /// equal.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// The extensions that a store needs for it. It does not hold for a store that lacks one of them.
    ///
    /// ```
    /// use agentgraph_checkpoint::conformance::{self, Extension};
    ///
    /// let clause = conformance::clause("a lease is not copied").expect("there is one");
    /// assert_eq!(clause.needs(), [Extension::Leases, Extension::Upkeep]);
    /// ```
    pub fn needs(&self) -> Vec<Extension> {
        match self.test {
            Test::Script(script) => script::needs(script),
            Test::Code(_) => self.needs.to_vec(),
        }
    }

    /// Tries it on a store, which must be empty.
    ///
    /// # Errors
    /// What the store did instead, or the extension that it lacks. A panic of the store is one of these.
    pub async fn check(&self, store: impl Checkpointer) -> Result<(), String> {
        let store: Store = Arc::new(store);
        if let Some(lacking) = self.needs().into_iter().find(|extension| !extension.is_in(&store)) {
            return Err(lacking.lack());
        }
        catch_panic(async move {
            match self.test {
                Test::Script(script) => script::check(&*store, script).await,
                Test::Code(test) => test(store).await,
            }
        })
        .await
    }
}

/// Runs a test. A panic of the store is a problem like any other.
pub(crate) async fn catch_panic(test: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    match AssertUnwindSafe(test).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(payload) => Err(format!("the store panicked: {}", text_of(&*payload))),
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

fn problem(problem: Box<dyn Error + Send + Sync>) -> String {
    let of_store = if problem.is::<StoreError>() { "the store failed: " } else { "" };
    format!("{of_store}{problem}")
}

/// Ends a clause with what the store did instead, unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($problem:tt)+) => {
        if !$holds {
            return Err(format!($($problem)+).into());
        }
    };
}
pub(crate) use ensure;

/// Clauses as code: `"a statement": function needing [extensions] optional`.
macro_rules! listed_clauses {
    ($($name:literal: $test:ident $($word:ident $([$($need:ident),*])?)*,)*) => {
        &[$($crate::conformance::Clause::code($name, |store| Box::pin(async { $test(store).await.map_err($crate::conformance::problem) }))
            $(.$word($(&[$($crate::conformance::Extension::$need),*])?))*,)*]
    };
}
use listed_clauses;

const SCRIPTS: [&str; 3] = [
    include_str!("conformance/rows.txt"),
    include_str!("conformance/leases.txt"),
    include_str!("conformance/whole_threads.txt"),
];

/// The clauses of a file. A line that begins with `#` has the name of the clause whose script follows.
fn scripts(file: &'static str) -> impl Iterator<Item = Clause> {
    let cases = file.split("\n# ").skip(1).filter_map(|case| case.split_once('\n'));
    cases.map(|(name, script)| Clause {
        name: name.trim_end(),
        test: Test::Script(script),
        needs: &[],
        optional: false,
    })
}

/// Every clause there is.
pub fn clauses() -> Vec<Clause> {
    let mut clauses: Vec<Clause> = SCRIPTS.into_iter().flat_map(scripts).collect();
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
///
/// ```
/// use agentgraph_checkpoint::MemorySaver;
/// use agentgraph_checkpoint::conformance::{self, Extension};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut about_leases = conformance::clauses();
/// about_leases.retain(|clause| clause.needs() == [Extension::Leases]);
/// let report = conformance::check(&about_leases, || async { Ok(MemorySaver::new()) }).await;
/// assert!(report.holds() && report.findings.len() > 10, "{report}");
/// # }
/// ```
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
    /// Whether the clause is optional.
    pub optional: bool,
}

impl Report {
    /// Whether every clause holds, apart from optional ones.
    pub fn holds(&self) -> bool {
        self.broken().next().is_none()
    }

    /// The required clauses that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.problem.is_some() && !finding.optional)
    }

    /// The optional clauses that do not hold.
    pub fn lacks(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.problem.is_some() && finding.optional)
    }
}

/// One line for each clause; the problem of a broken one is below it.
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
        let without = self.broken().chain(self.lacks()).count();
        let all = self.findings.len();
        write!(out, "{} of {all} clauses hold", all - without)
    }
}
