//! Temporary nodes: made by a template of the graph, or given as a function.
//!
//! This is the [`Desk`] of state graphs: it checks edits against the compiled graph under the overlays of the
//! run and of the task.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::core::{Discipline, GraphCore, NodeEntry};
use super::overlay::{Layers, Overlay, OverlayBase, TemporaryNode};
use super::run_graph::Temporary;
use crate::context::edits::ProposedEdit;
use crate::context::edits::{Desk, NodeValue};
use crate::context::{RunShared, TaskRequest, VisibleEdits};
use crate::error::nearest;
use crate::extract::RequirementKind;
use crate::node::{IntoNode, UntypedNode};
use crate::panic::panic_of;
use crate::policy::Policies;
use crate::state::State;
use crate::words::{GraphEdit, Rejection};

/// A function that makes a node from arguments.
pub(super) type Template = Arc<dyn Fn(&Value) -> Result<UntypedNode, String> + Send + Sync>;

/// The templates of a graph, by name.
pub(super) type Templates = HashMap<Arc<str>, Template>;

/// Converts a factory into a template.
pub(super) fn template<S: State, A, N, M>(factory: impl Fn(A) -> N + Send + Sync + 'static) -> Template
where
    A: DeserializeOwned,
    N: IntoNode<S, M>,
{
    Arc::new(move |args| {
        let args = A::deserialize(args).map_err(|error| error.to_string())?;
        Ok(factory(args).into_node().into_any())
    })
}

/// The settings that temporary nodes inherit from their graph.
#[derive(Clone, Default)]
pub(super) struct Defaults {
    pub(in crate::graph) policies: Policies,
    pub(in crate::graph) on_error: Option<u32>,
}

impl GraphCore {
    pub(super) fn ground(&self) -> OverlayBase<'_> {
        OverlayBase { topology: &self.topology, names: &self.names }
    }

    /// The node that an edit adds; `None` if it adds none.
    pub(crate) fn make(
        &self,
        edit: &GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<Option<NodeValue>, Rejection> {
        let GraphEdit::AddNode { template, args, .. } = edit else { return Ok(None) };
        let Some(name) = template else {
            let made = made.ok_or(Rejection::NeedsTemplate)?;
            let node = made.downcast_ref::<UntypedNode>();
            let fits = node.is_some_and(|node| node.call.state_type() == self.schema.state_type());
            return if fits {
                Ok(Some(made))
            } else {
                Err(Rejection::Unfit("it is a node over another state".to_owned()))
            };
        };
        let template = self.temporary.templates.get(&**name).ok_or_else(|| {
            let near =
                nearest(name, self.temporary.templates.keys().map(|known| &**known)).map(str::to_owned);
            Rejection::UnknownTemplate { name: name.clone(), nearest: near }
        })?;
        let node = catch_unwind(AssertUnwindSafe(|| template(args)));
        let node = node.unwrap_or_else(|payload| Err(panic_of(&*payload).to_string()));
        Ok(Some(Arc::new(node.map_err(Rejection::BadArguments)?)))
    }

    /// The entry and shape of the node that an edit adds, if it adds one.
    pub(super) fn temporary(
        &self,
        layers: &Layers<'_>,
        proposed: &ProposedEdit,
    ) -> Result<Option<Temporary>, Rejection> {
        let GraphEdit::AddNode { name, .. } = &proposed.edit else { return Ok(None) };
        let Some(node) = proposed.made.as_ref().and_then(|made| made.downcast_ref::<UntypedNode>()) else {
            return Err(Rejection::NeedsTemplate);
        };
        let settings = &node.settings;
        let on_error = match &settings.on_error {
            None => self.temporary.defaults.on_error,
            Some(handler) => Some(layers.id(handler).ok_or_else(|| {
                Rejection::Unfit(format!("its failures are handled by `{handler}`, which is not a node"))
            })?),
        };
        let entry = NodeEntry { on_error, ..NodeEntry::of(node, &self.temporary.defaults.policies) };
        if settings.detached && self.rules.discipline != Discipline::Eager {
            let problem = "it is detached, which needs a graph with `.eager()`".to_owned();
            return Err(Rejection::Unfit(problem));
        }
        if let Some((setting, why)) = settings.misfit(self.schema.channels()) {
            return Err(Rejection::Unfit(format!("it cannot have `{setting}`: {why}")));
        }
        let shape = TemporaryNode {
            name: Arc::from(&**name),
            deferred: settings.deferred,
            detached: settings.detached,
            is_graph: settings.graph.is_some(),
            made_by: settings.graph.as_ref().map(|_| Box::new(proposed.edit.clone())),
        };
        Ok(Some((entry, shape)))
    }

    /// Checks that the graph has everything that a node requires.
    fn check_needs(&self, shared: &RunShared, node: &UntypedNode) -> Result<(), Rejection> {
        let unfit = |problem: String| Err(Rejection::Unfit(problem));
        for need in &node.settings.requirements {
            let deps = &shared.graph.deps;
            let sessions = &shared.graph.sessions;
            match need.kind {
                RequirementKind::Session if !sessions.iter().any(|kind| kind.id == need.id) => {
                    return unfit(format!("it takes a `Session<{}>` and the graph declares none", need.name));
                }
                RequirementKind::Dep if !deps.contains(need.id) => {
                    return unfit(format!("it takes a `Dep<{}>` and the graph has none", need.name));
                }
                // Only a dispatch can reach a temporary node that takes an input; any other task fails
                // when it takes the input. Its context is that of the place where it runs, maybe a host.
                RequirementKind::Session
                | RequirementKind::Dep
                | RequirementKind::Input
                | RequirementKind::Context => {}
            }
        }
        if node.settings.graph.is_some() && !self.uses.graphs {
            return unfit("a graph can be a temporary node only if a template makes it".to_owned());
        }
        Ok(())
    }
}

impl Desk for GraphCore {
    fn submit(
        &self,
        shared: &RunShared,
        task: TaskRequest,
        edit: &GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<(), Rejection> {
        self.take_in(shared, shared.visible(), task, edit, made)
    }

    fn adopt(
        &self,
        shared: &RunShared,
        seen: &VisibleEdits,
        task: TaskRequest,
        edit: &GraphEdit,
    ) -> Result<(), Rejection> {
        self.take_in(shared, seen.clone(), task, edit, None)
    }
}

impl GraphCore {
    fn take_in(
        &self,
        shared: &RunShared,
        visible: VisibleEdits,
        task: TaskRequest,
        edit: &GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<(), Rejection> {
        let is_function = matches!(edit, GraphEdit::AddNode { template: None, .. });
        if is_function && shared.editing.stores {
            return Err(Rejection::NeedsTemplate);
        }
        // Users' code makes the node, so no lock is held meanwhile.
        let proposed = ProposedEdit { edit: edit.clone(), made: self.make(edit, made)?, seen: 0 };
        if let Some(node) = proposed.made.as_ref().and_then(|made| made.downcast_ref::<UntypedNode>()) {
            self.check_needs(shared, node)?;
        }
        let reusable = |node: u32, name: &str| {
            let node_name = || name.to_owned();
            if !self.nodes.get(node as usize).is_some_and(|entry| entry.keeps_output) {
                Err(Rejection::KeepsNothing { node: node_name() })
            } else if visible.kept.contains(&node) {
                Ok(())
            } else {
                Err(Rejection::NothingToReuse { node: node_name() })
            }
        };
        shared.control.propose(
            task,
            visible.overlay,
            |base| Layers::of(self.ground(), base).overlay_on_top(),
            |base, top| {
                let layers = Layers::of(self.ground(), base);
                let shape = self.temporary(&layers.under(Some(top)), &proposed)?.map(|(_, shape)| shape);
                layers.edit(top, edit, shape, &reusable)?;
                let seen = base.map_or(0, Overlay::applied_edits);
                Ok(ProposedEdit { seen, ..proposed.clone() })
            },
        )
    }
}
