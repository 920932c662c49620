//! [`End`]: how a run ended, in a form that can be compared.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::Error;
use crate::state::StoredState;
use crate::words::Outcome;
use agentgraph_checkpoint::CheckpointId;
use agentgraph_checkpoint::delta::{DeltaWriter, decode};
use agentgraph_checkpoint::fold::{self, Folded};

/// The channel with the order in which the nodes of a pass finished.
const PASS: &str = "__pass__";

/// A kind of end, and the stored channels of the last state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    kind: String,
    channels: BTreeMap<String, Value>,
}

impl End {
    pub(super) fn of<S: StoredState>(schema: &S::Schema, ended: &Result<Outcome<S>, Error>) -> Self {
        let kind = match ended {
            Ok(Outcome::Finished { stuck, .. }) if stuck.is_empty() => "finished".to_owned(),
            Ok(Outcome::Finished { stuck, .. }) => format!("finished, and {} joins wait", stuck.len()),
            Ok(Outcome::Interrupted { interrupts, .. }) => {
                let nodes: Vec<_> = interrupts.iter().map(|open| format!("`{}`", open.node)).collect();
                format!("waits at {}", nodes.join(", "))
            }
            Ok(Outcome::Stopped { reason, .. }) => format!("stopped: {reason}"),
            Err(error) => match error.node() {
                Some(node) => format!("failed at `{node}` with {}", error.code()),
                None => format!("failed with {}", error.code()),
            },
        };
        let state = match ended {
            Ok(outcome) => Some(outcome.output()),
            Err(error) => error.state::<S>(),
        };
        let mut channels = state.map(|state| shown(schema, state)).unwrap_or_default();
        channels.remove(PASS);
        End { kind, channels }
    }

    /// The end of a run that is known to have finished.
    pub(super) fn finished<S: StoredState>(schema: &S::Schema, state: &S) -> Self {
        let mut channels = shown(schema, state);
        channels.remove(PASS);
        End { kind: "finished".to_owned(), channels }
    }

    /// Why this end is another one than `expected`, and the channels that differ.
    pub(super) fn differs(&self, expected: &End) -> Option<(String, String)> {
        let names = self.channels.keys().chain(expected.channels.keys());
        let mut differ: Vec<&str> = names.map(String::as_str).collect();
        differ.sort_unstable();
        differ.dedup();
        differ.retain(|name| self.channels.get(*name) != expected.channels.get(*name));
        if self.kind != expected.kind {
            return Some((format!("the run {} instead of: {}", self.kind, expected.kind), String::new()));
        }
        let first = *differ.first()?;
        let show = |end: &End| end.channels.get(first).map_or("nothing".to_owned(), short);
        let problem = format!("`{first}` is {} at the end instead of {}", show(self), show(expected));
        Some((problem, differ.join(", ")))
    }
}

fn short(value: &Value) -> String {
    const SHOWN: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((at, _)) => format!("{}..", &text[..at]),
    }
}

/// The stored channels of a state, for comparison only: secret ones are among them. Maps are compared by
/// content; what JSON cannot hold is compared by its bytes.
pub(super) fn shown<S: StoredState>(schema: &S::Schema, state: &S) -> BTreeMap<String, Value> {
    let channels = S::channels(schema);
    let mut delta = DeltaWriter::new(channels.len());
    delta.begin(CheckpointId::default());
    for (at, _) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
        if state.record_channel(schema, at, &mut delta).is_err() {
            return BTreeMap::new();
        }
    }
    let mut folded = Folded::default();
    if folded.apply(delta.bytes(), None).is_err() {
        return BTreeMap::new();
    }
    let value = |(at, channel): (usize, &crate::state::Channel)| {
        let Ok(fold::Value::Bytes(bytes)) = folded.value(at) else { return None };
        let value = decode::<Value>(&bytes).unwrap_or_else(|_| Value::from(bytes.to_vec()));
        let value = if channel.secret { Value::from(digest(&value)) } else { value };
        Some((channel.name.to_string(), value))
    };
    channels.iter().enumerate().filter_map(value).collect()
}

/// Stands for a secret value, which no finding may show.
fn digest(value: &Value) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
