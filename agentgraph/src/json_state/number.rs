//! Adding and comparing JSON values, for [`JsonReducer`](super::JsonReducer).

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The sum of two numbers. Whole numbers stay whole.
///
/// # Errors
/// If one is no number, or no JSON number of 64 bits can hold the sum.
pub(super) fn sum(value: &Value, more: &Value) -> Result<Value, String> {
    let Value::Number(value) = value else { return Err("it holds no number to add to".into()) };
    let Value::Number(more) = more else { return Err("only a number can be added to it".into()) };
    let sum = match (whole(value), whole(more)) {
        // Two numbers of 64 bits never exceed 128.
        (Some(value), Some(more)) => Number::from_i128(value + more),
        _ => value.as_f64().zip(more.as_f64()).and_then(|(value, more)| Number::from_f64(value + more)),
    };
    sum.map(Value::Number).ok_or_else(|| "the sum is more than a JSON number can hold".into())
}

/// The order of two numbers, or of two texts.
pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (whole(one), whole(other)) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
        },
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}
