//! Channels that do not live as long as their thread: run channels are reset when a run starts, ephemeral
//! channels contain only the writes of the last superstep.

use std::sync::Arc;

use crate::engine::journal::Journal;
use crate::error::Error;
use crate::graph::GraphCore;
use crate::state::{Lifetime, WriteKind};
use crate::typed::{AnyState, AnyUpdate};

pub(super) fn reset(
    core: &GraphCore,
    state: &mut AnyState,
    journal: &mut Option<Journal>,
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

/// The state to merge into, without the ephemeral values of the last superstep. `writes`: the tasks of this
/// superstep write ephemeral channels.
#[inline]
pub(super) fn begin_merge<'a>(
    core: &GraphCore,
    state: &'a mut Arc<AnyState>,
    journal: &mut Option<Journal>,
    ephemeral: &mut bool,
    writes: bool,
) -> Result<&'a mut AnyState, Error> {
    // Copies at most the box around the state. The first write clones the state itself, if a task still holds
    // it.
    let state = Arc::make_mut(state);
    if let Some(journal) = journal {
        journal.begin();
    }
    if core.has_ephemeral {
        forget_ephemeral(core, state, journal, ephemeral, writes)?;
    }
    Ok(state)
}

/// Resets ephemeral channels that the last superstep wrote.
fn forget_ephemeral(
    core: &GraphCore,
    state: &mut AnyState,
    journal: &mut Option<Journal>,
    written: &mut bool,
    writes: bool,
) -> Result<(), Error> {
    if std::mem::replace(written, writes) {
        reset(core, state, journal, Lifetime::Ephemeral)?;
    }
    Ok(())
}

pub(super) fn writes_ephemeral(core: &GraphCore, update: &AnyUpdate) -> bool {
    let channels = core.schema.channels();
    let mut found = false;
    core.schema.writes(update, &mut |channel, _: WriteKind| {
        found |= channels[channel].lifetime == Lifetime::Ephemeral;
    });
    found
}
