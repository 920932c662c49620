//! [`JsonChannels`]: the keys of a state that are named at run time, in code or in a file.

mod form;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::functions::{JsonFunctions, UnknownFunction};
use super::reducer::JsonReducer;
use crate::reduce::derived::unknown_channel;
use crate::state::{Channel, Lifetime, StateError};

/// The keys of a [`JsonState`](super::JsonState), each with its initial value and its reducer. Cheap to
/// clone.
///
/// A file has them as an array of objects, which serde reads and writes: a `key`, its `reducer` (`"once"` if
/// it is left out), its `initial` value, its `lifetime` (`"thread"`, `"run"`, `"ephemeral"`, `"untracked"`)
/// and whether it is `secret`. An initial value that the reducer cannot begin with is a problem of
/// `compile()`.
///
/// ```
/// use agentgraph::json_state::JsonReducer;
/// use agentgraph::prelude::*;
/// use serde_json::json;
///
/// let file = r#"[
///     { "key": "question" },
///     { "key": "log", "reducer": "append" },
///     { "key": "cost", "reducer": "sum", "initial": 0.5, "lifetime": "run" },
///     { "key": "tasks", "reducer": { "by_id": "name" } }
/// ]"#;
/// let channels: JsonChannels = serde_json::from_str(file).unwrap();
/// let state = JsonState::initial(&channels);
/// assert_eq!(state.to_value(), json!({ "question": null, "log": [], "cost": 0.5, "tasks": [] }));
///
/// let wrong = JsonChannels::new().channel("log", json!(""), JsonReducer::Append);
/// async fn note() {}
/// let graph = StateGraph::<JsonState>::with_schema(wrong).node("note", note).edge(START, "note").compile();
/// let problem = graph.err().unwrap().problems()[0].to_string();
/// assert!(problem.contains("`log`: the initial value is wrong: it is a text, and `append` needs an array, such as `[]`"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonChannels(Arc<ChannelTable>);

const NAMELESS: &str = "a key needs a name, and this one is empty";

/// One entry of each list for each key, in the order in which the keys were added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChannelTable {
    pub(super) channels: Vec<Channel>,
    pub(super) reducers: Vec<JsonReducer>,
    pub(super) initial: Vec<Value>,
    places: HashMap<String, usize>,
}

impl JsonChannels {
    /// A schema without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key, or replaces the one with the same name.
    #[must_use]
    pub fn channel(self, name: impl AsRef<str>, initial: Value, reducer: JsonReducer) -> Self {
        self.with_lifetime(name, initial, reducer, Lifetime::Thread)
    }

    /// Adds a key with a lifetime.
    #[must_use]
    pub fn with_lifetime(
        self,
        name: impl AsRef<str>,
        initial: Value,
        reducer: JsonReducer,
        lifetime: Lifetime,
    ) -> Self {
        self.add(name.as_ref().to_owned(), initial, reducer, lifetime, false)
    }

    /// Adds a key whose values are secret: stored encrypted or not at all, and not shown in streams or by
    /// `Debug`.
    #[must_use]
    pub fn secret(
        self,
        name: impl AsRef<str>,
        initial: Value,
        reducer: JsonReducer,
        lifetime: Lifetime,
    ) -> Self {
        self.add(name.as_ref().to_owned(), initial, reducer, lifetime, true)
    }

    /// Finds the functions of keys that were read from a file.
    ///
    /// # Errors
    /// [`UnknownFunction`] for the first key whose function is not among them.
    pub fn with_functions(mut self, functions: &JsonFunctions) -> Result<Self, UnknownFunction> {
        let ChannelTable { channels, reducers, .. } = Arc::make_mut(&mut self.0);
        for (channel, reducer) in channels.iter().zip(reducers) {
            if let JsonReducer::With(function) = reducer
                && !function.is_known()
            {
                *function = functions.find(&channel.name, function.name())?;
            }
        }
        Ok(self)
    }

    fn add(
        mut self,
        name: String,
        initial: Value,
        reducer: JsonReducer,
        lifetime: Lifetime,
        secret: bool,
    ) -> Self {
        let table = Arc::make_mut(&mut self.0);
        let channel = Channel {
            name: Cow::Owned(name.clone()),
            reducer: reducer.kind(),
            exclusive: reducer == JsonReducer::Once,
            lifetime,
            aliases: Cow::Borrowed(&[]),
            secret,
        };
        let next = table.channels.len();
        let at = *table.places.entry(name).or_insert(next);
        if at == next {
            table.channels.push(channel);
            table.reducers.push(reducer);
            table.initial.push(initial);
        } else {
            table.channels[at] = channel;
            table.reducers[at] = reducer;
            table.initial[at] = initial;
        }
        self
    }

    pub(super) fn place(&self, name: &str) -> Result<usize, StateError> {
        self.0.places.get(name).copied().ok_or_else(|| unknown_channel(name, &self.0.channels))
    }

    pub(super) fn name(&self, channel: usize) -> String {
        self.0.channels.get(channel).map_or_else(String::new, |channel| channel.name.to_string())
    }

    pub(super) fn table(&self) -> &ChannelTable {
        &self.0
    }

    /// Whether the key is known and not secret.
    pub(super) fn shows(&self, key: &str) -> bool {
        self.place(key).is_ok_and(|at| !self.0.channels[at].secret)
    }

    /// The keys without a name, those whose initial value their reducer cannot begin with, and those whose
    /// reducer is incomplete.
    pub(super) fn problems(&self) -> Vec<StateError> {
        let ChannelTable { channels, reducers, initial, .. } = &*self.0;
        let parts = channels.iter().zip(reducers.iter().zip(initial));
        let problems = parts.filter_map(|(channel, (reducer, initial))| {
            let nameless = channel.name.is_empty().then(|| NAMELESS.to_owned());
            let problem = nameless.or_else(|| reducer.problem(initial))?;
            Some(StateError::BadValue { channel: channel.name.to_string(), problem })
        });
        problems.collect()
    }
}
