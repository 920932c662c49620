//! [`JsonFunctions`]: reducers by name, for channels that are read from a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::error::{BoxError, hint, nearest};

type Function = Arc<dyn Fn(&mut Value, Value) -> Result<(), BoxError> + Send + Sync>;

/// A function as a reducer, known by its name: two of one name are equal. Made by
/// [`JsonReducer::with`](super::JsonReducer::with), or read from a file, where only the name is.
#[derive(Clone)]
pub struct JsonFunction {
    name: Cow<'static, str>,
    call: Option<Function>,
}

impl JsonFunction {
    pub(super) fn new(
        name: Cow<'static, str>,
        function: impl Fn(&mut Value, Value) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        JsonFunction { name, call: Some(Arc::new(function)) }
    }

    /// A name without a function yet.
    pub(super) fn named(name: String) -> Self {
        JsonFunction { name: name.into(), call: None }
    }

    /// The name, which is part of the graph's fingerprint.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is a function for the name.
    pub fn is_known(&self) -> bool {
        self.call.is_some()
    }

    /// # Errors
    /// Those of the function, as text; and if there is none.
    pub(super) fn call(&self, value: &mut Value, write: Value) -> Result<(), String> {
        match &self.call {
            Some(call) => call(value, write).map_err(|error| error.to_string()),
            None => Err(format!("its reducer, the function `{}`, is not known", self.name)),
        }
    }
}

impl PartialEq for JsonFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for JsonFunction {}

impl Hash for JsonFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for JsonFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// Functions by name, for the channels of a file that are reduced `{"with": name}`.
///
/// ```
/// use agentgraph::json_state::{JsonChannels, JsonFunctions};
/// use serde_json::{Value, json};
///
/// fn longest(value: &mut Value, write: Value) -> agentgraph::Result<()> {
///     let text = write.as_str().ok_or("only a text can be the longest")?;
///     if text.len() > value.as_str().unwrap_or_default().len() {
///         *value = write;
///     }
///     Ok(())
/// }
///
/// let file = json!([{ "key": "title", "reducer": { "with": "longest" }, "initial": "" }]);
/// let channels: JsonChannels = serde_json::from_value(file).unwrap();
/// assert!(channels.clone().with_functions(&JsonFunctions::new()).is_err());
/// assert!(channels.with_functions(&JsonFunctions::new().with("longest", longest)).is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonFunctions(BTreeMap<String, JsonFunction>);

impl JsonFunctions {
    /// No functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function, or replaces the one with the same name; see
    /// [`JsonReducer::with`](super::JsonReducer::with).
    #[must_use]
    pub fn with(
        mut self,
        name: impl AsRef<str>,
        function: impl Fn(&mut Value, Value) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        let name = name.as_ref().to_owned();
        self.0.insert(name.clone(), JsonFunction::new(name.into(), function));
        self
    }

    pub(super) fn find(&self, key: &str, name: &str) -> Result<JsonFunction, UnknownFunction> {
        self.0.get(name).cloned().ok_or_else(|| UnknownFunction {
            key: key.to_owned(),
            name: name.to_owned(),
            nearest: nearest(name, self.0.keys().map(String::as_str)).map(str::to_owned),
        })
    }
}

/// A channel is reduced by a function that nobody registered.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "key `{key}` is reduced by the function `{name}`, which is not registered: add `.with(\"{name}\", ..)` to the \
     `JsonFunctions`{}", hint(.nearest.as_ref())
)]
#[non_exhaustive]
pub struct UnknownFunction {
    /// The key.
    pub key: String,
    /// The name of the function.
    pub name: String,
    /// The registered name that is nearest to it, if one is similar.
    pub nearest: Option<String>,
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl fmt::Debug for UnknownFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
