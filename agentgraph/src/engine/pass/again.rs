//! Going through what earlier calls have left of a pass: the same edits in the same order, so the same graph
//! and the same queue. Whoever goes on with a pass does it, and whoever only looks at it.

use std::collections::HashSet;

use crate::dependency::edits::{Desk, Made, Op, Transaction};
use crate::dependency::plan::Status;
use crate::dependency::{Output, PassInput};
use crate::engine::load::graph_changed;
use crate::engine::plan::LeftOver;
use crate::engine::stored::{StoredStep, StoredTurn};
use crate::error::{Code, Error};
use agentgraph_checkpoint::Place;

/// What nodes are done, in their order.
///
/// # Errors
/// A record is damaged.
pub(super) fn turns(left: &LeftOver) -> Result<Vec<StoredTurn>, Error> {
    let results = left.values().filter_map(|left| left.result.as_deref());
    let turns = results.filter_map(|result| StoredStep::from_bytes(result).map(|step| step.turn).transpose());
    let mut turns = turns.collect::<Result<Vec<_>, _>>()?;
    turns.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(turns)
}

/// A pass that is gone through again.
pub(super) struct Again<'a, O, S> {
    desk: &'a Desk<O, S>,
    thread: &'a str,
    /// The nodes that have asked and are not done.
    asked: &'a HashSet<String>,
    /// What it needs and the graph does not have.
    gone: Vec<String>,
}

impl<'a, O: Output, S: PassInput> Again<'a, O, S> {
    pub(super) fn new(desk: &'a Desk<O, S>, thread: &'a str, asked: &'a HashSet<String>) -> Self {
        Again { desk, thread, asked, gone: Vec::new() }
    }

    /// Makes the edits that were said before the pass.
    pub(super) fn begin(&mut self, before: &[Op<O, S>]) -> Made {
        let made = self.desk.restore(Transaction { ops: before.to_vec() }, &mut self.gone);
        self.hold(self.asked.iter().map(String::as_str));
        made
    }

    /// Makes what a node has edited that is done, and says which one it is. `None`: the graph does not have
    /// it.
    ///
    /// # Errors
    /// It was done already.
    pub(super) fn turn(&mut self, turn: &StoredTurn) -> Result<Option<(u32, Made)>, Error> {
        let Some(node) = self.find(&turn.node) else { return Ok(None) };
        self.check_is_not_done(node, &turn.node)?;
        let made = self.desk.restore(Transaction::of(turn.edits.clone()), &mut self.gone);
        self.hold(made.added.iter().map(|name| &**name).filter(|name| self.asked.contains(*name)));
        Ok(Some((node, made)))
    }

    /// A node that has asked.
    ///
    /// # Errors
    /// It is done already.
    pub(super) fn asked(&mut self, name: &str) -> Result<Option<u32>, Error> {
        let Some(node) = self.find(name) else { return Ok(None) };
        self.check_is_not_done(node, name)?;
        Ok(Some(node))
    }

    /// # Errors
    /// The graph does not have all that the pass needs.
    pub(super) fn end(self) -> Result<(), Error> {
        match self.gone.is_empty() {
            true => Ok(()),
            false => Err(graph_changed(Place::root(self.thread), self.gone)),
        }
    }

    /// Lets nodes run that have asked, before what others have edited meanwhile is gone through: a node that
    /// has begun is not edited any more, until it ends.
    fn hold<'n>(&self, names: impl Iterator<Item = &'n str>) {
        for node in names.filter_map(|name| self.desk.find(name)) {
            self.desk.pass().plan.hold(node);
        }
    }

    fn find(&mut self, name: &str) -> Option<u32> {
        let found = self.desk.find(name);
        if found.is_none() {
            self.gone.push(format!("node `{name}`"));
        }
        found
    }

    fn check_is_not_done(&self, node: u32, name: &str) -> Result<(), Error> {
        if self.desk.pass().plan.status(node) != Status::Done {
            return Ok(());
        }
        let problem = format!("the records of an unfinished pass say twice that node `{name}` is done");
        Err(Error::new(Code::CorruptCheckpoint, problem).on_thread(Some(self.thread)))
    }
}
