//! Predicates on the shape of JSON values. `null` counts as absent.

use serde_json::Value;

/// Whether a field of an object satisfies a predicate; a missing field is `null`.
pub(crate) fn has(object: &Value, field: &str, test: impl Fn(&Value) -> bool) -> bool {
    test(object.get(field).unwrap_or(&Value::Null))
}

/// Accepts an absent value.
pub(crate) fn optional(test: impl Fn(&Value) -> bool) -> impl Fn(&Value) -> bool {
    move |value| value.is_null() || test(value)
}

/// Accepts arrays whose entries are all accepted.
pub(crate) fn each(test: impl Fn(&Value) -> bool) -> impl Fn(&Value) -> bool {
    move |value| value.as_array().is_some_and(|entries| entries.iter().all(&test))
}

/// Accepts one of these words.
pub(crate) fn one_of<'w>(words: &'w [&'w str]) -> impl Fn(&Value) -> bool + use<'w> {
    move |value| value.as_str().is_some_and(|word| words.contains(&word))
}

pub(crate) fn text(value: &Value) -> bool {
    value.is_string()
}

pub(crate) fn filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

pub(crate) fn flag(value: &Value) -> bool {
    value.is_boolean()
}

pub(crate) fn number(value: &Value) -> bool {
    value.is_number()
}

/// An integer in JavaScript's sense: `1.0` is one.
pub(super) fn integer(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// A date as `2027-01-31`, with or without a time.
pub(super) fn date(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        let part = text.get(range)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u32>().ok())?
    };
    let (Some(_), Some(month), Some(day)) = (digits(0..4), digits(5..7), digits(8..10)) else {
        return false;
    };
    let dashed = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let end = matches!(bytes.get(10), None | Some(b'T' | b't' | b' '));
    dashed && end && (1..=12).contains(&month) && (1..=31).contains(&day)
}
