//! The last outputs of nodes, kept for temporary edits that skip these nodes.

use std::collections::{BTreeMap, HashMap};

use crate::engine::journal::Journal;
use crate::engine::load::finished_step;
use crate::engine::records::Records;
use crate::engine::step_results::stored_step;
use crate::engine::task_output::{TaskOutput, resolve};
use crate::error::Error;
use crate::graph::run_graph::RunGraph;
use crate::record::bytes::{Bytes, BytesOf};
use crate::step::{Command, Dispatch, Goto, Step};
use crate::typed::{AnyState, AnyUpdate};

/// The last outputs of the nodes that keep them.
#[derive(Default)]
pub(super) struct KeptOutputs {
    steps: HashMap<u32, KeptOutput>,
    /// Outputs that the last checkpoint does not contain.
    changed: Vec<u32>,
}

enum KeptOutput {
    /// In a run without a store.
    Live(LiveStep),
    /// In its stored encoding.
    Bytes(Vec<u8>),
}

struct LiveStep {
    update: Option<AnyUpdate>,
    targets: Vec<Goto>,
    replaces_edges: bool,
}

impl KeptOutputs {
    /// Reads the outputs from a checkpoint, for the nodes that still keep their outputs.
    pub(super) fn of(core: &RunGraph, stored: BTreeMap<String, Bytes>) -> Self {
        if stored.is_empty() {
            return KeptOutputs::default();
        }
        let known = stored.into_iter().filter_map(|(name, Bytes(step))| {
            let node = core.compiled().names.id(&name)?;
            core.compiled().topology.exits(node).keeps_output.then_some((node, KeptOutput::Bytes(step)))
        });
        KeptOutputs { steps: known.collect(), changed: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.steps.keys().copied()
    }

    /// The outputs to be stored, by name: all of them, or the changed ones.
    pub(super) fn to_store<'a>(&'a self, core: &'a RunGraph, all: bool) -> BTreeMap<&'a str, BytesOf<'a>> {
        let wanted = self.steps.iter().filter(|(node, _)| all || self.changed.contains(node));
        let stored = wanted.filter_map(|(node, kept)| match kept {
            KeptOutput::Bytes(step) => Some((core.compiled().name(*node), BytesOf(step))),
            KeptOutput::Live(_) => None,
        });
        stored.collect()
    }

    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn is_stored(&mut self) {
        self.changed.clear();
    }

    /// Keeps the outputs of a merge that has succeeded. Returns the nodes that had none.
    pub(super) fn keep(&mut self, NewOutputs(keeps): NewOutputs) -> Vec<u32> {
        let mut new = Vec::new();
        for (node, kept) in keeps {
            if self.steps.insert(node, kept).is_none() {
                new.push(node);
            }
            if !self.changed.contains(&node) {
                self.changed.push(node);
            }
        }
        new
    }

    /// The last output of a node, if it is kept.
    pub(super) fn output_of(
        &self,
        graph: &RunGraph,
        journal: Option<&Journal>,
        node: u32,
    ) -> Result<Option<TaskOutput>, Error> {
        let step = match (self.steps.get(&node), journal) {
            (Some(KeptOutput::Live(step)), _) => step.to_step(),
            (Some(KeptOutput::Bytes(step)), Some(journal)) => {
                finished_step(graph, journal.codec(), journal.thread(), step)?.0
            }
            _ => return Ok(None),
        };
        let done = resolve(graph, node, step, Vec::new());
        done.map(Some).map_err(|error| error.at_node(graph.name(node)))
    }
}

impl LiveStep {
    fn of(core: &RunGraph, done: &TaskOutput) -> Self {
        let targets = done.targets().iter().map(|target| {
            let name = target.name(core).to_owned();
            match &target.input {
                None => Goto::Node(name.into()),
                Some(input) => Goto::Dispatch(Dispatch { node: name.into(), input: input.clone() }),
            }
        });
        LiveStep {
            update: done.update.clone(),
            targets: targets.collect(),
            replaces_edges: done.replaces_edges(),
        }
    }

    fn to_step(&self) -> Step<AnyState> {
        Step::Command(Box::new(Command {
            update: self.update.clone(),
            targets: self.targets.clone(),
            replaces_edges: self.replaces_edges,
            ..Command::new()
        }))
    }
}

/// Outputs that are kept once their merge has succeeded.
pub(super) struct NewOutputs(Vec<(u32, KeptOutput)>);

impl Records {
    /// Selects the results to be kept.
    pub(super) fn outputs_to_keep(
        &self,
        graph: &RunGraph,
        node_at: impl Fn(usize) -> u32,
        done: &[Option<TaskOutput>],
    ) -> Result<NewOutputs, Error> {
        let mut keeps = Vec::new();
        if !graph.uses.kept_outputs {
            return Ok(NewOutputs(keeps));
        }
        for (index, done) in done.iter().enumerate() {
            let node = node_at(index);
            let Some(done) = done.as_ref().filter(|_| graph.topology.exits(node).keeps_output) else {
                continue;
            };
            let kept = match &self.journal {
                None => KeptOutput::Live(LiveStep::of(graph, done)),
                Some(journal) => {
                    let step = stored_step(graph, journal.codec(), done, false);
                    let bytes = step.and_then(|step| step.to_bytes());
                    KeptOutput::Bytes(bytes.map_err(|error| error.at_node(graph.name(node)))?)
                }
            };
            keeps.push((node, kept));
        }
        Ok(NewOutputs(keeps))
    }
}
