//! Rows as answers show them.

use serde_json::Value;

/// Rows are made of texts, numbers and lists: their writing cannot fail.
pub(crate) fn row(row: &impl serde::Serialize) -> Value {
    serde_json::to_value(row).unwrap_or_default()
}

/// A row with more columns; those that it has already are replaced.
pub(crate) fn with<const N: usize>(mut base: Value, more: [(&str, Value); N]) -> Value {
    if let Some(object) = base.as_object_mut() {
        object.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    base
}
