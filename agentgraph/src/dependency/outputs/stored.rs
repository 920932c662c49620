//! Outputs as bytes: one channel per node, one for the input of the pass, and one for the report at its end.

use crate::dependency::outputs::{Output, PassInput};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::report::{Report, StoredReport};
use super::{OutputTable, Outputs, OutputsUpdate};
use crate::dependency::deps::Slot;
use crate::dependency::edits::Op;
use crate::reduce::derived::{decode_fields, encode_field, encode_fields};
use crate::state::{State, StateError, StoredState};
use crate::words::{EditError, GraphEdit, Rejection};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError, decode, encode};

/// The channel of a finished pass.
#[derive(Serialize)]
struct PassOut<'a, O> {
    over: bool,
    order: Vec<&'a str>,
    temporary: Vec<(&'a str, &'a O)>,
    edits: &'a [GraphEdit],
    report: StoredReport,
}

#[derive(Deserialize)]
struct PassIn<O> {
    over: bool,
    order: Vec<String>,
    temporary: Vec<(String, O)>,
    #[serde(default)]
    edits: Vec<GraphEdit>,
    report: StoredReport,
}

/// The channel of a pass's start.
#[derive(Serialize)]
struct BeginsOut<'a, S> {
    input: Option<&'a S>,
    edits: Vec<&'a GraphEdit>,
}

#[derive(Deserialize)]
struct BeginsIn<S> {
    input: Option<S>,
    edits: Vec<GraphEdit>,
}

impl<O, S> Outputs<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    /// Before a pass ends, its results are in the records of its tasks.
    fn pass(&self) -> PassOut<'_, O> {
        if !self.is_over {
            let report = StoredReport::from(&Report::default());
            return PassOut { over: false, order: Vec::new(), temporary: Vec::new(), edits: &[], report };
        }
        let nodes = self.table.nodes();
        let temporary = self.temporary.iter().zip(self.slots.iter().skip(nodes));
        PassOut {
            over: true,
            order: self.names().collect(),
            temporary: temporary.filter_map(|(name, slot)| Some((&**name, slot.value()?))).collect(),
            edits: &self.edits,
            report: StoredReport::from(&self.report),
        }
    }

    fn begins(&self) -> Result<BeginsOut<'_, S>, EncodeError> {
        let edits = self.before.iter().map(|op| match &op.edit {
            edit @ GraphEdit::AddNode { template: None, .. } => {
                Err(EncodeError::new(EditError::new(edit.clone(), Rejection::NeedsTemplate).to_string()))
            }
            edit => Ok(edit),
        });
        Ok(BeginsOut { input: self.input.as_deref(), edits: edits.collect::<Result<_, _>>()? })
    }

    fn restore_pass(&mut self, pass: PassIn<O>) {
        for (name, output) in pass.temporary {
            let node = self.add_temporary(name.into());
            self.slots[node as usize] = Slot::Own(output);
        }
        for name in pass.order {
            let at = self.temporary.iter().rposition(|known| **known == *name);
            let temporary = at.map(|at| (self.table.nodes() + at) as u32);
            if let Some(node) = temporary.or_else(|| self.table.0.names.id(&name)) {
                self.finish(node);
            }
        }
        self.report = pass.report.into();
        self.is_over = pass.over;
        if pass.over {
            self.edits = pass.edits;
        }
    }

    fn name_of_channel(&self, channel: usize) -> String {
        self.table.channels().get(channel).map_or_else(String::new, |channel| channel.name.to_string())
    }
}

impl<O, S> StoredState for Outputs<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    fn apply_recorded(
        &mut self,
        table: &OutputTable,
        update: OutputsUpdate<O, S>,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError> {
        for (name, output) in &update.outputs {
            if let Some(node) = table.0.names.id(name) {
                let set = delta.channel(node as usize).set(&**output);
                set.map_err(|error| unencodable(name, &error))?;
            }
        }
        let begins = update.begins.is_some();
        let reports = update.report.is_some();
        self.apply(table, update)?;
        if begins {
            self.record_channel(table, table.nodes(), delta)?;
        }
        if reports {
            self.record_channel(table, table.nodes() + 1, delta)?;
        }
        Ok(())
    }

    fn record_channel(
        &self,
        table: &OutputTable,
        channel: usize,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError> {
        let nodes = table.nodes();
        let delta = delta.channel(channel);
        let recorded = match channel {
            _ if channel == nodes => self.begins().and_then(|begins| delta.set(&begins)),
            _ if channel == nodes + 1 => delta.set(&self.pass()),
            _ => match self.slots.get(channel).and_then(Slot::value) {
                Some(output) => delta.set(output),
                None => Ok(()),
            },
        };
        recorded.map_err(|error| unencodable(&self.name_of_channel(channel), &error))
    }

    fn restore_channel(
        &mut self,
        table: &OutputTable,
        channel: usize,
        value: &[u8],
    ) -> Result<(), StateError> {
        let nodes = table.nodes();
        let restored = match channel {
            _ if channel == nodes => decode::<BeginsIn<S>>(value).map(|begins| {
                self.input = begins.input.map(Arc::new);
                self.set_before(begins.edits.into_iter().map(Op::from).collect());
            }),
            _ if channel == nodes + 1 => decode(value).map(|pass| self.restore_pass(pass)),
            _ => decode(value).map(|output| self.slots[channel] = Slot::Own(output)),
        };
        let name = || self.name_of_channel(channel);
        restored.map_err(|error| StateError::BadValue { channel: name(), problem: error.to_string() })
    }

    fn encode_update(_: &OutputTable, update: &OutputsUpdate<O, S>) -> Result<Vec<u8>, StateError> {
        let mut bytes = encode_fields(update.outputs.len());
        for (name, output) in &update.outputs {
            let mut encoded = Vec::new();
            encode(&mut encoded, &**output).map_err(|error| unencodable(name, &error))?;
            encode_field(&mut bytes, name, &encoded);
        }
        Ok(bytes)
    }

    fn decode_update(_: &OutputTable, bytes: &[u8]) -> Result<OutputsUpdate<O, S>, StateError> {
        let mut update = OutputsUpdate::default();
        for (name, output) in decode_fields(bytes)? {
            let output = decode(output)
                .map_err(|error| StateError::BadValue { channel: name.into(), problem: error.to_string() })?;
            update.outputs.push((name.into(), Arc::new(output)));
        }
        Ok(update)
    }
}

fn unencodable(channel: &str, error: &EncodeError) -> StateError {
    StateError::Encode { channel: channel.to_owned(), problem: error.to_string() }
}
