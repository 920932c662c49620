//! Tables as text, with a comma between fields.

/// A field of a table: quoted if it would be read as more than one, or lose its edges.
pub(crate) fn quoted(field: &str) -> String {
    let is_plain = !field.contains([',', '"', '\r', '\n']) && field.trim() == field;
    if is_plain { field.to_owned() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}
