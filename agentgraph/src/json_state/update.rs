//! [`JsonUpdate`]: writes to some keys.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::JsonChannels;
use crate::state::{MASK, StateError, WriteKind};

/// Writes to some keys of a [`JsonState`](super::JsonState).
///
/// A program can look into it with [`writes`](JsonUpdate::writes) and [`to_value`](JsonUpdate::to_value). Its
/// `Debug` shows the keys and how they are written, but no values, since it does not know which keys are
/// secret; [`shown`](JsonUpdate::shown) does.
///
/// ```
/// use agentgraph::json_state::{JsonUpdate, JsonWrite};
/// use serde_json::json;
///
/// let update = JsonUpdate::new().set("n", 5).overwrite("log", json!([]));
/// let writes: Vec<_> = update.writes().collect();
/// assert_eq!(writes, [("n", JsonWrite::Set(&json!(5))), ("log", JsonWrite::Overwrite(&json!([])))]);
/// assert_eq!(update.to_value(), json!([{ "key": "n", "set": 5 }, { "key": "log", "overwrite": [] }]));
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct JsonUpdate {
    pub(super) writes: Vec<(String, WriteOf)>,
}

/// One write, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum WriteOf {
    Reduce(Value),
    Overwrite(Value),
    Remove(Vec<String>),
}

impl WriteOf {
    pub(super) fn kind(&self) -> WriteKind {
        match self {
            WriteOf::Reduce(_) | WriteOf::Remove(_) => WriteKind::Reduce,
            WriteOf::Overwrite(_) => WriteKind::Overwrite,
        }
    }
}

