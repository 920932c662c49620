//! [`Driver`]: the loop of a dependency graph, as the engine sees it.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::context::edits::CollectedEdit;
use crate::engine::host::LocalRunner;
use crate::engine::left_over::Leftovers;
use crate::engine::stored::StoredTurn;
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::state::State;
use crate::words::GraphEdit;

/// A node that is done in an unfinished pass, and what it gave if it was not skipped.
pub(crate) type PassTurn<S> = (StoredTurn, Option<<S as State>::Update>);

/// Begins, checks and drives the runs of a dependency graph, and says what their records mean. The loop knows
/// only this of outputs and dependencies, whose types it does not have.
pub(crate) trait Driver<S: State>: Send + Sync {
    /// The nodes with which a run begins. `kept`: by a checkpointer.
    ///
    /// # Errors
    /// The input asks for what cannot be.
    fn entry(self: Arc<Self>, state: &S, input: &S::Update, kept: bool) -> Result<Vec<u32>, Error>;

    /// Lets a run begin with these edits.
    ///
    /// # Errors
    /// One of them brings what cannot be a node of the graph.
    fn edit_before(&self, input: &mut S::Update, edits: Vec<CollectedEdit>) -> Result<(), Error>;

    /// The temporary edits that hold, in order, and the nodes that are skipped when their turn comes.
    fn edits(&self, state: &S) -> (Vec<GraphEdit>, Vec<String>);

    /// Whether a run can go on from what it has left behind.
    ///
    /// # Errors
    /// The graph does not have what it needs, or its records cannot be.
    fn check(self: Arc<Self>, thread: &str, state: &S, left: &Leftovers) -> Result<(), Error>;

    /// Notes in the state of a pass under way what its nodes have done, in this order, and says who runs
    /// next, those that have asked among them.
    ///
    /// # Errors
    /// The graph does not have what the pass needs, or its records cannot be.
    fn upcoming(
        self: Arc<Self>,
        thread: &str,
        state: &mut S,
        done: Vec<PassTurn<S>>,
        asked: &HashSet<String>,
    ) -> Result<Vec<String>, Error>;

    /// Goes on until there is a reason to pause.
    fn drive<'a>(self: Arc<Self>, run: &'a mut Loop<S, LocalRunner>) -> BoxFuture<'a, Result<Pause, Error>>;
}
