//! The names and ids of nodes, and the collected problems.

use std::sync::Arc;

use crate::error::nearest;
use crate::graph::node_names::NodeNames;
use crate::graph::problem::{CompileError, Problem, ProblemKind};
use crate::graph::topology::END_ID;
use crate::graph::{CodePlace, DeclaredNode};
use crate::words::{END, START};

/// The problems of a graph that is compiled.
#[derive(Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    pub(crate) fn add(&mut self, kind: ProblemKind, place: CodePlace) {
        self.add_at(kind, Some(place));
    }

    pub(crate) fn add_at(&mut self, kind: ProblemKind, place: Option<CodePlace>) {
        self.list.push(Problem { kind, place });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems ordered by place, as in the code; those without a place come first.
    pub(crate) fn into_error(mut self) -> CompileError {
        self.list
            .sort_by_key(|problem| problem.place.map(|place| (place.file(), place.line(), place.column())));
        CompileError::new(self.list)
    }
}

#[derive(Default)]
pub(super) struct Names(pub(super) NodeNames);

impl Names {
    pub(super) fn start(&self) -> u32 {
        self.0.len() as u32
    }

    pub(super) fn name(&self, id: u32) -> &str {
        match self.0.get(id as usize) {
            Some(name) => name,
            None if id == END_ID => END,
            None => START,
        }
    }

    pub(super) fn node(&self, what: &'static str, name: &str) -> Result<u32, ProblemKind> {
        self.0.id(name).ok_or_else(|| ProblemKind::UnknownNode {
            what,
            name: name.to_owned(),
            nearest: nearest(name, self.0.iter().map(|known| &**known)).map(str::to_owned),
        })
    }

    pub(super) fn source(&self, what: &'static str, name: &str) -> Result<u32, ProblemKind> {
        match name {
            START => Ok(self.start()),
            END => Err(ProblemKind::OutOfEnd),
            _ => self.node(what, name),
        }
    }

    pub(super) fn target(&self, what: &'static str, name: &str) -> Result<u32, ProblemKind> {
        match name {
            START => Err(ProblemKind::IntoStart),
            END => Ok(END_ID),
            _ => self.node(what, name),
        }
    }
}

pub(super) fn check_nodes(nodes: &[DeclaredNode], problems: &mut Problems) -> Names {
    let mut names = Names::default();
    for node in nodes {
        let name: Arc<str> = Arc::from(&*node.name);
        if name.is_empty() || name.starts_with("__") {
            problems.add(ProblemKind::ReservedName { name: name.to_string() }, node.place);
        }
        let timeouts = node.node.settings.policies.timeouts;
        if [timeouts.run, timeouts.idle].into_iter().flatten().any(|limit| limit.is_zero()) {
            problems.add(ProblemKind::ZeroTimeout { node: name.to_string() }, node.place);
        }
        if names.0.id(&name).is_some() {
            problems.add(ProblemKind::DuplicateNode { name: name.to_string() }, node.place);
        }
        names.0.push(name);
    }
    names
}
