//! [`Passes`]: a series of passes in memory.

use crate::dependency::outputs::{Output, PassInput};
use std::collections::VecDeque;
use std::sync::Arc;

use super::dependency::CompiledDependencyGraph;
use crate::dependency::outputs::Outputs;
use crate::error::Error;
use crate::run::RunBuilder;
use crate::words::Outcome;
use agentgraph_checkpoint::shows;

/// Default number of remembered passes.
const HISTORY: usize = 16;

/// A series of passes of one graph. Each has the last outputs of all nodes, which
/// [skipped](crate::edit::Edits::skip) nodes use again. A failed pass leaves the outputs of its
/// finished nodes; a dropped one leaves nothing.
///
/// For passes that outlive the process, add a [checkpointer](crate::CompiledDependencyGraph::checkpointer) to
/// the graph: a thread is such a series of passes, too.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use agentgraph::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let calls = AtomicU64::new(0);
/// let graph = DependencyGraph::<u64>::new()
///     .node("plan", move || 10 * (1 + calls.fetch_add(1, Ordering::Relaxed)))
///     .node("act", |deps: Deps<u64>| deps["plan"] + 1)
///     .edge("plan", "act")
///     .compile()?;
/// let mut passes = graph.passes();
/// assert_eq!(passes.invoke(()).await?.output()["act"], 11);
/// let skipping = passes.invoke_with((), |pass| pass.for_this_pass(|edits| { edits.skip(["plan"]); }));
/// assert_eq!(skipping.await?.output()["act"], 11);
/// assert_eq!(passes.invoke(()).await?.output()["act"], 21);
/// assert_eq!(passes.history().count(), 3);
/// # Ok(())
/// # }
/// ```
pub struct Passes<O: Output, S: PassInput = ()> {
    graph: CompiledDependencyGraph<O, S>,
    last: Option<Arc<Outputs<O, S>>>,
    /// The finished passes, the oldest first.
    history: VecDeque<Arc<Outputs<O, S>>>,
    remembers: usize,
}

impl<O: Output, S: PassInput> Passes<O, S> {
    pub(super) fn of(graph: CompiledDependencyGraph<O, S>) -> Self {
        Passes { graph, last: None, history: VecDeque::new(), remembers: HISTORY }
    }

    /// Sets the number of remembered finished passes; 16 by default.
    #[must_use]
    pub fn remember(mut self, passes: usize) -> Self {
        self.remembers = passes;
        self
    }

    /// Runs a pass.
    ///
    /// # Errors
    /// As for a call of the graph itself.
    pub async fn invoke(&mut self, input: S) -> Result<Outcome<Arc<Outputs<O, S>>>, Error> {
        self.invoke_with(input, |pass| pass).await
    }

    /// Runs a pass with settings: edited, limited, or one node after the other.
    ///
    /// # Errors
    /// As for a call of the graph itself.
    pub async fn invoke_with(
        &mut self,
        input: S,
        set_up: impl FnOnce(RunBuilder<Outputs<O, S>>) -> RunBuilder<Outputs<O, S>>,
    ) -> Result<Outcome<Arc<Outputs<O, S>>>, Error> {
        let pass = set_up(self.graph.invoke(input)).begin_on(self.last.clone());
        match pass.await {
            Ok(outcome) => {
                let outcome = outcome.map(Arc::new);
                self.last = Some(Arc::clone(outcome.output()));
                if matches!(outcome, Outcome::Finished { .. }) {
                    self.history.push_back(Arc::clone(outcome.output()));
                    let over = self.history.len().saturating_sub(self.remembers);
                    self.history.drain(..over);
                }
                Ok(outcome)
            }
            Err(error) => {
                if let Some(outputs) = error.state::<Outputs<O, S>>() {
                    self.last = Some(Arc::new(outputs.clone()));
                }
                Err(error)
            }
        }
    }

    /// The remembered finished passes, the oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Outputs<O, S>> + ExactSizeIterator {
        self.history.iter().map(|outputs| &**outputs)
    }

    /// The outputs after the last pass, however it ended.
    pub fn last(&self) -> Option<&Outputs<O, S>> {
        self.last.as_deref()
    }
}

shows!([O: Output, S: PassInput] Passes<O, S>: |it| { finished: it.history.len() });
