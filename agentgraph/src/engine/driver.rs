//! [`Driver`]: the loop of a dependency graph, as the engine sees it.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::context::edits::{CollectedEdit, Desk};
use crate::context::host::{TaskCall, TaskDetails};
use crate::engine::left_over::Leftovers;
use crate::engine::stored::StoredTurn;
use crate::engine::{Loop, Pause};
use crate::erased::AnyNode;
use crate::error::Error;
#[cfg(feature = "draw")]
use crate::graph::GraphTopology;
use crate::policy::Policies;
use crate::record::codec::Codec;
use crate::typed::{AnySchema, AnyState, AnyUpdate};
use crate::words::GraphEdit;

/// A finished node of an unfinished pass, and its output unless it was skipped.
pub(super) type PassTurn = (StoredTurn, Option<AnyUpdate>);

/// Starts, checks and drives the runs of a dependency graph, and interprets their records. The loop does not
/// have the types of outputs and dependencies; this trait hides them.
pub(crate) trait Driver: Send + Sync {
    /// The nodes that a run starts with. `kept`: a checkpointer stores the run.
    ///
    /// # Errors
    /// The input asks for something impossible.
    fn entry(self: Arc<Self>, state: &AnyState, input: &AnyUpdate, kept: bool) -> Result<Vec<u32>, Error>;

    /// Applies temporary edits before the run starts.
    ///
    /// # Errors
    /// An edit adds something that cannot be a node of the graph.
    fn edit_before(&self, input: &mut AnyUpdate, edits: Vec<CollectedEdit>) -> Result<(), Error>;

    /// The temporary edits in effect, in order, and the nodes to skip when their turn comes.
    fn edits(&self, state: &AnyState) -> (Vec<GraphEdit>, Vec<String>);

    /// The nodes of the pass that have finished.
    #[cfg(feature = "draw")]
    fn finished(&self, state: &AnyState) -> Vec<String>;

    /// The graph with these edits.
    #[cfg(feature = "draw")]
    fn topology(self: Arc<Self>, edits: &[GraphEdit]) -> GraphTopology;

    /// Checks that a run can continue from what earlier calls left behind.
    ///
    /// # Errors
    /// The graph lacks something that the run needs, or its records are inconsistent.
    fn check(self: Arc<Self>, thread: &str, state: &AnyState, left: &Leftovers) -> Result<(), Error>;

    /// Applies the results of finished nodes to the state of a pass under way, in the given order. Returns
    /// the nodes that run next, including those that have asked.
    ///
    /// # Errors
    /// The graph lacks something that the pass needs, or its records are inconsistent.
    fn upcoming(
        self: Arc<Self>,
        thread: &str,
        state: &mut AnyState,
        done: Vec<PassTurn>,
        asked: &HashSet<String>,
    ) -> Result<Vec<String>, Error>;

    /// Continues the run until there is a reason to pause.
    fn drive<'a>(self: Arc<Self>, run: &'a mut Loop) -> BoxFuture<'a, Result<Pause, Error>>;

    /// The node that a host was asked for, with what it reads and edits.
    ///
    /// # Errors
    /// The graph lacks something that the call names, or the call is damaged.
    fn far_node(
        self: Arc<Self>,
        codec: &Codec,
        schema: &AnySchema,
        call: &TaskCall,
        details: &TaskDetails,
    ) -> Result<FarNode, Error>;

    /// The update of a node, as it is sent to another process.
    fn named_output(&self, node: &str, update: AnyUpdate) -> AnyUpdate;
}

/// A node of a dependency graph in the process of a host.
pub(crate) struct FarNode {
    pub(crate) node: u32,
    pub(crate) state: Arc<AnyState>,
    pub(crate) call: Arc<dyn AnyNode>,
    pub(crate) policies: Option<Arc<Policies>>,
    /// The graph of the pass, to be edited.
    pub(crate) desk: Arc<dyn Desk>,
}
