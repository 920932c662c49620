//! Edits that are made before a pass starts.

use std::fmt;

use serde::Serialize;

use super::Op;
use crate::dependency::node::IntoDependencyNode;
use crate::words::{EditError, GraphEdit};

/// The edits before a pass, as one transaction; see
/// [`RunBuilder::for_this_pass`](crate::RunBuilder::for_this_pass). They are checked when the call reads its
/// thread: an impossible edit fails the call before anything runs.
pub struct BeforePass<O, S = ()> {
    pub(crate) ops: Result<Vec<Op<O, S>>, EditError>,
}

impl<O, S> BeforePass<O, S> {
    pub(crate) fn new() -> Self {
        BeforePass { ops: Ok(Vec::new()) }
    }

    /// See [`PassEdits::add_fn`](crate::dependency::PassEdits::add_fn).
    pub fn add_fn<M>(&mut self, name: impl AsRef<str>, node: impl IntoDependencyNode<O, S, M>) -> &mut Self {
        let edit = GraphEdit::of_function(name);
        self.note(Ok(Op { edit, node: Some(node.into_node()), moot: false }))
    }

    /// See [`Edits::add_node`](crate::edit::Edits::add_node).
    pub fn add_node(
        &mut self,
        name: impl AsRef<str>,
        template: impl AsRef<str>,
        args: impl Serialize,
    ) -> &mut Self {
        self.note(GraphEdit::of_template(name, template, args).map(Op::from))
    }

    /// See [`Edits::add_edge`](crate::edit::Edits::add_edge).
    pub fn add_edge(&mut self, from: impl AsRef<str>, to: impl AsRef<str>) -> &mut Self {
        self.edit(GraphEdit::AddEdge { from: from.as_ref().into(), to: to.as_ref().into() })
    }

    /// See [`Edits::prepend_edge`](crate::edit::Edits::prepend_edge).
    pub fn prepend_edge(&mut self, from: impl AsRef<str>, to: impl AsRef<str>) -> &mut Self {
        self.edit(GraphEdit::PrependEdge { from: from.as_ref().into(), to: to.as_ref().into() })
    }

    /// See [`Edits::remove_edge`](crate::edit::Edits::remove_edge).
    pub fn remove_edge(&mut self, from: impl AsRef<str>, to: impl AsRef<str>) -> &mut Self {
        self.edit(GraphEdit::RemoveEdge { from: from.as_ref().into(), to: to.as_ref().into() })
    }

    /// See [`Edits::remove_node`](crate::edit::Edits::remove_node).
    pub fn remove_node(&mut self, name: impl AsRef<str>) -> &mut Self {
        self.edit(GraphEdit::RemoveNode { name: name.as_ref().into() })
    }

    /// See [`Edits::skip`](crate::edit::Edits::skip).
    pub fn skip<N: AsRef<str>>(&mut self, nodes: impl IntoIterator<Item = N>) -> &mut Self {
        self.edit(GraphEdit::Skip { nodes: nodes.into_iter().map(|node| node.as_ref().into()).collect() })
    }

    fn edit(&mut self, edit: GraphEdit) -> &mut Self {
        self.note(Ok(edit.into()))
    }

    fn note(&mut self, op: Result<Op<O, S>, EditError>) -> &mut Self {
        match (&mut self.ops, op) {
            (Ok(ops), Ok(op)) => ops.push(op),
            (ops @ Ok(_), Err(error)) => *ops = Err(error),
            (Err(_), _) => {}
        }
        self
    }
}

impl<O, S> fmt::Debug for BeforePass<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ops {
            Ok(ops) => out.debug_list().entries(ops.iter().map(|op| &op.edit)).finish(),
            Err(error) => error.fmt(out),
        }
    }
}
