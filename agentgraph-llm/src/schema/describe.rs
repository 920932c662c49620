//! Rules that a provider does not enforce, as a sentence of the description.

use serde_json::{Map, Value};

/// Adds the rules to the description of a schema.
pub(super) fn describe(schema: &mut Map<String, Value>, rules: &[String]) {
    if rules.is_empty() {
        return;
    }
    let rules = format!("({})", rules.join(", "));
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(description) if !description.is_empty() => format!("{description}\n\n{rules}"),
        _ => rules,
    };
    schema.insert("description".to_owned(), Value::String(text));
}

/// A keyword and its value as text, such as `minLength: 3`.
pub(super) fn rule_text(keyword: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{keyword}: {text}"),
        value => format!("{keyword}: {value}"),
    }
}