/// One write of a [`JsonUpdate`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum JsonWrite<'a> {
    /// A value for the key's reducer.
    Set(&'a Value),
    /// A value that replaces the key's.
    Overwrite(&'a Value),
    /// The ids of items to remove from a key with [`JsonReducer::ById`](super::JsonReducer::ById).
    Remove(&'a [String]),
}

impl JsonUpdate {
    /// An empty update.
    pub fn new() -> Self {
        Self::default()
    }

    /// A write to a key, through its reducer.
    #[must_use]
    pub fn set(mut self, key: impl AsRef<str>, value: impl Into<Value>) -> Self {
        self.writes.push((key.as_ref().to_owned(), WriteOf::Reduce(value.into())));
        self
    }

    /// A write of a typed value to a key, through its reducer.
    ///
    /// ```
    /// # use agentgraph::json_state::JsonUpdate;
    /// #[derive(serde::Serialize)]
    /// struct Plan {
    ///     steps: u8,
    /// }
    /// let update = JsonUpdate::new().set_as("plan", &Plan { steps: 3 }).unwrap();
    /// assert_eq!(update, JsonUpdate::new().set("plan", serde_json::json!({ "steps": 3 })));
    /// ```
    ///
    /// # Errors
    /// [`StateError::Encode`] if JSON cannot represent the value, such as a map whose keys are not texts.
    pub fn set_as<T: Serialize + ?Sized>(self, key: impl AsRef<str>, value: &T) -> Result<Self, StateError> {
        let key = key.as_ref().to_owned();
        match serde_json::to_value(value) {
            Ok(value) => Ok(self.set(key, value)),
            Err(error) => Err(StateError::Encode { channel: key, problem: error.to_string() }),
        }
    }

    /// Replaces the value of a key, and overrides every other write of the superstep.
    #[must_use]
    pub fn overwrite(mut self, key: impl AsRef<str>, value: impl Into<Value>) -> Self {
        self.writes.push((key.as_ref().to_owned(), WriteOf::Overwrite(value.into())));
        self
    }

    /// Removes the items with these ids, if there are any, from a key with
    /// [`JsonReducer::ById`](super::JsonReducer::ById).
    #[must_use]
    pub fn remove<I: AsRef<str>>(mut self, key: impl AsRef<str>, ids: impl IntoIterator<Item = I>) -> Self {
        self.writes.push((
            key.as_ref().to_owned(),
            WriteOf::Remove(ids.into_iter().map(|id| id.as_ref().to_owned()).collect()),
        ));
        self
    }

    /// The writes in order, each with its key. Values of secret keys are among them.
    pub fn writes(&self) -> impl Iterator<Item = (&str, JsonWrite<'_>)> {
        self.writes.iter().map(|(key, write)| (key.as_str(), JsonWrite::of(write)))
    }

    /// Whether the update writes nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The writes as JSON: an array of objects with a `key`, and `set`, `overwrite` or `remove`. Values of
    /// secret keys are among them.
    pub fn to_value(&self) -> Value {
        let writes = self.writes().map(|(key, write)| match write {
            JsonWrite::Set(value) => json!({ "key": key, "set": value }),
            JsonWrite::Overwrite(value) => json!({ "key": key, "overwrite": value }),
            JsonWrite::Remove(ids) => json!({ "key": key, "remove": ids }),
        });
        Value::Array(writes.collect())
    }

    /// The update with its values, for `{:?}`. Those of secret keys, and of keys that the channels do not
    /// have, are masked.
    ///
    /// ```
    /// use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate};
    /// use agentgraph::state::Lifetime;
    /// use serde_json::json;
    ///
    /// let channels = JsonChannels::new()
    ///     .channel("n", json!(0), JsonReducer::Sum)
    ///     .secret("token", json!(null), JsonReducer::Once, Lifetime::Run);
    /// let update = JsonUpdate::new().set("n", 2).set("token", "s3cret");
    /// assert_eq!(format!("{:?}", update.shown(&channels)), r#"{"n": set 2, "token": set [secret]}"#);
    /// assert_eq!(format!("{update:?}"), r#"{"n": set .., "token": set ..}"#);
    /// ```
    pub fn shown<'a>(&'a self, channels: &'a JsonChannels) -> impl fmt::Debug + 'a {
        Shown { update: self, channels }
    }
}

impl<'a> JsonWrite<'a> {
    fn of(write: &'a WriteOf) -> Self {
        match write {
            WriteOf::Reduce(value) => JsonWrite::Set(value),
            WriteOf::Overwrite(value) => JsonWrite::Overwrite(value),
            WriteOf::Remove(ids) => JsonWrite::Remove(ids),
        }
    }
}

impl fmt::Debug for JsonUpdate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes = self.writes().map(|(key, write)| (key, ShownWrite { write, instead: Some("..") }));
        out.debug_map().entries(writes).finish()
    }
}

struct Shown<'a> {
    update: &'a JsonUpdate,
    channels: &'a JsonChannels,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes = self.update.writes().map(|(key, write)| {
            let instead = if self.channels.shows(key) { None } else { Some(MASK) };
            (key, ShownWrite { write, instead })
        });
        out.debug_map().entries(writes).finish()
    }
}

/// A write with its value, or with something in its place.
struct ShownWrite<'a> {
    write: JsonWrite<'a>,
    instead: Option<&'static str>,
}

impl fmt::Debug for ShownWrite<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, value) = match self.write {
            JsonWrite::Set(value) => ("set", Cow::Borrowed(value)),
            JsonWrite::Overwrite(value) => ("overwrite", Cow::Borrowed(value)),
            JsonWrite::Remove(ids) => ("remove", Cow::Owned(Value::from(ids))),
        };
        match self.instead {
            Some(instead) => write!(out, "{word} {instead}"),
            None => write!(out, "{word} {value}"),
        }
    }
}

/// The entries of an object as writes. Any other JSON value is an error.
impl TryFrom<Value> for JsonUpdate {
    type Error = StateError;
    fn try_from(value: Value) -> Result<Self, StateError> {
        match value {
            Value::Object(entries) => {
                let writes = entries.into_iter().map(|(key, value)| (key, WriteOf::Reduce(value)));
                Ok(JsonUpdate { writes: writes.collect() })
            }
            _ => Err(StateError::BadValue {
                channel: "*".into(),
                problem: "an update is a JSON object".into(),
            }),
        }
    }
}
