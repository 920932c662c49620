//! A compiled dependency graph, as its passes look at it.

use crate::dependency::outputs::{Output, PassInput};
use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::base::Base;
use super::node::{DependencyCall, DependencyNode, Kind, Settings};
use crate::error::BoxError;
use crate::extract::RequirementKind;
use crate::policy::Policies;

/// Makes nodes at run time.
pub(crate) type Template<O, S> = Arc<dyn Fn(&Value) -> Result<DependencyNode<O, S>, BoxError> + Send + Sync>;

/// Everything that passes of one graph share.
pub(crate) struct Wiring<O, S> {
    pub(crate) base: Arc<Base>,
    pub(crate) names: Arc<[Arc<str>]>,
    pub(in crate::dependency) by_name: Arc<HashMap<Arc<str>, u32>>,
    pub(crate) nodes: Vec<Entry<O, S>>,
    pub(in crate::dependency) templates: HashMap<Arc<str>, Template<O, S>>,
    /// For nodes that say nothing else.
    pub(crate) policies: Policies,
    /// What nodes can take.
    pub(in crate::dependency) deps: HashSet<TypeId>,
    pub(in crate::dependency) sessions: HashSet<TypeId>,
    /// No node takes more than outputs, none has policies, and all wait for all.
    pub(crate) is_plain: bool,
    /// How many nodes have ended in silence is a failure.
    pub(crate) must_be_complete: bool,
}

/// A node, as it is called.
pub(crate) struct Entry<O, S> {
    pub(crate) call: Arc<dyn DependencyCall<O, S>>,
    pub(crate) policies: Option<Arc<Policies>>,
}

impl<O, S> Clone for Entry<O, S> {
    fn clone(&self) -> Self {
        Entry { call: Arc::clone(&self.call), policies: self.policies.clone() }
    }
}

impl<O: Output, S: PassInput> Entry<O, S> {
    pub(crate) fn of(node: DependencyNode<O, S>, defaults: &Policies) -> Self {
        let policies = node.settings.policies.or(defaults);
        let policies = Some(policies).filter(|policies| !policies.is_empty()).map(Arc::new);
        Entry { call: node.call, policies }
    }

    /// How it is called: under policies, as if it were async.
    pub(crate) fn kind(&self) -> Kind {
        match self.policies {
            None => self.call.kind(),
            Some(_) => Kind::Async,
        }
    }
}

impl<O, S> Wiring<O, S> {
    /// What a node takes and the graph does not have.
    pub(crate) fn missing(&self, settings: &Settings) -> Option<String> {
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
                RequirementKind::Session | RequirementKind::Dep => None,
            }
        })
    }
}
