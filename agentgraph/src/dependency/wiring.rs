//! A compiled dependency graph, as its passes use it.

use crate::dependency::outputs::{Output, Outputs, PassInput};
use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::base::Base;
use super::node::{CallKind, DependencyCall, DependencyNode, DependencySettings};
use crate::erased::{AnyNode, ErasedNode};
use crate::error::BoxError;
use crate::extract::RequirementKind;
use crate::graph::node_names::NodeNames;
use crate::policy::Policies;
use crate::typed::node::TypedNode;
use crate::words::clones;

/// A function that makes nodes during a pass.
pub(super) type Template<O, S> = Arc<dyn Fn(&Value) -> Result<DependencyNode<O, S>, BoxError> + Send + Sync>;

/// The parts that all passes of one graph share.
pub(crate) struct Wiring<O, S> {
    pub(crate) base: Arc<Base>,
    pub(crate) names: Arc<NodeNames>,
    /// A slice, since a list would keep the room of the declarations that it was collected from.
    pub(crate) nodes: Box<[WiredNode<O, S>]>,
    pub(in crate::dependency) templates: HashMap<Arc<str>, Template<O, S>>,
    /// The policies of nodes without their own.
    pub(crate) policies: Policies,
    /// The types that nodes can take.
    pub(in crate::dependency) deps: HashSet<TypeId>,
    pub(in crate::dependency) sessions: HashSet<TypeId>,
    /// Whether no node takes more than outputs or has policies, and all nodes wait for all dependencies.
    pub(crate) is_plain: bool,
    /// Whether a pass with nodes that wait in vain is a failure.
    pub(crate) must_be_complete: bool,
}

/// A node and its effective policies.
pub(crate) struct WiredNode<O, S> {
    pub(crate) call: Arc<dyn DependencyCall<O, S>>,
    pub(crate) policies: Option<Arc<Policies>>,
    /// Whether it asks for another process.
    pub(crate) remote: bool,
}

clones!([O, S] WiredNode<O, S> { call, policies, remote });

impl<O: Output, S: PassInput> WiredNode<O, S> {
    pub(crate) fn of(node: DependencyNode<O, S>, defaults: &Policies) -> Self {
        let policies = node.settings.policies.clone().or(defaults);
        let policies = Some(policies).filter(|policies| !policies.is_empty()).map(Arc::new);
        WiredNode { call: node.call, policies, remote: node.settings.remote }
    }

    /// The node for the parts of the engine that know no outputs. It is not kept: few nodes need it, and a
    /// graph may have a million.
    pub(crate) fn any(&self) -> Arc<dyn AnyNode> {
        any_node(&self.call)
    }

    /// The kind of its call; a node with policies is called as an async one.
    pub(crate) fn kind(&self) -> CallKind {
        match self.policies {
            None => self.call.kind(),
            Some(_) => CallKind::Async,
        }
    }
}

/// A node without the type of its outputs.
pub(super) fn any_node<O: Output, S: PassInput>(node: &Arc<dyn DependencyCall<O, S>>) -> Arc<dyn AnyNode> {
    Arc::new(TypedNode::new(Arc::clone(node) as Arc<dyn ErasedNode<Outputs<O, S>>>))
}

impl<O, S> Wiring<O, S> {
    /// Describes a requirement of a node that the graph does not provide.
    pub(super) fn missing(&self, settings: &DependencySettings) -> Option<String> {
        settings.requirements.iter().find_map(|need| {
            let name = need.name;
            match need.kind {
                RequirementKind::Session if !self.sessions.contains(&need.id) => {
                    Some(format!("takes a `Session<{name}>`, and the graph has none"))
                }
                RequirementKind::Dep if !self.deps.contains(&need.id) => {
                    Some(format!("takes a `Dep<{name}>`, and the graph has none"))
                }
                RequirementKind::Input => {
                    Some(format!("takes an `Input<{name}>`, and no node of a dependency graph gets one"))
                }
                RequirementKind::Session | RequirementKind::Dep | RequirementKind::Context => None,
            }
        })
    }
}
