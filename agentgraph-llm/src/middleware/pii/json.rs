//! Personal data in JSON. What is not replaced stays byte for byte, and the result is JSON.

use super::Rule;
use crate::error::Result;
use crate::json::RawJson;
use crate::message::ToolInput;

/// The arguments of a call without matches.
pub(super) fn clean_input(rule: &Rule, input: &ToolInput) -> Result<ToolInput> {
    match input {
        ToolInput::Json(json) => Ok(ToolInput::from_text(clean_json(rule, json.get())?)),
        ToolInput::Malformed(text) => {
            // An escaped character must not hide a match, also where no string ends.
            let plain = unescaped(text);
            let clean = rule.clean_text(&plain)?;
            Ok(ToolInput::Malformed(if clean == plain { text.clone() } else { clean }))
        }
    }
}

/// A text that may be JSON, such as the result of a tool.
pub(super) fn clean_text_or_json(rule: &Rule, text: &str) -> Result<String> {
    let is_json = text.trim_start().starts_with(['{', '[']) && RawJson::parse_text(text).is_ok();
    if is_json { clean_json(rule, text) } else { rule.clean_text(text) }
}

/// Valid JSON without matches: in strings and names after their escapes, and in numbers, which become
/// strings.
fn clean_json(rule: &Rule, json: &str) -> Result<String> {
    let mut clean = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(token_length(rest, first));
        match first {
            '"' => clean += &clean_string(rule, token)?,
            '-' | '0'..='9' => clean += &replaced(token, rule.clean_text(token)?, token),
            _ => clean += token,
        }
        rest = after;
    }
    Ok(clean)
}

fn token_length(rest: &str, first: char) -> usize {
    match first {
        '"' => string_length(rest),
        '-' | '0'..='9' => {
            let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '+' | '.');
            rest.find(|char| !is_part(char)).unwrap_or(rest.len())
        }
        other => other.len_utf8(),
    }
}

/// The length of a string with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn clean_string(rule: &Rule, token: &str) -> Result<String> {
    let plain = match serde_json::from_str::<String>(token) {
        Ok(plain) => plain,
        // Half of a surrogate pair, which is JSON and no text.
        Err(_) => unescaped(token.trim_matches('"')),
    };
    Ok(replaced(&plain, rule.clean_text(&plain)?, token))
}

/// The token, or the clean text as a string of JSON.
fn replaced(plain: &str, clean: String, token: &str) -> String {
    if plain == clean { token.to_owned() } else { serde_json::Value::from(clean).to_string() }
}

/// The text with the characters that its `\u` escapes name. Others stay.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        let (before, escape) = rest.split_at(at);
        plain += before;
        let named = escape.get(2..6).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let length = match named.and_then(char::from_u32) {
            Some(char) => {
                plain.push(char);
                6
            }
            None => {
                plain += "\\u";
                2
            }
        };
        rest = &escape[length..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::{PiiKind, PiiStrategy};
    use super::*;

    fn rule() -> Rule {
        Rule { kind: PiiKind::email(), strategy: PiiStrategy::Redact }
    }

    /// Every character of every string as an escape.
    fn escaped(value: &Value) -> String {
        match value {
            Value::String(text) => {
                let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                format!("\"{units}\"")
            }
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(escaped).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{}", json!(name), escaped(value)))
                    .collect();
                format!("{{{}}}", fields.join(" , "))
            }
            other => other.to_string(),
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![Just("ask ada@lovelace.org, \"now\"".to_owned()), "[a-z\"\\\\\u{1f980}]{0,5}"];
        let leaf = prop_oneof![
            text.prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    fn expected(value: &Value) -> Value {
        match value {
            Value::String(text) => text.replace("ada@lovelace.org", "[REDACTED_EMAIL]").into(),
            Value::Array(items) => items.iter().map(expected).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), expected(value))).collect()
            }
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn json_stays_json_however_its_strings_are_written(value in value()) {
            for text in [value.to_string(), escaped(&value)] {
                let clean = clean_json(&rule(), &text).unwrap();
                prop_assert_eq!(serde_json::from_str::<Value>(&clean).unwrap(), expected(&value));
                if expected(&value) == value {
                    prop_assert_eq!(clean, text, "nothing found, nothing changed");
                }
            }
        }
    }

    #[test]
    fn numbers_names_and_halves_of_characters_are_looked_at() {
        let card = Rule { kind: PiiKind::credit_card(), strategy: PiiStrategy::Mask };
        let clean = clean_json(&card, r#"{"card": 4111111111111111, "n":1e400}"#).unwrap();
        assert_eq!(clean, r#"{"card": "************1111", "n":1e400}"#);
        let clean = clean_json(&rule(), r#"{"a@b.org":"\ud83e","x":"\ud83e a\u0040b.org"}"#).unwrap();
        assert!(serde_json::value::RawValue::from_string(clean.clone()).is_ok(), "{clean}");
        assert!(
            clean.starts_with(r#"{"[REDACTED_EMAIL]":"\ud83e","x":"#) && !clean.contains("b.org"),
            "{clean}"
        );
    }

    #[test]
    fn arguments_that_were_cut_are_cleaned_as_text() {
        let cut = ToolInput::Malformed(r#"{"to": "a\u0040b.org", "te"#.to_owned());
        let clean = clean_input(&rule(), &cut).unwrap();
        assert_eq!(clean.text(), r#"{"to": "[REDACTED_EMAIL]", "te"#);
    }
}
