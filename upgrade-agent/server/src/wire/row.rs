//! Rows in the form of responses.

use serde_json::Value;

/// Rows consist of texts, numbers and lists, which can always be written.
pub(crate) fn row(row: &impl serde::Serialize) -> Value {
    serde_json::to_value(row).unwrap_or_default()
}

/// A row with additional columns; existing ones are replaced.
pub(crate) fn with<const N: usize>(mut base: Value, more: [(&str, Value); N]) -> Value {
    if let Some(object) = base.as_object_mut() {
        object.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    base
}
