//! Whether a store that wraps another one delegates to it: every method, every extension and every argument.
//!
//! It does not test the wrapper's own behaviour; [`run`](super::run) on the wrapped store does.

mod core;
mod extensions;
mod probe;
mod setup;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use self::setup::Setup;
use super::{Finding, Report, catch_panic};
use crate::checkpointer::Checkpointer;
use crate::error::StoreError;

/// One thing that a wrapper has to delegate.
#[derive(Clone, Copy, Debug)]
pub struct WrapperClause {
    name: &'static str,
    test: Trial,
    optional: bool,
}

/// A clause as code. Its error says what the wrapper did instead.
type Trial = fn(Setup) -> BoxFuture<'static, Result<(), String>>;

impl WrapperClause {
    const fn new(name: &'static str, test: Trial) -> Self {
        WrapperClause { name, test, optional: false }
    }

    /// Marks a clause that a good wrapper need not hold.
    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Returns its text.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a wrapper need not hold it.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Tries it on `wrap` over the store `beneath`, which must be empty.
    ///
    /// ```
    /// use agentgraph_checkpoint::MemorySaver;
    /// use agentgraph_checkpoint::conformance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// for clause in conformance::wrapper_clauses() {
    ///     assert_eq!(clause.check(MemorySaver::new(), |inner| inner).await, Ok(()), "{}", clause.name());
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the wrapper did instead, or the extension that the store beneath lacks. A panic is one of these.
    pub async fn check<W: Checkpointer>(
        &self,
        beneath: impl Checkpointer,
        wrap: impl Fn(Arc<dyn Checkpointer>) -> W + Send + Sync + 'static,
    ) -> Result<(), String> {
        catch_panic((self.test)(Setup::new(Arc::new(beneath), wrap))).await
    }
}

/// Every clause about wrappers.
pub fn wrapper_clauses() -> Vec<WrapperClause> {
    [&core::CLAUSES[..], &extensions::CLAUSES].concat()
}

/// Tries every clause about wrappers on `wrap`, each over a store of its own, which `make_store` makes.
///
/// A clause about an extension does not hold over a store that lacks it, so the store beneath should have
/// all of them.
///
/// ```
/// use std::sync::Arc;
///
/// use agentgraph_checkpoint::{MemorySaver, conformance};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let report = conformance::check_wrapper(|| async { Ok(MemorySaver::new()) }, |inner| Arc::new(inner)).await;
/// assert!(report.holds(), "{report}");
/// # }
/// ```
pub async fn check_wrapper<C, F, M, W, V>(make_store: M, wrap: V) -> Report
where
    C: Checkpointer,
    F: Future<Output = Result<C, StoreError>>,
    M: Fn() -> F,
    W: Checkpointer,
    V: Fn(Arc<dyn Checkpointer>) -> W + Send + Sync + 'static,
{
    let wrap = Arc::new(wrap);
    let mut findings = Vec::new();
    for clause in wrapper_clauses() {
        let (problem, optional) = match make_store().await {
            Ok(store) => {
                let wrap = Arc::clone(&wrap);
                (clause.check(store, move |inner| wrap(inner)).await.err(), clause.optional)
            }
            Err(error) => (Some(format!("the store could not be made: {error}")), false),
        };
        findings.push(Finding { clause: clause.name, problem, optional });
    }
    Report { findings }
}
