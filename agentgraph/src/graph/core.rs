//! A checked graph, as the loop uses it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::problem::Warning;
use super::template::{Defaults, Templates};
use super::topology::{END_ID, Topology};
use crate::context::RequiredContext;
use crate::erased::AnyNode;
use crate::failure::KeptError;
use crate::graph::node_names::NodeNames;
use crate::node::UntypedNode;
use crate::node::inner::AnyGraph;
use crate::policy::{OnEnd, Policies, Siblings};
use crate::record::migrate::Migrations;
use crate::record::migrate::UnknownFields;
use crate::route::Pick;
use crate::step::Goto;
use crate::typed::{AnySchema, Seen};
use agentgraph_checkpoint::engine::Refused;
use agentgraph_checkpoint::frame::Pairs;
use agentgraph_checkpoint::{Checkpointer, StoreCode};

/// A checked graph, as the loop uses it.
pub(crate) struct GraphCore {
    pub(crate) schema: AnySchema,
    pub(crate) nodes: Vec<NodeEntry>,
    pub(crate) topology: Topology,
    pub(crate) routers: Vec<Router>,
    pub(crate) names: Arc<NodeNames>,
    pub(crate) rules: Rules,
    pub(crate) uses: Uses,
    pub(crate) about: About,
    pub(crate) detached: DetachedNodes,
    pub(crate) stored: StoredForm,
    pub(crate) temporary: TemporaryNodes,
}

/// How runs of a graph go on, stop and end.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) discipline: Discipline,
    pub(crate) breaks: Option<Breaks>,
    pub(crate) siblings: Siblings,
    pub(crate) on_limit: Option<u32>,
    /// Whether a run fails if it ends while a join waits.
    pub(crate) stuck_fails: bool,
}

/// What a run of the graph needs that most do not: what is not used costs nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    pub(crate) ephemeral: bool,
    pub(crate) run_channels: bool,
    /// Whether a node is a graph, or a temporary one may be.
    pub(crate) graphs: bool,
    /// Whether some node keeps its last output.
    pub(crate) kept_outputs: bool,
}

/// What a program can ask a graph about itself. The lists include those of its subgraphs.
#[derive(Clone, Default)]
pub(crate) struct About {
    pub(crate) warnings: Vec<Warning>,
    pub(crate) drawing: super::draw::Drawing,
    /// The secret channels that are stored.
    pub(crate) secrets: Vec<String>,
    /// The nodes that are declared to make durable steps.
    pub(crate) durable_nodes: Vec<String>,
    /// The contexts that its nodes require from a caller.
    pub(crate) contexts: Vec<RequiredContext>,
}

/// The nodes that the end of a run does not wait for, or only for a time.
#[derive(Clone, Default)]
pub(crate) struct DetachedNodes {
    /// By dense id; empty if there are none.
    pub(super) nodes: Vec<bool>,
    /// The times that the end of a run waits for them, each once.
    pub(crate) awaited: Vec<Duration>,
}

/// What the records of a graph's runs say about it, and how those of other versions are read.
#[derive(Clone, Default)]
pub(crate) struct StoredForm {
    pub(crate) fingerprint: String,
    pub(crate) migrations: Migrations,
    pub(crate) unknown_fields: UnknownFields,
    /// The part of every full's header that is constant for the graph and its channels.
    pub(crate) constants: OnceLock<Pairs>,
}

/// The templates of temporary nodes, and the settings of those without their own.
#[derive(Clone, Default)]
pub(crate) struct TemporaryNodes {
    pub(super) templates: Templates,
    pub(super) defaults: Defaults,
}

/// The rule by which runs of a graph decide which nodes run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// All triggered nodes run side by side; the next ones start after the last of them has ended.
    Superstep,
    /// A node runs as soon as a node before it leads there.
    Eager,
    /// A node runs as soon as its dependencies are done.
    Dependency,
}

impl Discipline {
    /// The name in checkpoints.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Discipline::Superstep => "superstep",
            Discipline::Eager => "eager",
            Discipline::Dependency => "dependency",
        }
    }
}

#[derive(Clone)]
pub(crate) struct NodeEntry {
    pub(crate) call: Arc<dyn AnyNode>,
    /// `None` if the node has no policies, like most nodes.
    pub(crate) policies: Option<Arc<Policies>>,
    /// The node that handles its failures.
    pub(in crate::graph) on_error: Option<u32>,
    pub(crate) keeps: Vec<KeptError>,
    /// The declared targets of its commands.
    pub(crate) targets: Option<Vec<u32>>,
    /// Whether it returns commands whose targets are not known.
    pub(in crate::graph) anywhere: bool,
    /// The subgraph, if the node is one.
    pub(crate) graph: Option<Arc<dyn AnyGraph>>,
    /// The treatment of a detached task at the end of the run.
    pub(crate) on_end: OnEnd,
    /// Whether its last output is kept to be used again.
    pub(in crate::graph) keeps_output: bool,
    /// Whether it asks for another process.
    pub(crate) remote: bool,
}

impl NodeEntry {
    /// A node with its own settings, without a place in a graph.
    pub(super) fn of(node: &UntypedNode, defaults: &Policies) -> Self {
        let settings = &node.settings;
        let policies = settings.policies.clone().or(defaults);
        NodeEntry {
            call: Arc::clone(&node.call),
            policies: (!policies.is_empty()).then(|| Arc::new(policies)),
            on_error: None,
            keeps: settings.keeps.clone(),
            targets: None,
            anywhere: settings.commands.may_be_returned,
            graph: settings.graph.clone(),
            on_end: settings.on_end,
            keeps_output: false,
            remote: settings.remote,
        }
    }
}

/// The nodes with static interrupts, by dense id.
#[derive(Clone)]
pub(crate) struct Breaks {
    pub(crate) before: Vec<bool>,
    pub(crate) after: Vec<bool>,
}

/// The decision function of a route or branch, and its targets by dense id.
pub(crate) struct Router {
    pub(crate) decide: RouterFn,
    pub(crate) targets: Vec<u32>,
}

pub(crate) enum RouterFn {
    #[allow(clippy::type_complexity)]
    Typed(Box<dyn Fn(Seen<'_>, &mut dyn FnMut(Pick)) + Send + Sync>),
    #[allow(clippy::type_complexity)]
    Named(Box<dyn Fn(Seen<'_>, &mut Vec<Goto>) + Send + Sync>),
}

impl GraphCore {
    /// The reason to refuse a checkpointer for this graph's data, if there is one.
    pub(crate) fn refusal(&self, saver: &dyn Checkpointer) -> Option<Refused> {
        if self.about.secrets.is_empty() || saver.keeps_secrets() || !saver.outlives_its_process() {
            return None;
        }
        let why = format!(
            "the state has secret channels ({}), and the checkpointer stores plain text, so nothing is stored: wrap it in \
             an `EncryptedSaver` with a key, or mark the channels `untracked` as well",
            self.about.secrets.join(", ")
        );
        Some(Refused { code: StoreCode::SecretNeedsKey, why })
    }

    pub(super) fn is_detached(&self, node: u32) -> bool {
        self.detached.nodes.get(node as usize).copied().unwrap_or(false)
    }

    /// The graph that a node is.
    pub(crate) fn subgraph(&self, node: usize) -> Option<Arc<GraphCore>> {
        self.nodes.get(node)?.graph.as_ref()?.core().downcast().ok()
    }

    pub(crate) fn name(&self, node: u32) -> &str {
        match self.names.get(node as usize) {
            Some(name) => name,
            None if node == END_ID => crate::words::END,
            None => crate::words::START,
        }
    }
}
