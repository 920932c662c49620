//! Reads and writes the data of one student.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fields::Fields;
use super::read::payload;
use crate::client::visit::{AssignedCondition, AssignedFactor, Assignment, Mark, MarkedPoint, User};
use crate::client::words::ExperimentType;

pub(in crate::client) fn user(value: &Value) -> Option<User> {
    let fields = Fields::of(value)?;
    Some(User {
        id: fields.text("id")?,
        groups: map(fields.get("group"), |groups| {
            let groups = groups.as_array()?.iter().filter_map(Value::as_str);
            Some(groups.map(str::to_owned).collect())
        }),
        working_group: map(fields.get("workingGroup"), |group| Some(group.as_str()?.to_owned())),
    })
}

fn map<T>(value: &Value, entry: impl Fn(&Value) -> Option<T>) -> BTreeMap<String, T> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), entry(value)?))).collect()
}

pub(in crate::client) fn assignment(value: &Value) -> Option<Assignment> {
    let fields = Fields::of(value)?;
    Some(Assignment {
        site: fields.text("site")?,
        target: fields.text_or_empty("target"),
        experiment_type: fields.word("experimentType", ExperimentType::Simple),
        conditions: one_or_many(fields.get("assignedCondition"), assigned_condition),
        factors: one_or_many(fields.get("assignedFactor"), |factors| {
            factors.as_object()?;
            Some(map(factors, assigned_factor))
        }),
    })
}

/// Older routes return one object where newer ones return a list.
fn one_or_many<T>(value: &Value, entry: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    match value {
        Value::Array(entries) => entries.iter().filter_map(entry).collect(),
        one => entry(one).into_iter().collect(),
    }
}

fn assigned_condition(value: &Value) -> Option<AssignedCondition> {
    let fields = Fields::of(value)?;
    Some(AssignedCondition {
        id: fields.text("id"),
        condition_code: fields.text("conditionCode"),
        experiment_id: fields.text("experimentId"),
        payload: payload(fields.get("payload")),
    })
}

fn assigned_factor(value: &Value) -> Option<AssignedFactor> {
    let fields = Fields::of(value)?;
    Some(AssignedFactor { level: fields.text("level")?, payload: payload(fields.get("payload")) })
}

pub(in crate::client) fn mark_body(mark: &Mark) -> Value {
    let mut condition = json!({ "conditionCode": mark.condition_code });
    if let Some(experiment) = &mark.experiment_id {
        condition["experimentId"] = json!(experiment);
    }
    let mut body = json!({
        "data": { "site": mark.site, "target": mark.target, "assignedCondition": condition },
    });
    if let Some(status) = &mark.status {
        body["status"] = json!(status);
    }
    if let Some(uniquifier) = &mark.uniquifier {
        body["uniquifier"] = json!(uniquifier);
    }
    body
}

pub(in crate::client) fn marked(value: &Value) -> Option<MarkedPoint> {
    let fields = Fields::of(value)?;
    Some(MarkedPoint {
        id: fields.text("id")?,
        user_id: fields.text_or_empty("userId"),
        site: fields.text_or_empty("site"),
        target: fields.text_or_empty("target"),
        condition: fields.text("condition"),
        experiment_id: fields.text("experimentId"),
    })
}

pub(in crate::client) fn aliases(value: &Value) -> Option<Vec<String>> {
    Fields::of(value).filter(|fields| fields.get("aliases").is_array()).map(|fields| fields.texts("aliases"))
}
