//! Replaying the results that earlier calls left of a pass: the same edits in the same order, so the same
//! graph and the same queue. A call that continues a pass does this, and a reader of the pass too.

use std::collections::HashSet;
use std::sync::Arc;

use crate::dependency::edits::{Op, PassDesk, SettledEdits, Transaction};
use crate::dependency::outputs::{Outputs, OutputsUpdate};
use crate::dependency::plan::Status;
use crate::dependency::{Output, PassInput};
use crate::engine::left_over::{Leftovers, TaskRemains};
use crate::engine::load::{finished_step, graph_changed};
use crate::engine::pass::{Pass, nodes_added, outputs, outputs_mut};
use crate::engine::stored::{StoredStep, StoredTurn};
use crate::error::{Code, Error};
use crate::step::Step;
use crate::words::Interrupt;
use agentgraph_checkpoint::{Place, TaskId};

/// The turns of finished nodes, in their order.
///
/// # Errors
/// A record is damaged.
pub(super) fn turns(left: &Leftovers) -> Result<Vec<StoredTurn>, Error> {
    let results = left.values().filter_map(|left| left.result.as_deref());
    let turns = results.filter_map(|result| StoredStep::from_bytes(result).map(|step| step.turn).transpose());
    let mut turns = turns.collect::<Result<Vec<_>, _>>()?;
    turns.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(turns)
}

/// The replay of a pass.
pub(super) struct PassReplay<'a, O, S> {
    desk: &'a PassDesk<O, S>,
    thread: &'a str,
    /// The nodes that have asked and are not done.
    asked: &'a HashSet<String>,
    /// Names that the pass needs and the graph does not have.
    gone: Vec<String>,
}

impl<'a, O: Output, S: PassInput> PassReplay<'a, O, S> {
    pub(super) fn new(desk: &'a PassDesk<O, S>, thread: &'a str, asked: &'a HashSet<String>) -> Self {
        PassReplay { desk, thread, asked, gone: Vec::new() }
    }

    /// Applies the edits that were requested before the pass.
    pub(super) fn begin(&mut self, before: &[Op<O, S>]) -> SettledEdits {
        let made = self.desk.restore(Transaction { ops: before.to_vec() }, &mut self.gone);
        self.hold(self.asked.iter().map(String::as_str));
        made
    }

    /// Applies the edits of a finished node and returns its id; `None` if the graph does not have it.
    ///
    /// # Errors
    /// The node is finished already.
    pub(super) fn turn(&mut self, turn: &StoredTurn) -> Result<Option<(u32, SettledEdits)>, Error> {
        let Some(node) = self.find(&turn.node) else { return Ok(None) };
        self.check_is_not_done(node, &turn.node)?;
        let made = self.desk.restore(Transaction::of(turn.edits.clone()), &mut self.gone);
        self.hold(made.added.iter().map(|name| &**name).filter(|name| self.asked.contains(*name)));
        Ok(Some((node, made)))
    }

    /// The id of a node that has asked.
    ///
    /// # Errors
    /// The node is finished already.
    pub(super) fn asked(&mut self, name: &str) -> Result<Option<u32>, Error> {
        let Some(node) = self.find(name) else { return Ok(None) };
        self.check_is_not_done(node, name)?;
        Ok(Some(node))
    }

    /// # Errors
    /// The graph does not have all that the pass needs.
    pub(super) fn end(self) -> Result<(), Error> {
        if self.gone.is_empty() { Ok(()) } else { Err(graph_changed(Place::root(self.thread), self.gone)) }
    }

