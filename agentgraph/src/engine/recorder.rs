//! Recording a merge: the changes of the state for a checkpoint, and the updates themselves for the parent
//! graph.

use crate::engine::journal::Journal;
use crate::record::codec::Codec;
use crate::state::{Lifetime, StateError};
use crate::typed::{AnySchema, AnyState, AnyUpdate};
use agentgraph_checkpoint::delta::DeltaWriter;

/// The updates of a run whose sum is the result of a node in the parent graph.
pub(super) struct Trace {
    /// The updates of the current superstep, as one.
    step: Option<AnyUpdate>,
    /// The updates before it that no record contains yet, if the run is stored.
    unstored: Option<AnyUpdate>,
    /// The sum of all updates before it.
    total: AnyUpdate,
    is_stored: bool,
}

impl Trace {
    /// Continues after the updates traced in earlier calls.
    pub(super) fn after(total: AnyUpdate, is_stored: bool) -> Self {
        Trace { step: None, unstored: None, total, is_stored }
    }

    fn add(&mut self, schema: &AnySchema, update: AnyUpdate) -> Result<(), StateError> {
        match &mut self.step {
            None => self.step = Some(update),
            Some(step) => schema.compose(step, update)?,
        }
        Ok(())
    }

    /// Ends a superstep, which may have merged nothing.
    pub(super) fn close_step(&mut self, schema: &AnySchema) -> Result<(), StateError> {
        let Some(step) = self.step.take() else { return Ok(()) };
        if self.is_stored {
            add_step(schema, self.unstored.get_or_insert_default(), step.clone())?;
        }
        add_step(schema, &mut self.total, step)
    }

    /// The updates that the next record must contain.
    pub(super) fn take_unstored(
        &mut self,
        schema: &AnySchema,
        codec: &Codec,
    ) -> Result<Option<Vec<u8>>, StateError> {
        self.unstored.take().map(|update| (codec.encode_update)(schema, &update)).transpose()
    }

    pub(super) fn into_total(self) -> AnyUpdate {
        self.total
    }
}

/// Adds the updates of one superstep to those before it. Ephemeral channels contain only the last superstep's
/// writes.
pub(crate) fn add_step(schema: &AnySchema, total: &mut AnyUpdate, step: AnyUpdate) -> Result<(), StateError> {
    for (channel, _) in ephemeral(schema) {
        schema.discard(total, channel);
    }
    schema.compose(total, step)
}

fn ephemeral(schema: &AnySchema) -> impl Iterator<Item = (usize, &crate::state::Channel)> {
    let channels = schema.channels().iter().enumerate();
    channels.filter(|(_, channel)| channel.lifetime == Lifetime::Ephemeral)
}

/// The destination of the updates that a merge applies.
pub(super) enum Recorder<'a> {
    Nowhere,
    Delta(&'a Codec, &'a mut DeltaWriter),
    Traced(Option<(&'a Codec, &'a mut DeltaWriter)>, &'a mut Trace),
}

impl<'a> Recorder<'a> {
    #[inline]
    pub(super) fn of(journal: &'a mut Option<Box<Journal>>, trace: &'a mut Option<Box<Trace>>) -> Self {
        let delta = journal.as_deref_mut().map(Journal::recorder);
        match (trace, delta) {
            (None, None) => Recorder::Nowhere,
            (None, Some((codec, delta))) => Recorder::Delta(codec, delta),
            (Some(trace), delta) => Recorder::Traced(delta, trace),
        }
    }

    #[inline]
    pub(super) fn apply(
        &mut self,
        state: &mut AnyState,
        schema: &AnySchema,
        update: AnyUpdate,
    ) -> Result<(), StateError> {
        match self {
            Recorder::Nowhere => schema.apply(state, update),
            Recorder::Delta(codec, delta) => (codec.apply_recorded)(state, schema, update, delta),
            Recorder::Traced(delta, trace) => {
                // The trace first: if the updates cannot be summed, nothing has been applied.
                trace.add(schema, update.clone())?;
                match delta {
                    None => schema.apply(state, update),
                    Some((codec, delta)) => (codec.apply_recorded)(state, schema, update, delta),
                }
            }
        }
    }
}
