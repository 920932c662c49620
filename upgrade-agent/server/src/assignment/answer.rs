//! The response of `assign`: the condition of a student at each decision point of an experiment.

use serde_json::{Value, json};

use super::levels;
use super::queue::queue;
use crate::wire::fault::Fault;
use crate::wire::words::AssignmentUnit;
use crate::world::World;
use crate::world::model::{Condition, ConditionPayload, Experiment, Partition, User};

/// An entry for each decision point of an experiment in which the student has a condition.
pub(crate) fn assigned(
    world: &World,
    experiment: &Experiment,
    condition: &Condition,
    user: &User,
) -> Result<Vec<Value>, Fault> {
    let had =
        |point: &Partition| world.repeated.under(&[&experiment.columns.id, &user.id, &point.id]).count();
    let points = experiment.partitions.iter();
    points.map(|point| at(experiment, condition, user, point, had(point))).collect()
}

/// The entry of the first decision point, for a preview from outside; earlier visits are ignored.
pub(crate) fn first(experiment: &Experiment, condition: &Condition, user: &User) -> Result<Value, Fault> {
    let mut points = experiment.partitions.iter();
    // The original fails on an error at any point, though it shows only the first one.
    let first = points.next().map(|point| at(experiment, condition, user, point, 0)).transpose()?;
    Ok(first.unwrap_or_default())
}

fn at(
    experiment: &Experiment,
    condition: &Condition,
    user: &User,
    point: &Partition,
    had: usize,
) -> Result<Value, Fault> {
    let mut entry = json!({
        "site": point.site,
        "target": point.target,
        "experimentType": experiment.columns.design,
    });
    // Within subjects the original computes the factorial code without using it, and may fail at it.
    let code = code(experiment, condition)?;
    let mut codes = vec![(condition, code)];
    if experiment.columns.assignment_unit == AssignmentUnit::WithinSubjects {
        codes = queued(experiment, user, had).map(|c| (c, json!(c.condition_code))).collect();
    }
    let shown = |(condition, code): &(&Condition, Value)| {
        json!({
            "id": condition.id,
            "conditionCode": code,
            "payload": payload(experiment, condition, point),
            "experimentId": experiment.columns.id,
        })
    };
    entry["assignedCondition"] = codes.iter().map(shown).collect();
    if experiment.is_factorial() {
        let factors = codes.iter().map(|(condition, _)| levels::assigned(experiment, condition));
        entry["assignedFactor"] = factors.collect();
    }
    Ok(entry)
}

fn code(experiment: &Experiment, condition: &Condition) -> Result<Value, Fault> {
    if experiment.is_factorial() {
        return levels::code(experiment, condition);
    }
    Ok(json!(condition.condition_code))
}

fn queued<'e>(experiment: &'e Experiment, user: &User, had: usize) -> impl Iterator<Item = &'e Condition> {
    let mut conditions: Vec<&Condition> = experiment.conditions.iter().collect();
    conditions.sort_by_key(|condition| condition.order);
    let columns = &experiment.columns;
    let places = queue(columns.condition_order.as_deref(), conditions.len(), &columns.id, &user.id, had);
    places.into_iter().filter_map(move |place| conditions.get(place).copied())
}

/// The payload of a condition: at this point, except in factorial designs, which do not distinguish points.
fn payload(experiment: &Experiment, condition: &Condition, point: &Partition) -> Value {
    let is_there =
        |id: &str| experiment.partitions.iter().any(|other| other.id == id && other.place() == point.place());
    let is_meant = |entry: &&ConditionPayload| {
        let is_here = || entry.decision_point.as_deref().is_some_and(is_there);
        entry.parent_condition == condition.id && (experiment.is_factorial() || is_here())
    };
    let entry = experiment.payloads.iter().find(is_meant);
    json!(entry.map(|entry| &entry.payload).filter(|payload| !payload.value.is_empty()))
}
