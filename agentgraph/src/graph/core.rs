//! A graph that was checked, as the loop looks at it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::problem::Warning;
use super::template::{Defaults, Templates};
use super::topology::{END_ID, Topology};
use crate::failure::KeptError;
use crate::node::ErasedNode;
use crate::node::inner::AnyGraph;
use crate::policy::{OnEnd, Policies, Siblings};
use crate::record::migrate::Migrations;
use crate::record::migrate::UnknownFields;
use crate::route::Pick;
use crate::state::State;
use crate::step::Goto;
use agentgraph_checkpoint::engine::Refused;
use agentgraph_checkpoint::frame::Pairs;
use agentgraph_checkpoint::{Checkpointer, StoreCode};

/// A checked graph, as the loop sees it. One field per answer that `compile` finds once, so that a superstep
/// reads it in one load; nobody changes one.
pub(crate) struct GraphCore<S: State> {
    pub(crate) schema: S::Schema,
    pub(crate) nodes: Vec<NodeEntry<S>>,
    pub(crate) topology: Topology,
    pub(crate) routers: Vec<Router<S>>,
    pub(crate) by_name: Arc<HashMap<Arc<str>, u32>>,
    pub(crate) names: Arc<[Arc<str>]>,
    pub(crate) fingerprint: String,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) breaks: Option<Breaks>,
    pub(crate) has_ephemeral: bool,
    pub(crate) has_run_channels: bool,
    /// For how long the end of a run waits for detached nodes: the times that they name, each once.
    pub(crate) awaited_at_end: Vec<Duration>,
    /// A node is a graph, or a temporary one may be.
    pub(crate) has_graphs: bool,
    pub(crate) siblings: Siblings,
    pub(crate) on_limit: Option<u32>,
    /// A run that ends with a join that waits has failed.
    pub(crate) stuck_fails: bool,
    /// The detached nodes; empty if there are none.
    pub(crate) detached: Vec<bool>,
    pub(crate) migrations: Migrations,
    pub(crate) unknown_fields: UnknownFields,
    pub(crate) drawing: super::draw::Drawing,
    pub(crate) discipline: Discipline,
    pub(crate) templates: Templates<S>,
    /// What temporary nodes have that say nothing else.
    pub(crate) defaults: Defaults,
    /// Some node keeps its last output.
    pub(crate) keeps_outputs: bool,
    /// The secret channels that are stored, its own and those of the graphs in it.
    pub(crate) secrets: Vec<String>,
    /// What the header of every full says of the graph and its channels.
    pub(crate) constants: OnceLock<Pairs>,
}

/// The rule by which the runs of a graph decide what runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// All nodes whose trigger fired run side by side, and the next ones after the last of them.
    Superstep,
    /// A node runs as soon as one before it leads there.
    Eager,
    /// A node runs as soon as those it depends on are done.
    Dependency,
}

impl Discipline {
    /// Its name in checkpoints.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Discipline::Superstep => "superstep",
            Discipline::Eager => "eager",
            Discipline::Dependency => "dependency",
        }
    }
}

pub(crate) struct NodeEntry<S: State> {
    pub(crate) call: Arc<dyn ErasedNode<S>>,
    /// None if it has none, which most have not.
    pub(crate) policies: Option<Arc<Policies>>,
    /// The node that handles its failures.
    pub(in crate::graph) on_error: Option<u32>,
    pub(crate) keeps: Vec<KeptError>,
    /// Where its commands may go, if it said so.
    pub(crate) targets: Option<Vec<u32>>,
    /// The graph that it is.
    pub(crate) graph: Option<Arc<dyn AnyGraph>>,
    /// What becomes of it at the end, if it is detached.
    pub(crate) on_end: OnEnd,
    /// What it gave last is kept, to be used again.
    pub(in crate::graph) keeps_output: bool,
}

/// The nodes with static interrupts, by dense id.
pub(crate) struct Breaks {
    pub(crate) before: Vec<bool>,
    pub(crate) after: Vec<bool>,
}

/// The decision function of a route or branch, and its targets by dense id.
pub(crate) struct Router<S: State> {
    pub(crate) decide: RouterFn<S>,
    pub(crate) targets: Vec<u32>,
}

pub(crate) enum RouterFn<S: State> {
    #[allow(clippy::type_complexity)]
    Typed(Box<dyn Fn(&S, &mut dyn FnMut(Pick)) + Send + Sync>),
    #[allow(clippy::type_complexity)]
    Named(Box<dyn Fn(&S, &mut Vec<Goto>) + Send + Sync>),
}

impl<S: State> GraphCore<S> {
    /// Why that checkpointer must not be given what the graph has to store, if it must not.
    pub(crate) fn refusal(&self, saver: &dyn Checkpointer) -> Option<Refused> {
        if self.secrets.is_empty() || saver.keeps_secrets() || !saver.outlives_its_process() {
            return None;
        }
        let why = format!(
            "the state has secret channels ({}), and the checkpointer stores what it is given in clear, so nothing is stored: put \
             an `EncryptedSaver` with a key before it, or mark them `untracked` as well",
            self.secrets.join(", ")
        );
        Some(Refused { code: StoreCode::SecretNeedsKey, why })
    }

    pub(crate) fn is_detached(&self, node: u32) -> bool {
        self.detached.get(node as usize).copied().unwrap_or(false)
    }

    pub(crate) fn name(&self, node: u32) -> &str {
        match self.names.get(node as usize) {
            Some(name) => name,
            None if node == END_ID => crate::words::END,
            None => crate::words::START,
        }
    }
}
