//! The body that creates an experiment, as far as both dialects agree.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{v62, v65};
use crate::client::dialect::Dialect;
use crate::client::draft::{NewCondition, NewDecisionPoint, NewExperiment};
use crate::client::model::Raw;
use crate::client::words::{AssignmentUnit, ConsistencyRule};

pub(in crate::client) fn create_body(dialect: Dialect, new: &NewExperiment) -> Raw {
    let mut body = common(new);
    let rule_id = insert_conditions(&mut body, new);
    match dialect {
        Dialect::V62 => v62::complete_create(&mut body, new, rule_id),
        Dialect::V65 => v65::complete_create(&mut body, new),
    }
    body
}

fn common(new: &NewExperiment) -> Raw {
    let points = new.decision_points.iter().zip(1..).map(|(point, order)| partition(point, order));
    let mut body = Raw::from_iter([
        ("name".into(), json!(new.name)),
        ("description".into(), json!(new.description)),
        ("context".into(), json!([new.context])),
        ("state".into(), json!(new.state)),
        ("consistencyRule".into(), json!(consistency(new))),
        ("assignmentUnit".into(), json!(new.assignment_unit)),
        ("postExperimentRule".into(), json!(new.post_rule.rule)),
        ("assignmentAlgorithm".into(), json!("random")),
        ("tags".into(), json!(new.tags)),
        ("filterMode".into(), json!(new.filter_mode)),
        ("partitions".into(), Value::Array(points.collect())),
        ("queries".into(), json!([])),
        ("type".into(), json!(new.design)),
    ]);
    if let Some(id) = &new.id {
        body.insert("id".into(), json!(id));
    }
    if let Some(group) = &new.group_type {
        body.insert("group".into(), json!(group));
    }
    body
}

fn consistency(new: &NewExperiment) -> ConsistencyRule {
    let own = match new.assignment_unit {
        AssignmentUnit::Group => ConsistencyRule::Group,
        _ => ConsistencyRule::Individual,
    };
    new.consistency_rule.clone().unwrap_or(own)
}

/// Returns the id of the condition that the post-experiment rule assigns, if any.
fn insert_conditions(body: &mut Raw, new: &NewExperiment) -> Option<Uuid> {
    let ids: Vec<Uuid> = new.conditions.iter().map(|_| Uuid::new_v4()).collect();
    let entries = new.conditions.iter().zip(&ids).zip(1..);
    let entries = entries.map(|((entry, id), order)| condition(entry, *id, order));
    body.insert("conditions".into(), Value::Array(entries.collect()));
    let code = new.post_rule.condition_code.as_deref()?;
    let at = new.conditions.iter().position(|condition| condition.code == code)?;
    ids.get(at).copied()
}

fn condition(new: &NewCondition, id: Uuid, order: usize) -> Value {
    json!({
        "id": id,
        "conditionCode": new.code,
        "assignmentWeight": new.weight,
        "order": order,
        "name": "",
        "description": "",
    })
}

fn partition(new: &NewDecisionPoint, order: usize) -> Value {
    json!({
        "id": Uuid::new_v4(),
        "site": new.site,
        "target": new.target,
        "description": "",
        "order": order,
        "excludeIfReached": new.exclude_if_reached,
    })
}
