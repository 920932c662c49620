//! Tolerant access to the fields of a JSON object.

use serde_json::Value;

use crate::client::model::Raw;

/// An object whose fields may be missing, `null` or of another type.
pub(super) struct Fields<'a>(pub(super) &'a Raw);

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    pub(super) fn get(&self, name: &str) -> &'a Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_str().map(str::to_owned)
    }

    pub(super) fn text_or_empty(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// A word of an open vocabulary, or its default.
    pub(super) fn word<T: for<'w> From<&'w str>>(&self, name: &str, otherwise: T) -> T {
        self.get(name).as_str().map_or(otherwise, T::from)
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.entries(name).filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// The entries of an array; empty if there is no array.
    pub(super) fn entries(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        self.get(name).as_array().into_iter().flatten()
    }

    /// Some databases return big counts as text.
    pub(super) fn count(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Number(number) => number.as_u64().unwrap_or(0),
            Value::String(text) => text.parse().unwrap_or(0),
            _ => 0,
        }
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => number.as_f64().unwrap_or(0.0),
            Value::String(text) => text.parse().unwrap_or(0.0),
            _ => 0.0,
        }
    }

    pub(super) fn integer(&self, name: &str) -> i64 {
        self.get(name).as_i64().unwrap_or(0)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or(false)
    }
}
