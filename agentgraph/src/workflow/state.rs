//! [`WorkflowState`]: the state of a workflow's thread, as the graph of one node has it.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::reduce::derived::{
    FieldsWriter, StoredChannel, channel, decode_fields, stored_channel, unknown_channel,
};
use crate::reduce::{Once, Slot};
use crate::state::{Channel, Lifetime, State, StateError, StoredState, WriteKind};
use crate::words::DoneStep;
use agentgraph_checkpoint::delta::DeltaWriter;

/// A type that a workflow can take or return.
pub trait WorkflowValue: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> WorkflowValue for T {}

/// The state of a workflow's thread. An `I` turns into the update that begins a run with it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowState<I, O> {
    input: Held<I>,
    returned: Held<O>,
    steps: Vec<DoneStep>,
}

impl<I, O> WorkflowState<I, O> {
    /// The input of the newest run.
    pub fn input(&self) -> Option<&I> {
        self.input.0.as_ref()
    }

    /// What the last finished run returned: in a run, the [`Previous`](super::Previous) value.
    pub fn returned(&self) -> Option<&O> {
        self.returned.0.as_ref()
    }

    /// [`returned`](Self::returned), by value.
    pub fn into_returned(self) -> Option<O> {
        self.returned.0
    }

    /// The durable steps of the newest run, in the order in which their results came; empty until it has
    /// finished.
    pub fn steps(&self) -> &[DoneStep] {
        &self.steps
    }
}

impl<I, O> Default for WorkflowState<I, O> {
    fn default() -> Self {
        WorkflowState { input: Held(None), returned: Held(None), steps: Vec::new() }
    }
}

/// A value that may be missing, stored as a list: serde stores `Some(())` and `Some(None)` as it stores
/// `None`.
#[derive(Clone, PartialEq)]
struct Held<T>(Option<T>);

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl<T: Serialize> Serialize for Held<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Held<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|mut list| Held(list.pop()))
    }
}

/// A change of a [`WorkflowState`].
#[derive(Clone)]
#[must_use = "an update does nothing until a graph applies it"]
pub struct WorkflowUpdate<I: WorkflowValue, O: WorkflowValue> {
    input: ValueSlot<I>,
    returned: ValueSlot<O>,
    steps: StepsSlot,
}

type ValueSlot<T> = Slot<Held<T>, Once>;
type StepsSlot = Slot<Vec<DoneStep>, Once>;

impl<I: WorkflowValue, O: WorkflowValue> WorkflowUpdate<I, O> {
    /// The end of a run.
    pub(super) fn returned(returned: O, steps: Vec<DoneStep>) -> Self {
        let mut update = WorkflowUpdate::default();
        update.returned.write(Held(Some(returned)));
        update.steps.write(steps);
        update
    }
}

impl<I: WorkflowValue, O: WorkflowValue> From<I> for WorkflowUpdate<I, O> {
    fn from(input: I) -> Self {
        let mut update = WorkflowUpdate::default();
        update.input.write(Held(Some(input)));
        update
    }
}

impl<I: WorkflowValue, O: WorkflowValue> Default for WorkflowUpdate<I, O> {
    fn default() -> Self {
        WorkflowUpdate { input: Slot::default(), returned: Slot::default(), steps: Slot::default() }
    }
}

/// Shows which channels it writes, and no values.
impl<I: WorkflowValue, O: WorkflowValue> fmt::Debug for WorkflowUpdate<I, O> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = out.debug_map();
        WorkflowState::writes(&(), self, &mut |channel, kind| {
            written.entry(&CHANNELS[channel].name, &kind);
        });
        written.finish()
    }
}

static CHANNELS: [Channel; 3] = [
    channel::<Held<()>, Once>("input", &[]).with_lifetime(Lifetime::Run),
    channel::<Held<()>, Once>("returned", &[]),
    channel::<Vec<DoneStep>, Once>("steps", &[]).with_lifetime(Lifetime::Run),
];

impl<I: WorkflowValue, O: WorkflowValue> State for WorkflowState<I, O> {
    type Schema = ();
    type Update = WorkflowUpdate<I, O>;

    fn channels(_: &()) -> &[Channel] {
        &CHANNELS
    }

    fn initial(_: &()) -> Self {
        WorkflowState::default()
    }

    fn apply(&mut self, _: &(), update: Self::Update) -> Result<(), StateError> {
        update.input.apply(&mut self.input);
        update.returned.apply(&mut self.returned);
        update.steps.apply(&mut self.steps);
        Ok(())
    }

