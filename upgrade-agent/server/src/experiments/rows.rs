//! Conversion of bodies into rows, for both create and update.

use serde_json::{Number, Value};

use crate::core::Core;
use crate::wire::body::{check_texts, entries, text, texts, time};
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::wire::words::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    PostExperimentRule,
};
use crate::world::model::{Columns, Condition, Partition, Payload, Stamp};

/// The checks after the shape: the context and the codes.
pub(super) fn check(core: &Core, body: &Value) -> Result<(), Fault> {
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

/// The values that the columns of the original's database reject.
pub(super) fn check_columns(body: &Value) -> Result<(), Fault> {
    check_texts(body)?;
    match body["revertTo"].as_str() {
        Some(id) if !validate::is_uuid(&body["revertTo"]) => {
            Err(Fault::database(format!("invalid input syntax for type uuid: \"{id}\"")))
        }
        _ => Ok(()),
    }
}

/// The columns of a body. The state is converted to its stored name.
pub(super) fn columns(dialect: Dialect, body: &Value, id: String, stamp: Stamp) -> Columns {
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
        backend_version: dialect.version().to_owned(),
        design: ExperimentType::from(word("type")),
    }
}

pub(super) fn condition(entry: &Value, id: String, stamp: Stamp) -> Condition {
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

pub(super) fn partition(entry: &Value, id: String, stamp: Stamp) -> Partition {
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

pub(super) fn payload(entry: &Value) -> Payload {
    let payload = &entry["payload"];
    Payload {
        kind: text(payload, "type").unwrap_or_default(),
        value: text(payload, "value").unwrap_or_default(),
    }
}

fn order(entry: &Value) -> i64 {
    entry["order"].as_f64().unwrap_or(0.0) as i64
}

/// Two letters or digits that identify a condition on a screen; they need not be unique.
fn two_characters(id: &str) -> String {
    id.chars().take(2).collect::<String>().to_uppercase()
}
