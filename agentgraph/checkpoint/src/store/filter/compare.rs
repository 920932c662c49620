//! Equality and order of JSON values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two values are equal; numbers by their mathematical value.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_some_and(Ordering::is_eq),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let has_equal = |(name, a)| b.get(name).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(has_equal)
        }
        _ => a == b,
    }
}

/// The order of two numbers or two texts; `None` for all others.
pub(super) fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_to_fraction(a, b.as_f64()?),
        (None, Some(b)) => compare_to_fraction(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// The order of an integer of 64 bits and a float, without rounding the integer.
fn compare_to_fraction(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The conversion saturates far beyond 64 bits, so the order stays right.
    let whole = float.trunc() as i128;
    let rest = || 0.0.partial_cmp(&float.fract());
    match integer.cmp(&whole) {
        Ordering::Equal => rest(),
        decided => Some(decided),
    }
}
