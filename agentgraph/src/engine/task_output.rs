//! Results of finished tasks: updates and targets, by dense ids.

use std::sync::Arc;

use crate::context::edits::ProposedEdit;
use crate::error::{Code, Error, hint, nearest};
use crate::graph::run_graph::RunGraph;
use crate::graph::topology::END_ID;
use crate::step::{Goto, InputValue, Step};
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{END, GraphEdit, START};

/// The result of a finished task: its update and its targets, by dense ids.
pub(crate) struct TaskOutput {
    pub(crate) update: Option<AnyUpdate>,
    /// The rest of a command. Boxed, since every result has room for it and few have it.
    pub(crate) routing: Option<Box<Routing>>,
}

/// The routing of a command.
pub(crate) struct Routing {
    pub(super) targets: Vec<Target>,
    replaces_edges: bool,
    /// Its temporary edits, which may add targets.
    edits: Vec<ProposedEdit>,
}

impl TaskOutput {
    pub(super) fn targets(&self) -> &[Target] {
        self.routing.as_ref().map_or(&[], |routing| &routing.targets)
    }

    pub(super) fn edits(&self) -> &[ProposedEdit] {
        self.routing.as_ref().map_or(&[], |routing| &routing.edits)
    }

    /// Takes the edits, which are examined before anything is routed.
    pub(super) fn take_edits(&mut self) -> Vec<ProposedEdit> {
        self.routing.as_mut().map(|routing| std::mem::take(&mut routing.edits)).unwrap_or_default()
    }

    /// Looks up the targets that edits of this task or of others have added. Returns the names that do not
    /// exist.
    pub(super) fn find_late_targets(&mut self, graph: &RunGraph) -> Vec<String> {
        let mut lost = Vec::new();
        let Some(routing) = &mut self.routing else { return lost };
        routing.targets.retain_mut(|target| {
            let Some(name) = target.late.take() else { return true };
            match graph.id(&name) {
                Some(node) => target.node = node,
                None => {
                    lost.push(name.to_string());
                    return false;
                }
            }
            true
        });
        lost
    }

    pub(super) fn replaces_edges(&self) -> bool {
        self.routing.as_ref().is_some_and(|routing| routing.replaces_edges)
    }
}

/// A target that was looked up.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(in crate::engine) node: u32,
    pub(in crate::engine) input: Option<InputValue>,
    /// The name of a node that the task's edits add: it has an id once the edits are in effect.
    pub(in crate::engine) late: Option<Arc<str>>,
}

impl Target {
    pub(super) fn name<'a>(&'a self, graph: &'a RunGraph) -> &'a str {
        self.late.as_deref().unwrap_or_else(|| graph.name(self.node))
    }
}

/// Looks up the targets of a step.
///
/// # Errors
/// [`Code::UnknownTarget`] for a name that is not in the graph, or not among the declared targets of the
/// node.
pub(super) fn resolve(
    core: &RunGraph,
    node: u32,
    step: Step<AnyState>,
    edits: Vec<ProposedEdit>,
) -> Result<TaskOutput, Error> {
    let (update, targets, replaces_edges) = match step {
        Step::None => (None, Vec::new(), false),
        Step::Update(update) => (Some(update), Vec::new(), false),
        Step::Command(command) => (command.update, command.targets, command.replaces_edges),
    };
    if targets.is_empty() && edits.is_empty() && !replaces_edges {
        return Ok(TaskOutput { update, routing: None });
    }
    let declared = core.entry(node).and_then(|node| node.targets.as_deref());
    let targets = targets.into_iter().map(|goto| {
        let target = target(core, &edits, goto)?;
        let is_declared = |declared: &[u32]| {
            target.late.is_some() || core.is_temporary(target.node) || declared.contains(&target.node)
        };
        match declared {
            Some(declared) if !is_declared(declared) => {
                Err(undeclared_target(core, "command", "`.targets([..])`", target.node))
            }
            _ => Ok(target),
        }
    });
    let targets = targets.collect::<Result<_, Error>>()?;
    Ok(TaskOutput { update, routing: Some(Box::new(Routing { targets, replaces_edges, edits })) })
}

pub(super) fn undeclared_target(core: &RunGraph, word: &str, place: &str, node: u32) -> Error {
    let name = core.name(node);
    let problem =
        format!("its {word} went to `{name}`, which is not among the targets it declared: add it to {place}");
    Error::new(Code::UnknownTarget, problem)
}

/// The last edit of a task about a name: `true` if it adds the node, `false` if it removes it.
fn last_edit_of(edits: &[ProposedEdit], wanted: &str) -> Option<bool> {
    edits.iter().rev().find_map(|one| match &one.edit {
        GraphEdit::AddNode { name, .. } if name == wanted => Some(true),
        GraphEdit::RemoveNode { name } if name == wanted => Some(false),
        _ => None,
    })
}

pub(super) fn target(core: &RunGraph, edits: &[ProposedEdit], goto: Goto) -> Result<Target, Error> {
    let (name, input) = match goto {
        Goto::Node(name) => (name, None),
        Goto::Dispatch(dispatch) => (dispatch.node, Some(dispatch.input)),
    };
    if name == END {
        return Ok(Target { node: END_ID, input: None, late: None });
    }
    let node = match last_edit_of(edits, &name) {
        Some(true) => return Ok(Target { node: END_ID, input, late: Some(Arc::from(&*name)) }),
        Some(false) => None,
        None => core.id(&name),
    };
    let node = node.ok_or_else(|| unknown_target(core, &name))?;
    Ok(Target { node, input, late: None })
}

pub(super) fn unknown_target(core: &RunGraph, name: &str) -> Error {
    let hint = match nearest(name, core.known()) {
        _ if name == START => "; START cannot be a target".to_owned(),
        _ if core.compiled().names.id(name).is_some() => {
            "; it was removed by a temporary edit of this run".to_owned()
        }
        near => hint(near),
    };
    Error::new(Code::UnknownTarget, format!("there is no node `{name}` to go to{hint}"))
}

/// The node that an edit acts as.
pub(super) fn node_to_act_as(core: &RunGraph, name: &str) -> Result<u32, Error> {
    core.id(name).ok_or_else(|| {
        let hint = match (name, nearest(name, core.known())) {
            (START, _) => "; use `.as_start(..)`".to_owned(),
            (END, _) => "; use `.as_end(..)`".to_owned(),
            (_, near) => hint(near),
        };
        Error::new(Code::UnknownTarget, format!("there is no node `{name}` to act as{hint}"))
    })
}
