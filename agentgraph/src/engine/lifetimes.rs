//! Channels that do not live as long as their thread: run channels are reset when a run starts, ephemeral
//! channels contain only the writes of the last superstep.

use std::sync::Arc;

use crate::engine::journal::Journal;
use crate::engine::position::Position;
use crate::error::Error;
use crate::graph::GraphCore;
use crate::state::{Lifetime, WriteKind};
use crate::typed::{AnyState, AnyUpdate};

pub(super) fn reset(
    core: &GraphCore,
    state: &mut AnyState,
    journal: &mut Option<Box<Journal>>,
    lifetime: Lifetime,
) -> Result<(), Error> {
    core.schema.reset(state, lifetime);
    let Some(journal) = journal else { return Ok(()) };
    let channels = core.schema.channels().iter().enumerate();
    for (channel, _) in channels.filter(|(_, channel)| channel.lifetime == lifetime) {
        journal.record_channel(state, &core.schema, channel)?;
    }
    Ok(())
}

/// Opens the record of a merge, and resets the ephemeral channels that the last superstep wrote. `written`:
/// whether it wrote any, and afterwards whether one of `updates` does.
#[inline]
pub(super) fn begin_merge<'u>(
    position: &mut Position,
    journal: &mut Option<Box<Journal>>,
    written: &mut bool,
    updates: impl IntoIterator<Item = &'u AnyUpdate>,
) -> Result<(), Error> {
    if let Some(journal) = journal {
        journal.begin();
    }
    let core = &position.graph;
    if core.uses.ephemeral {
        let writes = updates.into_iter().any(|update| writes_ephemeral(core, update));
        if std::mem::replace(written, writes) {
            reset(core, Arc::make_mut(&mut position.state), journal, Lifetime::Ephemeral)?;
        }
    }
    Ok(())
}

fn writes_ephemeral(core: &GraphCore, update: &AnyUpdate) -> bool {
    let channels = core.schema.channels();
    let mut found = false;
    core.schema.writes(update, &mut |channel, _: WriteKind| {
        found |= channels[channel].lifetime == Lifetime::Ephemeral;
    });
    found
}
