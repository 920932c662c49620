//! [`ValuesByName`]: a state as bytes, channel by channel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};
use crate::record::blob::Blob;
use crate::record::codec::Codec;
use crate::state::StoredState;
use crate::typed::{AnySchema, Seen};
use agentgraph_checkpoint::fold::{Folded, Value};

/// The stored channels of a state, by name. A reader with other channels takes those that it knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ValuesByName(BTreeMap<String, Blob>);

/// What writes and reads states of one type, channel by channel.
pub(super) struct StateForm {
    codec: Codec,
    schema: AnySchema,
}

impl StateForm {
    pub(super) fn new(codec: Codec, schema: AnySchema) -> Self {
        StateForm { codec, schema }
    }

    pub(super) fn of<S: StoredState>(schema: &S::Schema) -> Self {
        Self::new(Codec::of::<S>(0), AnySchema::new::<S>(schema.clone()))
    }

    pub(super) fn values(&self, state: Seen<'_>) -> Result<ValuesByName, Error> {
        let whole = self.codec.whole(&self.schema, state)?;
        let mut folded = Folded::default();
        folded.apply(whole.bytes(), None).map_err(|error| unreadable(&error))?;
        let mut values = BTreeMap::new();
        for (at, channel) in self.schema.channels().iter().enumerate() {
            if let Value::Bytes(value) = folded.value(at).map_err(|error| unreadable(&error))? {
                values.insert(channel.name.to_string(), Blob::from(value.into_owned()));
            }
        }
        Ok(ValuesByName(values))
    }

    /// The last state of a failed run. One that cannot be sent is left out: the error is what counts.
    pub(super) fn values_of_failed(&self, error: &Error) -> Option<ValuesByName> {
        let state = error.any_state().filter(|state| (**state).type_id() == self.schema.state_type().0)?;
        self.values(Seen::of_any(state)).ok()
    }

    pub(super) fn state<S: StoredState>(&self, ValuesByName(mut values): ValuesByName) -> Result<S, Error> {
        let mut state = self.schema.initial();
        for (at, channel) in self.schema.channels().iter().enumerate().filter(|(_, one)| one.is_stored()) {
            let mut names = std::iter::once(&*channel.name).chain(channel.aliases.iter().copied());
            if let Some(Blob(value)) = names.find_map(|name| values.remove(name)) {
                (self.codec.restore_channel)(&mut state, &self.schema, at, &value)?;
            }
        }
        Ok(state.into_state::<S>())
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::Encode, format!("the state cannot be sent: {error}"))
}
