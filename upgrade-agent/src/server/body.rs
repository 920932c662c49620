//! Bodies that passed their check, as rows: what create and update have in common.

use serde_json::{Number, Value};

use super::calendar;
use super::core::Core;
use super::fault::Fault;
use super::model::{Columns, Condition, Partition, Payload, Stamp};
use super::validate;
use crate::client::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, Dialect, ExperimentState, ExperimentType,
    FilterMode, PostExperimentRule,
};

/// What this server calls itself.
pub(crate) fn version(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V62 => "6.2.0",
        _ => "6.5.0",
    }
}

/// The checks that come after the shape: the context and the codes.
pub(crate) fn check(core: &Core, body: &Value) -> Result<(), Fault> {
    let context = body["context"][0].as_str().unwrap_or_default();
    if core.contexts.get(context).is_none() {
        return Err(Fault::unknown_context(context));
    }
    let codes = entries(body, "conditions").map(|entry| &entry["conditionCode"]);
    if codes.filter_map(Value::as_str).any(|code| code.eq_ignore_ascii_case("default")) {
        return Err(Fault::default_code());
    }
    Ok(())
}

/// What the original leaves to the columns of its database to refuse.
pub(crate) fn check_columns(body: &Value) -> Result<(), Fault> {
    check_texts(body)?;
    match body["revertTo"].as_str() {
        Some(id) if !validate::is_uuid(&body["revertTo"]) => {
            Err(Fault::database(format!("invalid input syntax for type uuid: \"{id}\"")))
        }
        _ => Ok(()),
    }
}

/// The database cannot store every text.
pub(crate) fn check_texts(body: &Value) -> Result<(), Fault> {
    if holds_nul(body) {
        return Err(Fault::database("invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    Ok(())
}

/// Whether a text somewhere holds the one letter that the database cannot store.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(entries) => entries.iter().any(holds_nul),
        Value::Object(fields) => fields.values().any(holds_nul),
        _ => false,
    }
}

pub(crate) fn entries<'b>(body: &'b Value, field: &str) -> impl Iterator<Item = &'b Value> {
    body.get(field).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn text(body: &Value, field: &str) -> Option<String> {
    body[field].as_str().map(str::to_owned)
}

/// A time as it is given back. One that only the validator knows how to read stays as it is.
pub(crate) fn time(body: &Value, field: &str) -> Option<String> {
    text(body, field).map(|given| calendar::instant(&given).unwrap_or(given))
}

fn texts(body: &Value, field: &str) -> Vec<String> {
    entries(body, field).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The columns that a body gives. The state is taken by its stored name, whichever it gave.
pub(crate) fn columns(dialect: Dialect, body: &Value, id: String, stamp: Stamp) -> Columns {
    let word = |field: &str| body[field].as_str().unwrap_or_default();
    let contexts = texts(body, "context");
    Columns {
        stamp,
        id,
        name: text(body, "name").unwrap_or_default(),
        description: text(body, "description").unwrap_or_default(),
        context: contexts.iter().map(|name| name.to_lowercase()).collect(),
        state: ExperimentState::from(word("state")),
        start_on: time(body, "startOn"),
        consistency_rule: body["consistencyRule"].as_str().map(ConsistencyRule::from),
        assignment_unit: AssignmentUnit::from(word("assignmentUnit")),
        post_experiment_rule: PostExperimentRule::from(word("postExperimentRule")),
        enrollment_complete_condition: Some(&body["enrollmentCompleteCondition"])
            .filter(|condition| !condition.is_null())
            .cloned(),
        end_on: time(body, "endOn"),
        revert_to: text(body, "revertTo"),
        tags: texts(body, "tags"),
        group: text(body, "group"),
        condition_order: text(body, "conditionOrder"),
        assignment_algorithm: AssignmentAlgorithm::from(
            body["assignmentAlgorithm"].as_str().unwrap_or("random"),
        ),
        filter_mode: FilterMode::from(word("filterMode")),
        backend_version: version(dialect).to_owned(),
        design: ExperimentType::from(word("type")),
    }
}

pub(crate) fn condition(entry: &Value, id: String, stamp: Stamp) -> Condition {
    Condition {
        stamp,
        two_character_id: text(entry, "twoCharacterId").unwrap_or_else(|| two_characters(&id)),
        id,
        name: text(entry, "name"),
        description: text(entry, "description"),
        condition_code: text(entry, "conditionCode").unwrap_or_default(),
        assignment_weight: match &entry["assignmentWeight"] {
            Value::Number(number) => number.clone(),
            _ => Number::from(0),
        },
        order: order(entry),
    }
}

pub(crate) fn partition(entry: &Value, id: String, stamp: Stamp) -> Partition {
    Partition {
        stamp,
        two_character_id: text(entry, "twoCharacterId").unwrap_or_else(|| two_characters(&id)),
        id,
        site: text(entry, "site").unwrap_or_default(),
        target: text(entry, "target"),
        description: text(entry, "description"),
        order: order(entry),
        exclude_if_reached: entry["excludeIfReached"].as_bool().unwrap_or(false),
    }
}

pub(crate) fn payload(entry: &Value) -> Payload {
    let payload = &entry["payload"];
    Payload {
        kind: text(payload, "type").unwrap_or_default(),
        value: text(payload, "value").unwrap_or_default(),
    }
}

fn order(entry: &Value) -> i64 {
    entry["order"].as_f64().unwrap_or(0.0) as i64
}

/// Two letters or digits to tell a thing apart on a screen; they need not be unique.
fn two_characters(id: &str) -> String {
    id.chars().take(2).collect::<String>().to_uppercase()
}
