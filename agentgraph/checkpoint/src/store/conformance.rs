//! Whether a store does what [`Store`] asks of it: for authors of stores (feature `conformance`).
//!
//! [`run`] tries every [`Clause`] on a store of its own, made with the clock and the embedder of a [`Setup`],
//! and says which hold.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use agentgraph_checkpoint::MemoryStore;
//! use agentgraph_checkpoint::store::conformance;
//!
//! let report = conformance::run(|setup| async move {
//!     Ok(MemoryStore::new().services(setup.clock).index(setup.index))
//! })
//! .await;
//! assert!(report.holds(), "{report}");
//! # }
//! ```

mod conditions;
mod crowds;
mod finding;
mod keeping;
mod lifetimes;
mod listing;
mod setup;
mod vectors;

pub use setup::{Clock, Letters, Setup};

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Namespace, Store};
use crate::conformance::{Finding, Report, Tried, catch_panic};
use crate::error::StoreError;

/// One thing that a store has to do.
#[derive(Clone, Copy)]
pub struct Clause {
    name: &'static str,
    test: Test,
}

/// The store under test, and the clock that it reads.
pub(crate) struct Trial {
    store: Arc<dyn Store>,
    clock: Clock,
}

type Test = fn(Trial) -> BoxFuture<'static, Result<(), String>>;

impl Clause {
    const fn new(name: &'static str, test: Test) -> Self {
        Clause { name, test }
    }

    /// Returns its text.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Tries it on a store, which must be empty and made with `setup`.
    ///
    /// # Errors
    /// What the store did instead. A panic of the store is one of these.
    pub async fn check(&self, store: impl Store, setup: &Setup) -> Result<(), String> {
        let trial = Trial { store: Arc::new(store), clock: setup.clock.clone() };
        catch_panic((self.test)(trial)).await
    }
}

impl fmt::Debug for Clause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Clause").field(&self.name).finish()
    }
}

/// Clauses: `"a statement": function`.
macro_rules! listed_clauses {
    ($($name:literal: $test:ident,)*) => {
        &[$($crate::store::conformance::Clause::new($name, |trial| Box::pin(async { $test(trial).await.map_err(|problem| problem.to_string()) })),)*]
    };
}
use listed_clauses;

/// Every clause there is.
pub fn clauses() -> Vec<Clause> {
    [
        keeping::CLAUSES,
        conditions::CLAUSES,
        finding::CLAUSES,
        listing::CLAUSES,
        lifetimes::CLAUSES,
        vectors::CLAUSES,
        crowds::CLAUSES,
    ]
    .concat()
}

/// Tries every clause on a store of its own, which `make_store` makes.
pub async fn run<S, F, M>(make_store: M) -> Report
where
    S: Store,
    F: Future<Output = Result<S, StoreError>>,
    M: Fn(Setup) -> F,
{
    let mut findings = Vec::new();
    for clause in clauses() {
        let setup = Setup::new();
        let problem = match make_store(setup.clone()).await {
            Ok(store) => clause.check(store, &setup).await.err(),
            Err(error) => Some(format!("the store could not be made: {error}")),
        };
        findings.push(Finding { clause: clause.name, problem, optional: false });
    }
    Report { findings }
}

/// The namespace with these segments.
fn space<const N: usize>(segments: [&str; N]) -> Tried<Namespace> {
    Ok(Namespace::new(segments)?)
}

/// Fails with both values unless they are equal.
fn same<T: PartialEq + fmt::Debug>(what: &str, found: &T, wanted: &T) -> Tried {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found:?}, and not {wanted:?}").into()),
    }
}

/// The keys of a page.
fn keys(page: &[super::Found]) -> Vec<&str> {
    page.iter().map(|found| &*found.item.key).collect()
}
