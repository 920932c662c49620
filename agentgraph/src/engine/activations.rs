//! [`Activations`]: the open activations of a run without supersteps, and the states that they read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::flow::order::Order;
use crate::engine::flow::{Flow, Key};
use crate::engine::journal::Journal;
use crate::error::Error;
use crate::graph::GraphCore;
use crate::record::bytes::Bytes;
use crate::record::header::StoredState;
use crate::typed::AnyState;
use agentgraph_checkpoint::engine::corrupt;
use agentgraph_checkpoint::fold::{Folded, Value};

/// The open activations of a run without supersteps, and the older states that they read.
#[derive(Default)]
pub(crate) struct Activations {
    pub(in crate::engine) flow: Flow,
    pub(in crate::engine) states: BTreeMap<Key, Arc<AnyState>>,
    /// The order in which an earlier run of the same steps merged.
    pub(in crate::engine) order: Option<Order>,
    /// Activations of skipped nodes that reuse the last output of their node, until they are merged.
    pub(in crate::engine) skipping: BTreeMap<Key, u32>,
}

impl Activations {
    /// Begins a branch at a checkpoint, in the given order if one is known.
    pub(super) fn fork(&mut self, order: Option<Order>) {
        self.flow.forget_left();
        self.order = order;
    }

    pub(super) fn of(flow: Flow) -> Box<Self> {
        Box::new(Activations { flow, ..Activations::default() })
    }

    /// Adds the states that open activations read and no checkpoint stores to the next record, which is the
    /// first record of a call that stored nothing before.
    pub(super) fn keep_states(&mut self, core: &GraphCore, journal: &Journal) -> Result<(), Error> {
        let Activations { flow, states, .. } = self;
        let id = journal.next_id();
        for (key, activation) in flow.open.iter_mut().filter(|(_, one)| one.read.is_none()) {
            if key.made == flow.at {
                activation.read = Some(id);
            } else if let Some(state) = states.get(key)
                && flow.kept.iter().all(|kept| kept.made != key.made)
            {
                flow.kept.push(kept_state(core, journal, key.made, state)?);
                flow.unsaved.kept = true;
            }
        }
        Ok(())
    }
}

fn kept_state(
    core: &GraphCore,
    journal: &Journal,
    made: u64,
    state: &AnyState,
) -> Result<StoredState, Error> {
    let written = journal.codec().whole(&core.schema, state.seen())?;
    let unreadable = |error| corrupt(journal.place(), journal.next_id(), error);
    let mut folded = Folded::default();
    folded.apply(written.bytes(), None).map_err(unreadable)?;
    let mut channels = Vec::new();
    for (at, channel) in core.schema.channels().iter().enumerate() {
        if let Value::Bytes(value) = folded.value(at).map_err(unreadable)? {
            channels.push((channel.name.clone().into_owned(), Bytes(value.into_owned())));
        }
    }
    Ok(StoredState { made, version: core.stored.migrations.version, channels })
}
