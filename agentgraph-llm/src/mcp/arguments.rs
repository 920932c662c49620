//! The arguments of a call in the form that `rmcp` takes.
//!
//! `rmcp` takes a parsed object, which has each name once and numbers of 64 bits, and has no way for the text
//! itself. Arguments that would not arrive as they were written are refused, so that the model can write them
//! in another way.

use rmcp::model::JsonObject;
use serde_json::value::RawValue;
use serde_json::{Number, from_str};

use crate::json::RawJson;
use crate::tool::ToolError;
use crate::tool_macro::pairs;

/// The arguments, if nothing is lost.
pub(super) fn object(input: &RawJson) -> Result<JsonObject, ToolError> {
    let object = input.parse().map_err(ToolError::invalid_arguments)?;
    check(input.get()).map_err(ToolError::invalid_arguments)?;
    Ok(object)
}

/// Checks that a value which parses is the same afterwards.
fn check(text: &str) -> Result<(), String> {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => check_object(text),
        Some(b'[') => {
            let items: Vec<&RawValue> = from_str(text).map_err(|error| error.to_string())?;
            items.iter().try_for_each(|item| check(item.get()))
        }
        Some(b'-' | b'0'..=b'9') => check_number(text.trim()),
        _ => Ok(()),
    }
}

fn check_object(text: &str) -> Result<(), String> {
    let mut pairs = pairs(text).map_err(|error| error.to_string())?;
    pairs.iter().try_for_each(|(_, value)| check(value.get()))?;
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    match pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(format!("`{}` is given twice", pair[0].0)),
        None => Ok(()),
    }
}

fn check_number(text: &str) -> Result<(), String> {
    let sent: Number = from_str(text).map_err(|error| error.to_string())?;
    let sent = sent.to_string();
    if Decimal::of(text).is_some_and(|exact| Some(exact) == Decimal::of(&sent)) {
        return Ok(());
    }
    Err(format!(
        "the number {text} would arrive as {sent}: write a shorter one, or a text if the tool takes one"
    ))
}

/// A number as it is written: its digits without zeros at the ends, and the power of ten of the last one.
#[derive(PartialEq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let text = text.trim_start_matches('-');
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Decimal { is_negative, digits, exponent: 0 });
        }
        let zeros = all.len() - all.trim_end_matches('0').len();
        let exponent = exponent.parse::<i64>().ok()?;
        let exponent = exponent.checked_add(i64::try_from(zeros).ok()?)?;
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        Some(Decimal { is_negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_accepted_arrives_as_it_was(whole in "-?(0|[1-9][0-9]{0,24})", rest in "(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?") {
            let text = format!("{whole}{rest}");
            let sent: serde_json::Value = from_str(&text).unwrap();
            let is_kept = check_number(&text).is_ok();
            // Both as a whole number of the smallest unit that occurs, by long arithmetic on text.
            prop_assert_eq!(is_kept, shifted(&text) == shifted(&sent.to_string()));
        }

        #[test]
        fn numbers_of_64_bits_are_accepted(integer: i64, natural: u64, float in proptest::num::f64::NORMAL) {
            for text in [integer.to_string(), natural.to_string(), serde_json::json!(float).to_string()] {
                prop_assert!(check_number(&text).is_ok(), "{}", text);
            }
        }
    }

    /// The sign and the number times 10^200, without zeros at the front.
    fn shifted(text: &str) -> (bool, String) {
        let (is_negative, text) = (text.starts_with('-'), text.trim_start_matches('-').to_lowercase());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let zeros = 200 + exponent.parse::<i64>().unwrap() - fraction.len() as i64;
        let number = format!("{whole}{fraction}{}", "0".repeat(zeros as usize));
        (is_negative, number.trim_start_matches('0').to_owned())
    }
}
