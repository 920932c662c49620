//! Reads the fields of a body, and finds values that no database can store.

use serde_json::Value;

use super::calendar;
use super::fault::Fault;

/// The entries of a field; none if it is not an array.
pub(crate) fn entries<'b>(body: &'b Value, field: &str) -> impl Iterator<Item = &'b Value> {
    body.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// A field that is a text.
pub(crate) fn text(body: &Value, field: &str) -> Option<String> {
    body[field].as_str().map(str::to_owned)
}

/// A time in the database's format. One that cannot be read stays unchanged.
pub(crate) fn time(body: &Value, field: &str) -> Option<String> {
    text(body, field).map(|given| calendar::instant(&given).unwrap_or(given))
}

/// The texts in a field.
pub(crate) fn texts(body: &Value, field: &str) -> Vec<String> {
    entries(body, field).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The values that no column of the original's database can store.
pub(crate) fn check_texts(body: &Value) -> Result<(), Fault> {
    if holds_nul(body) {
        return Err(Fault::database("invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    Ok(())
}

/// Whether a text contains a NUL, which the database cannot store.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(entries) => entries.iter().any(holds_nul),
        Value::Object(fields) => fields.values().any(holds_nul),
        _ => false,
    }
}
