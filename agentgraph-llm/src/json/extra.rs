//! Unknown fields of an object, kept in order.

use serde::{Deserialize, Serialize};

use super::RawJson;

/// The fields of an object that this crate does not know, in order, such as `citations` of a text or `caller`
/// of a tool call. They are sent back to the provider after the known fields.
///
/// ```
/// use agentgraph_llm::{Message, Extra};
/// use serde_json::json;
///
/// let extra = Extra::new().with("cache_control", json!({"type": "ephemeral"}));
/// assert_eq!(extra.get("cache_control").unwrap().get(), r#"{"type":"ephemeral"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Extra(pub(super) Vec<(String, RawJson)>);

impl Extra {
    /// No fields.
    pub const fn new() -> Self {
        Extra(Vec::new())
    }

    /// Adds a field; a field of that name is replaced in its place.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.insert(name, value);
        self
    }

    /// Sets a field; a field of that name is replaced in its place.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<RawJson>) {
        let name = name.into();
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}
