//! Recording a merge: the changes of the state for a checkpoint, and the updates themselves for the parent
//! graph.

use crate::engine::journal::Journal;
use crate::record::codec::Codec;
use crate::state::{Lifetime, State, StateError};
use agentgraph_checkpoint::delta::DeltaWriter;

/// The updates of a run whose sum is the result of a node in the parent graph.
pub(crate) struct Trace<S: State> {
    /// The updates of the current superstep, as one.
    step: Option<S::Update>,
    /// The updates before it that no record contains yet.
    unstored: Option<S::Update>,
    /// The sum of all updates before it.
    total: S::Update,
}

impl<S: State> Trace<S> {
    /// Continues after the updates traced in earlier calls.
    pub(crate) fn after(total: S::Update) -> Self {
        Trace { step: None, unstored: None, total }
    }

    fn add(&mut self, schema: &S::Schema, update: S::Update) -> Result<(), StateError> {
        S::compose(schema, self.step.get_or_insert_default(), update)
    }

    /// Ends a superstep, which may have merged nothing.
    pub(crate) fn close_step(&mut self, schema: &S::Schema) -> Result<(), StateError> {
        let Some(step) = self.step.take() else { return Ok(()) };
        add_step::<S>(schema, self.unstored.get_or_insert_default(), step.clone())?;
        add_step::<S>(schema, &mut self.total, step)
    }

    /// The updates that the next record must contain.
    pub(crate) fn take_unstored(
        &mut self,
        schema: &S::Schema,
        codec: &Codec<S>,
    ) -> Result<Option<Vec<u8>>, StateError> {
        self.unstored.take().map(|update| (codec.encode_update)(schema, &update)).transpose()
    }

    pub(crate) fn into_total(self) -> S::Update {
        self.total
    }
}

/// Adds the updates of one superstep to those before it. Ephemeral channels contain only the last superstep's
/// writes.
pub(crate) fn add_step<S: State>(
    schema: &S::Schema,
    total: &mut S::Update,
    step: S::Update,
) -> Result<(), StateError> {
    for (channel, _) in ephemeral::<S>(schema) {
        S::discard(schema, total, channel);
    }
    S::compose(schema, total, step)
}

fn ephemeral<S: State>(schema: &S::Schema) -> impl Iterator<Item = (usize, &crate::state::Channel)> {
    let channels = S::channels(schema).iter().enumerate();
    channels.filter(|(_, channel)| channel.lifetime == Lifetime::Ephemeral)
}

/// The destination of the updates that a merge applies.
pub(crate) enum Recorder<'a, S: State> {
    Nowhere,
    Delta(&'a Codec<S>, &'a mut DeltaWriter),
    Traced(Option<(&'a Codec<S>, &'a mut DeltaWriter)>, &'a mut Trace<S>),
}

impl<'a, S: State> Recorder<'a, S> {
    #[inline]
    pub(crate) fn of(journal: &'a mut Option<Journal<S>>, trace: &'a mut Option<Box<Trace<S>>>) -> Self {
        let delta = journal.as_mut().map(Journal::recorder);
        match (trace, delta) {
            (None, None) => Recorder::Nowhere,
            (None, Some((codec, delta))) => Recorder::Delta(codec, delta),
            (Some(trace), delta) => Recorder::Traced(delta, trace),
        }
    }

    #[inline]
    pub(crate) fn apply(
        &mut self,
        state: &mut S,
        schema: &S::Schema,
        update: S::Update,
    ) -> Result<(), StateError> {
        match self {
            Recorder::Nowhere => state.apply(schema, update),
            Recorder::Delta(codec, delta) => (codec.apply_recorded)(state, schema, update, delta),
            Recorder::Traced(delta, trace) => {
                trace.add(schema, update.clone())?;
                match delta {
                    None => state.apply(schema, update),
                    Some((codec, delta)) => (codec.apply_recorded)(state, schema, update, delta),
                }
            }
        }
    }
}
