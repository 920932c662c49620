//! Channels that do not live as long as their thread: run channels are reset when a run starts, ephemeral
//! channels contain only the writes of the last superstep.

use std::sync::Arc;

use crate::engine::journal::Journal;
use crate::error::Error;
use crate::graph::GraphCore;
use crate::state::{Lifetime, State, WriteKind};

pub(super) fn reset<S: State>(
    core: &GraphCore<S>,
    state: &mut S,
    journal: &mut Option<Journal<S>>,
    lifetime: Lifetime,
) -> Result<(), Error> {
    state.reset(&core.schema, lifetime);
    let Some(journal) = journal else { return Ok(()) };
    let channels = S::channels(&core.schema).iter().enumerate();
    for (channel, _) in channels.filter(|(_, channel)| channel.lifetime == lifetime) {
        journal.record_channel(state, &core.schema, channel)?;
    }
    Ok(())
}

/// The state to merge into, without the ephemeral values of the last superstep. `writes`: the tasks of this
/// superstep write ephemeral channels.
#[inline]
pub(super) fn begin_merge<'a, S: State>(
    core: &GraphCore<S>,
    state: &'a mut Arc<S>,
    journal: &mut Option<Journal<S>>,
    ephemeral: &mut bool,
    writes: bool,
) -> Result<&'a mut S, Error> {
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
fn forget_ephemeral<S: State>(
    core: &GraphCore<S>,
    state: &mut S,
    journal: &mut Option<Journal<S>>,
    written: &mut bool,
    writes: bool,
) -> Result<(), Error> {
    if std::mem::replace(written, writes) {
        reset(core, state, journal, Lifetime::Ephemeral)?;
    }
    Ok(())
}

pub(super) fn writes_ephemeral<S: State>(core: &GraphCore<S>, update: &S::Update) -> bool {
    let channels = S::channels(&core.schema);
    let mut found = false;
    S::writes(&core.schema, update, &mut |channel, _: WriteKind| {
        found |= channels[channel].lifetime == Lifetime::Ephemeral;
    });
    found
}
