//! The version number of an experiment, and the times of its creation and update. A body with a different
//! value for one of these sets it.

use serde_json::Value;

use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::wire::row::row;
use crate::wire::{body, calendar};
use crate::world::model::{Columns, Stamp};

/// Columns that always have a value.
const NEVER_NULL: [&str; 5] = ["description", "backendVersion", "versionNumber", "createdAt", "updatedAt"];

/// The values that the original's database rejects.
pub(super) fn check(body: &Value) -> Result<(), Fault> {
    if let Some(column) = NEVER_NULL.iter().find(|column| body.get(**column).is_some_and(Value::is_null)) {
        return Err(Fault::null_column(column));
    }
    if let Some(given) = body.get("versionNumber")
        && number(given).is_none()
    {
        let shown = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
        return Err(Fault::database(format!("invalid input syntax for type integer: \"{shown}\"")));
    }
    let is_time = |column: &str| {
        body.get(column).is_none_or(|given| given.as_str().and_then(calendar::instant).is_some())
    };
    if !(is_time("createdAt") && is_time("updatedAt")) {
        let message = "invalid input syntax for type timestamp: \"0NaN-NaN-NaNTNaN:NaN:NaN.NaN+NaN:NaN\"";
        return Err(Fault::database(message));
    }
    Ok(())
}

/// The stamp of new columns. Up to 6.2 each update counts, from 6.3 on only one that changes something.
pub(super) fn stamp(dialect: Dialect, body: &Value, old: &Columns, new: &Columns, now: &str) -> Stamp {
    let was = &old.stamp;
    let made = instant(body, "createdAt").filter(|made| *made != was.created_at);
    let written = instant(body, "updatedAt").filter(|written| *written != was.updated_at);
    // The original never considers a text equal to the stored number.
    let is_other = |version: &i64| body["versionNumber"].is_string() || *version != was.version_number;
    let version = body.get("versionNumber").and_then(number).filter(is_other);
    let is_set = made.is_some() || written.is_some() || version.is_some();
    // The original considers two missing factors different.
    let unties = body.get("stratificationFactor").is_some();
    if dialect != Dialect::V62 && !is_set && !unties && row(old) == row(new) {
        return was.clone();
    }
    Stamp {
        created_at: made.unwrap_or_else(|| was.created_at.clone()),
        updated_at: written.unwrap_or_else(|| now.to_owned()),
        version_number: version.unwrap_or(was.version_number + 1),
    }
}

fn instant(body: &Value, column: &str) -> Option<String> {
    let given = body::text(body, column)?;
    Some(calendar::instant(&given).unwrap_or(given))
}

/// A number that fits the column; a text of digits is accepted.
fn number(given: &Value) -> Option<i64> {
    let number = match given {
        Value::String(digits) => digits.trim().parse().ok(),
        _ => given.as_i64(),
    };
    number.filter(|number| i32::try_from(*number).is_ok())
}