    fn peek<R>(
        &mut self,
        _: &(),
        update: &mut Self::Update,
        look: impl FnOnce(&Self) -> R,
    ) -> Result<R, StateError> {
        let input = update.input.try_on(&mut self.input);
        let returned = update.returned.try_on(&mut self.returned);
        let steps = update.steps.try_on(&mut self.steps);
        let seen = look(self);
        update.steps.take_off(&mut self.steps, steps);
        update.returned.take_off(&mut self.returned, returned);
        update.input.take_off(&mut self.input, input);
        Ok(seen)
    }

    fn reset(&mut self, _: &(), lifetime: Lifetime) {
        if lifetime == Lifetime::Run {
            (self.input, self.steps) = (Held(None), Vec::new());
        }
    }

    fn writes(_: &(), update: &Self::Update, each: &mut dyn FnMut(usize, WriteKind)) {
        let kinds = [update.input.kind(), update.returned.kind(), update.steps.kind()];
        kinds.into_iter().enumerate().for_each(|(channel, kind)| {
            if let Some(kind) = kind {
                each(channel, kind);
            }
        });
    }

    fn discard(_: &(), update: &mut Self::Update, channel: usize) {
        match channel {
            0 => update.input.discard(),
            1 => update.returned.discard(),
            2 => update.steps.discard(),
            _ => {}
        }
    }

    fn compose(_: &(), update: &mut Self::Update, later: Self::Update) -> Result<(), StateError> {
        update.input.compose(later.input);
        update.returned.compose(later.returned);
        update.steps.compose(later.steps);
        Ok(())
    }
}

/// The channels as they are stored.
impl<I: WorkflowValue, O: WorkflowValue> WorkflowState<I, O> {
    const INPUT: StoredChannel<Held<I>, ValueSlot<I>> = stored_channel::<_, Once, _>("input");
    const RETURNED: StoredChannel<Held<O>, ValueSlot<O>> = stored_channel::<_, Once, _>("returned");
    const STEPS: StoredChannel<Vec<DoneStep>, StepsSlot> = stored_channel::<_, Once, _>("steps");
}

impl<I: WorkflowValue, O: WorkflowValue> StoredState for WorkflowState<I, O> {
    fn apply_recorded(
        &mut self,
        _: &(),
        update: Self::Update,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError> {
        Self::INPUT.apply(update.input, &mut self.input, delta.channel(0))?;
        Self::RETURNED.apply(update.returned, &mut self.returned, delta.channel(1))?;
        Self::STEPS.apply(update.steps, &mut self.steps, delta.channel(2))
    }

    fn record_channel(&self, _: &(), channel: usize, delta: &mut DeltaWriter) -> Result<(), StateError> {
        match channel {
            0 => Self::INPUT.record(&self.input, delta.channel(0)),
            1 => Self::RETURNED.record(&self.returned, delta.channel(1)),
            2 => Self::STEPS.record(&self.steps, delta.channel(2)),
            _ => Ok(()),
        }
    }

    fn restore_channel(&mut self, _: &(), channel: usize, value: &[u8]) -> Result<(), StateError> {
        match channel {
            0 => Self::INPUT.restore(&mut self.input, value),
            1 => Self::RETURNED.restore(&mut self.returned, value),
            2 => Self::STEPS.restore(&mut self.steps, value),
            _ => Ok(()),
        }
    }

    fn encode_update(_: &(), update: &Self::Update) -> Result<Vec<u8>, StateError> {
        let mut fields = FieldsWriter::default();
        Self::INPUT.encode(&update.input, &mut fields)?;
        Self::RETURNED.encode(&update.returned, &mut fields)?;
        Self::STEPS.encode(&update.steps, &mut fields)?;
        Ok(fields.finish())
    }

    fn decode_update(_: &(), bytes: &[u8]) -> Result<Self::Update, StateError> {
        let mut update = WorkflowUpdate::default();
        for (channel, write) in decode_fields(bytes)? {
            match channel {
                "input" => update.input = Self::INPUT.decode(write)?,
                "returned" => update.returned = Self::RETURNED.decode(write)?,
                "steps" => update.steps = Self::STEPS.decode(write)?,
                unknown => return Err(unknown_channel(unknown, &CHANNELS)),
            }
        }
        Ok(update)
    }
}