    /// Marks nodes that have asked as running, before the edits of other nodes are replayed: a node that has
    /// started is not edited any more until it ends.
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

impl<O: Output, S: PassInput> Pass<'_, O, S> {
    /// Applies the results of earlier calls.
    pub(super) fn go_through(&mut self) -> Result<(), Error> {
        let left_over = std::mem::take(&mut self.run.inheritance.left_over);
        self.run.note_failure_of(&left_over);
        let mut done = Vec::new();
        let mut open = Vec::new();
        for (task, left) in left_over {
            if let Some(result) = &left.result {
                let step = StoredStep::from_bytes(result);
                let step =
                    step.map_err(|error| error.on_thread(self.run.runtime.shared.thread.as_deref()))?;
                let turn = step.turn.ok_or_else(|| self.not_of_a_pass())?;
                done.push((turn, result.clone()));
            } else {
                self.earlier.had_error.extend(left.error.is_some().then_some(task));
                open.push((task, left));
            }
        }
        done.sort_by(|(a, _), (b, _)| a.order().cmp(&b.order()));
        let asked = open.iter().filter_map(|(_, left)| left.asked_by()).collect();
        let desk = Arc::clone(&self.desk);
        let thread = self.run.runtime.shared.thread.clone();
        let mut again = PassReplay::new(&desk, thread.as_deref().unwrap_or_default(), &asked);
        let made = again.begin(&outputs::<O, S>(&self.run.position.state).before);
        if !made.added.is_empty() {
            nodes_added(outputs_mut::<O, S>(&mut self.run.position.state), made.added);
        }
        for (turn, result) in done {
            let Some((node, made)) = again.turn(&turn)? else { continue };
            self.edited(made);
            if let Some(dropped) = turn.dropped {
                outputs_mut::<O, S>(&mut self.run.position.state).report.dropped.push(dropped.into());
            }
            self.ended.done = turn.place;
            let update = self.stored_update(&result)?;
            self.keep(node, update.and_then(|mut update| update.outputs.pop()).map(|(_, output)| output))?;
        }
        for (task, left) in open {
            let once = left.once();
            if !once.is_empty() {
                self.earlier.once.insert(task, once);
            }
            let Some((_, request)) = left.requests.first() else { continue };
            if let Some(node) = again.asked(&request.node)? {
                self.take_open(task, node, left);
            }
        }
        self.ended.asked.sort_by_key(|(node, _)| *node);
        again.end()
    }

    /// Takes over a task that has asked and is not done.
    fn take_open(&mut self, task: TaskId, node: u32, left: TaskRemains) {
        if left.waits() {
            let name = self.name(node).to_owned();
            let asked = left.asks().requests.into_iter();
            self.ended
                .asked
                .extend(asked.map(|request| (node, Interrupt::of_request(task, name.clone(), request))));
            return;
        }
        self.earlier.began_with.insert(node, self.sources_of(node, &left));
        self.earlier.answers.insert(node, left.asked());
        self.desk.pass().plan.start_again(node);
    }

    /// The sources that a node which has asked started with.
    fn sources_of(&self, node: u32, left: &TaskRemains) -> Vec<u32> {
        let mut sources = Vec::new();
        let stored = left.requests.first().and_then(|(_, request)| request.sources.as_ref());
        match stored {
            Some(names) => {
                sources.extend(names.iter().filter_map(|name| self.desk.find(name)));
                sources.retain(|source| self.desk.pass().plan.status(*source) == Status::Done);
            }
            None => self.desk.pass().plan.sources_that_are_done(node, &mut sources),
        }
        sources
    }

    fn stored_update(&self, result: &[u8]) -> Result<Option<OutputsUpdate<O, S>>, Error> {
        let Some(journal) = &self.run.records.journal else { return Ok(None) };
        match finished_step(&self.run.position.graph, journal.codec(), journal.thread(), result)?.0 {
            Step::Update(update) => Ok(Some(update.into_update::<Outputs<O, S>>())),
            _ => Ok(None),
        }
    }

    fn not_of_a_pass(&self) -> Error {
        let problem = "the thread has an unfinished run of a state graph: continue it with that graph, or give it up with `.abandon()`";
        Error::new(Code::GraphChanged, problem).on_thread(self.run.runtime.shared.thread.as_deref())
    }
}
