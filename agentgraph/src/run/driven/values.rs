//! [`ValuesByName`]: a state as bytes, channel by channel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};
use crate::record::blob::Blob;
use crate::state::StoredState;
use agentgraph_checkpoint::CheckpointId;
use agentgraph_checkpoint::delta::DeltaWriter;
use agentgraph_checkpoint::fold::{Folded, Value};

/// The stored channels of a state, by name. A reader with other channels takes those that it knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ValuesByName(BTreeMap<String, Blob>);

impl ValuesByName {
    pub(super) fn of<S: StoredState>(schema: &S::Schema, state: &S) -> Result<Self, Error> {
        let channels = S::channels(schema);
        let mut delta = DeltaWriter::new(channels.len());
        delta.begin(CheckpointId::default());
        for (at, _) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
            state.record_channel(schema, at, &mut delta)?;
        }
        let mut folded = Folded::default();
        folded.apply(delta.bytes(), None).map_err(|error| unreadable(&error))?;
        let mut values = BTreeMap::new();
        for (at, channel) in channels.iter().enumerate() {
            if let Value::Bytes(value) = folded.value(at).map_err(|error| unreadable(&error))? {
                values.insert(channel.name.to_string(), Blob::from(value.into_owned()));
            }
        }
        Ok(ValuesByName(values))
    }

    pub(super) fn into_state<S: StoredState>(mut self, schema: &S::Schema) -> Result<S, Error> {
        let mut state = S::initial(schema);
        for (at, channel) in S::channels(schema).iter().enumerate().filter(|(_, channel)| channel.is_stored())
        {
            let mut names = std::iter::once(&*channel.name).chain(channel.aliases.iter().copied());
            if let Some(Blob(value)) = names.find_map(|name| self.0.remove(name)) {
                state.restore_channel(schema, at, &value)?;
            }
        }
        Ok(state)
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::Encode, format!("the state cannot be sent: {error}"))
}
