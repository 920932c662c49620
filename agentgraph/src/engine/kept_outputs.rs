//! The last outputs of nodes, kept for temporary edits that skip these nodes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::engine::Loop;
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
pub(crate) struct KeptOutputs {
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
    pub(crate) fn of(core: &RunGraph, stored: BTreeMap<String, Bytes>) -> Self {
        let known = stored.into_iter().filter_map(|(name, Bytes(step))| {
            let node = *core.compiled().by_name.get(&*name)?;
            core.compiled().topology.exits(node).keeps_output.then_some((node, KeptOutput::Bytes(step)))
        });
        KeptOutputs { steps: known.collect(), changed: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.steps.keys().copied()
    }

    /// The outputs to be stored, by name: all of them, or the changed ones.
    pub(crate) fn to_store<'a>(&'a self, core: &'a RunGraph, all: bool) -> BTreeMap<&'a str, BytesOf<'a>> {
        let wanted = self.steps.iter().filter(|(node, _)| all || self.changed.contains(node));
        let stored = wanted.filter_map(|(node, kept)| match kept {
            KeptOutput::Bytes(step) => Some((core.compiled().name(*node), BytesOf(step))),
            KeptOutput::Live(_) => None,
        });
        stored.collect()
    }

    pub(crate) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(crate) fn is_stored(&mut self) {
        self.changed.clear();
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

impl Loop {
    pub(super) fn keep(&mut self, NewOutputs(keeps): NewOutputs) {
        for (node, kept) in keeps {
            if self.records.outputs.steps.insert(node, kept).is_none() {
                Arc::make_mut(&mut self.runtime.shared.lock_visible().kept).insert(node);
            }
            if !self.records.outputs.changed.contains(&node) {
                self.records.outputs.changed.push(node);
            }
        }
    }

    /// Whether a node is skipped, in which case a superstep of one task cannot take the short way.
    #[inline]
    pub(super) fn skips_some(&self) -> bool {
        self.position.graph.overlay().is_some_and(|overlay| !overlay.skips().is_empty())
    }

    /// The last output of a node.
    pub(super) fn output_of(&self, node: u32) -> Result<Option<TaskOutput>, Error> {
        let step = match (self.records.outputs.steps.get(&node), &self.records.journal) {
            (Some(KeptOutput::Live(step)), _) => step.to_step(),
            (Some(KeptOutput::Bytes(step)), Some(journal)) => {
                finished_step(&self.position.graph, journal.codec(), journal.thread(), step)?.0
            }
            _ => return Ok(None),
        };
        let done = resolve(&self.position.graph, node, step, Vec::new());
        done.map(Some).map_err(|error| error.at_node(self.position.graph.name(node)))
    }
}
