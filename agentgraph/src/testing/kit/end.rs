//! [`End`]: how a run ended, in a form that can be compared.

use serde_json::Value;

use crate::error::Error;
use crate::record::codec::Codec;
use crate::record::content::Content;
use crate::state::StoredState;
use crate::words::{Outcome, quoted};

/// The channel with the order in which the nodes of a pass finished.
const PASS: &str = "__pass__";

/// A kind of end, and the stored channels of the last state.
#[derive(Clone)]
pub(super) struct End {
    kind: String,
    channels: Option<Content>,
    /// The names of secret channels, whose values no finding may show.
    secret: Vec<String>,
}

impl End {
    pub(super) fn of<S: StoredState>(schema: &S::Schema, ended: &Result<Outcome<S>, Error>) -> Self {
        let kind = match ended {
            Ok(Outcome::Finished { stuck, .. }) if stuck.is_empty() => "finished".to_owned(),
            Ok(Outcome::Finished { stuck, .. }) => format!("finished, and {} joins wait", stuck.len()),
            Ok(Outcome::Interrupted { interrupts, .. }) => {
                format!("waits at {}", quoted(interrupts.iter().map(|open| &open.node), ", "))
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
        End::with(schema, kind, state)
    }

    /// The end of a run that is known to have finished.
    pub(super) fn finished<S: StoredState>(schema: &S::Schema, state: &S) -> Self {
        End::with(schema, "finished".to_owned(), Some(state))
    }

    fn with<S: StoredState>(schema: &S::Schema, kind: String, state: Option<&S>) -> Self {
        let secret = S::channels(schema).iter().filter(|channel| channel.secret);
        let secret = secret.map(|channel| channel.name.to_string()).collect();
        End { kind, channels: state.map(|state| Codec::content_of::<S>(schema, state)), secret }
    }

    /// Why this end is another one than `expected`, and the channels that differ.
    pub(super) fn differs(&self, expected: &End) -> Option<(String, String)> {
        if self.kind != expected.kind {
            return Some((format!("the run {} instead of: {}", self.kind, expected.kind), String::new()));
        }
        let (own, others) = (self.channels.as_ref()?, expected.channels.as_ref()?);
        let mut differ = own.differing(others);
        differ.retain(|name| *name != PASS);
        let first = differ.first()?;
        let show = |content: &Content| match content.to_json(first) {
            None => "nothing".to_owned(),
            Some(_) if self.secret.contains(first) => "another secret".to_owned(),
            Some(value) => short(&value),
        };
        let problem = format!("`{first}` is {} at the end instead of {}", show(own), show(others));
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
