//! `PUT /experiments/:id`: conditions, points and payloads are replaced by id, columns by name. Lists in the
//! body are used up to 6.2 and ignored since. The version is not checked.
//!
//! A part that stays keeps some of its columns, such as the type of a payload and its place. Unlike a
//! separate change of state, an update that starts an experiment excludes no early visitors.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{factorial, path_id, revision, rows, view};
use crate::accounts::audit;
use crate::assignment::strata;
use crate::core::{ApiRequest, Core};
use crate::metrics::queries;
use crate::segments::segment;
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::wire::words::FilterMode;
use crate::wire::{body, validate};
use crate::world::model::{
    Columns, Condition, ConditionPayload, Experiment, Partition, Payload, Stamp, StateTimeLog,
};
use crate::world::table::key;

pub(crate) fn update(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = path_id(asked)?;
    let body = &asked.body;
    validate::experiment(core.world.dialect, body)?;
    rows::check(core, body)?;
    if body.get("moocletPolicyParameters").is_some() {
        return Err(Fault::no_mooclets("update"));
    }
    let old = core.world.experiments.get(&key(&[&id])).cloned();
    let old = old.ok_or_else(|| Fault::reads_nothing("undefined", "state"))?;
    if body["conditionPayloads"].is_null() && core.world.dialect != Dialect::V62 {
        return Err(Fault::reads_nothing("undefined", "reduce"));
    }
    rows::check_columns(body)?;
    revision::check(body)?;
    strata::wanted(&core.world, body)?;
    factorial::check(&core.world, body, Some(&id))?;
    let new = rewrite(core, body, &old);
    check_parts(body, &new)?;
    drop_enrollments_of_removed_parts(core, &old, &new);
    let at = key(&[&id]);
    let kept = |list: &str| new.inclusion.iter().chain(&new.exclusion).any(|tie| tie.segment_id == list);
    for list in old.inclusion.iter().chain(&old.exclusion).filter(|list| !kept(&list.segment_id)) {
        segment::remove(&mut core.world, &list.segment_id);
    }
    if core.world.dialect == Dialect::V62 {
        rewrite_lists(core, body, &new);
    }
    let answer = view::updated(&core.world, body, &old, &new);
    audit::updated(core, &new.columns);
    core.world.experiments.insert(at, new);
    Ok(answer)
}

/// The values that the original's database rejects: invalid ids, and payloads without a condition or point.
fn check_parts(body: &Value, new: &Experiment) -> Result<(), Fault> {
    let ids = |field| body::entries(body, field).map(|entry| &entry["id"]);
    if !ids("conditions").chain(ids("partitions")).all(validate::is_uuid) {
        let (class, function) = if ids("conditions").all(validate::is_uuid) {
            ("DecisionPointRepository", "upsertExperimentPartition")
        } else {
            ("ExperimentConditionRepository", "upsertExperimentCondition")
        };
        let message = "Error in creating conditions, decision points, queries \"updateExperimentInDB\"";
        return Err(Fault::repository(class, function, message));
    }
    let is_condition = |id: &str| new.conditions.iter().any(|condition| condition.id == id);
    let is_point = |id: &str| new.partitions.iter().any(|point| point.id == id);
    let is_tied = |payload: &ConditionPayload| {
        let is_placed = payload.decision_point.as_deref().is_none_or(is_point);
        validate::is_uuid(&json!(payload.id)) && is_condition(&payload.parent_condition) && is_placed
    };
    if new.payloads.iter().all(is_tied) {
        return Ok(());
    }
    let message = "Error in creating conditionPayloads \"updateExperimentInDB\"";
    Err(Fault::repository("ConditionPayloadRepository", "upsertConditionPayload", message))
}

/// Up to 6.2 the lists of the body replace the experiment's, under their old names.
fn rewrite_lists(core: &mut Core, body: &Value, new: &Experiment) {
    let context = new.columns.context.first().cloned().unwrap_or_default();
    for (field, ties) in
        [("experimentSegmentInclusion", &new.inclusion), ("experimentSegmentExclusion", &new.exclusion)]
    {
        let Some(old) = ties.last().and_then(|tie| core.world.segment(&tie.segment_id)) else { continue };
        let mut input = segment::unbound(&body[field]["segment"]);
        input["id"] = json!(old.id);
        input["name"] = json!(old.name);
        input["description"] = json!(old.description);
        input["context"] = json!(context);
        input["type"] = json!("private");
        segment::write(core, &input);
    }
}

fn rewrite(core: &mut Core, body: &Value, old: &Experiment) -> Experiment {
    let now = core.now();
    let dialect = core.world.dialect;
    let mut columns = columns(dialect, body, old);
    let conditions = conditions(body, old, &now);
    let partitions = partitions(body, old, &now);
    let payloads = match dialect {
        Dialect::V62 => given_payloads(body, old, (&conditions, &partitions), &now),
        _ => every_payload(core, body, old, (&conditions, &partitions), &now),
    };
    let moved = dialect != Dialect::V62 && columns.context.first() != old.columns.context.first();
    let mut inclusion = old.inclusion.clone();
    let mut exclusion = old.exclusion.clone();
    if moved {
        inclusion.clear();
        exclusion.clear();
        columns.filter_mode = FilterMode::ExcludeAll;
    }
    columns.stamp = revision::stamp(dialect, body, &old.columns, &columns, &now);
    Experiment {
        factors: factorial::factors(core, body, &now),
        elements: factorial::elements(core, body, &now, &HashMap::new()),
        queries: if moved { Vec::new() } else { queries::rewritten(core, body, old, &now) },
        stratification_factor: match body.get("stratificationFactor") {
            None => old.stratification_factor.clone(),
            Some(_) => strata::wanted(&core.world, body).unwrap_or_default(),
        },
        log: log(core, body, old, &columns, &now),
        columns,
        conditions,
        partitions,
        payloads,
        inclusion,
        exclusion,
        ..old.clone()
    }
}

/// The log of the body, if it has one: entries that it omits are lost, entries that it adds are ignored. A
/// change of state is logged afterwards.
fn log(core: &mut Core, body: &Value, old: &Experiment, new: &Columns, now: &str) -> Vec<StateTimeLog> {
    let is_named = |log: &&StateTimeLog| match body.get("stateTimeLogs") {
        None => true,
        Some(_) => body::entries(body, "stateTimeLogs").any(|entry| entry["id"] == log.id.as_str()),
    };
    let mut log: Vec<StateTimeLog> = old.log.iter().filter(is_named).cloned().collect();
    if new.state != old.columns.state {
        log.push(StateTimeLog {
            stamp: Stamp::new(now),
            id: core.new_id(),
            from_state: old.columns.state.clone(),
            to_state: new.state.clone(),
            time_log: now.to_owned(),
        });
    }
    log
}

/// A column that the body omits stays.
fn columns(dialect: Dialect, body: &Value, old: &Experiment) -> Columns {
    let old = &old.columns;
    let mut new = rows::columns(dialect, body, old.id.clone(), old.stamp.clone());
    let stays = |field: &str| body.get(field).is_none();
    if stays("description") {
        new.description.clone_from(&old.description);
    }
    if stays("startOn") {
        new.start_on.clone_from(&old.start_on);
    }
    if stays("endOn") {
        new.end_on.clone_from(&old.end_on);
    }
    if stays("revertTo") {
        new.revert_to.clone_from(&old.revert_to);
    }
    if stays("group") {
        new.group.clone_from(&old.group);
    }
    if stays("enrollmentCompleteCondition") {
        new.enrollment_complete_condition.clone_from(&old.enrollment_complete_condition);
    }
    if stays("consistencyRule") {
        new.consistency_rule.clone_from(&old.consistency_rule);
    }
    if stays("conditionOrder") {
        new.condition_order.clone_from(&old.condition_order);
    }
    if stays("assignmentAlgorithm") {
        new.assignment_algorithm.clone_from(&old.assignment_algorithm);
    }
    new.backend_version = body::text(body, "backendVersion").unwrap_or_else(|| old.backend_version.clone());
    new
}

/// The time of creation of a new part.
fn made(now: &str) -> Stamp {
    Stamp::new(now)
}

/// Parts keep their time of creation; their stamp shows only that they were written again.
fn stamp(old: Option<&Stamp>, now: &str) -> Stamp {
    let old = old.cloned().unwrap_or_else(|| made(now));
    Stamp { updated_at: now.to_owned(), ..old }
}

fn conditions(body: &Value, old: &Experiment, now: &str) -> Vec<Condition> {
    let condition = |entry: &Value| {
        let id = body::text(entry, "id").unwrap_or_default();
        let old = old.conditions.iter().find(|condition| condition.id == id);
        let new = rows::condition(entry, id, stamp(old.map(|condition| &condition.stamp), now));
        let label = old.map_or(new.two_character_id, |old| old.two_character_id.clone());
        Condition { two_character_id: label, ..new }
    };
    body::entries(body, "conditions").map(condition).collect()
}

fn partitions(body: &Value, old: &Experiment, now: &str) -> Vec<Partition> {
    let partition = |entry: &Value| {
        let id = body::text(entry, "id").unwrap_or_default();
        let new = rows::partition(entry, id, made(now));
        let Some(old) = old.partitions.iter().find(|old| is_same_point(old, &new)) else { return new };
        Partition {
            stamp: stamp(Some(&old.stamp), now),
            two_character_id: old.two_character_id.clone(),
            ..new
        }
    };
    body::entries(body, "partitions").map(partition).collect()
}

/// A point with a new place is a new point under the old id.
fn is_same_point(old: &Partition, new: &Partition) -> bool {
    old.id == new.id && old.site == new.site && old.target == new.target
}

/// The conditions and the points after an update.
type Parts<'a> = (&'a [Condition], &'a [Partition]);

/// The payloads of the body, as up to 6.2.
fn given_payloads(body: &Value, old: &Experiment, new: Parts<'_>, now: &str) -> Vec<ConditionPayload> {
    body::entries(body, "conditionPayloads").map(|entry| payload(entry, old, new, now)).collect()
}

/// An existing payload whose condition and point stay gets only a new value.
fn payload(entry: &Value, old: &Experiment, new: Parts<'_>, now: &str) -> ConditionPayload {
    let id = body::text(entry, "id").unwrap_or_default();
    let given = rows::payload(entry);
    let stays = |payload: &&ConditionPayload| {
        let is_point = |id: &str| {
            let was = old.partitions.iter().find(|point| point.id == id);
            was.is_some_and(|was| new.1.iter().any(|new| is_same_point(was, new)))
        };
        let is_condition = |id: &str| new.0.iter().any(|condition| condition.id == id);
        payload.id == id
            && is_condition(&payload.parent_condition)
            && payload.decision_point.as_deref().is_none_or(is_point)
    };
    match old.payloads.iter().find(stays) {
        Some(old) => ConditionPayload {
            stamp: Stamp { updated_at: now.to_owned(), ..old.stamp.clone() },
            payload: Payload { value: given.value, ..old.payload.clone() },
            ..old.clone()
        },
        None => ConditionPayload {
            stamp: made(now),
            id,
            parent_condition: body::text(entry, "parentCondition").unwrap_or_default(),
            decision_point: body::text(entry, "decisionPoint"),
            payload: given,
        },
    }
}

/// From 6.3 on every condition has a payload at every point: the last one in the body, or the condition's
/// code. A payload equal to the old code becomes the new code.
fn every_payload(
    core: &mut Core,
    body: &Value,
    old: &Experiment,
    new: Parts<'_>,
    now: &str,
) -> Vec<ConditionPayload> {
    let given: Vec<&Value> = body::entries(body, "conditionPayloads").collect();
    let mut payloads = Vec::new();
    for (point, condition) in new.1.iter().flat_map(|p| new.0.iter().map(move |c| (p, c))) {
        let is_here = |entry: &&&Value| {
            entry["decisionPoint"] == point.id.as_str() && entry["parentCondition"] == condition.id.as_str()
        };
        let Some(entry) = given.iter().rev().find(is_here) else {
            payloads.push(ConditionPayload {
                stamp: made(now),
                id: core.new_id(),
                parent_condition: condition.id.clone(),
                decision_point: Some(point.id.clone()),
                payload: Payload { kind: "string".into(), value: condition.condition_code.clone() },
            });
            continue;
        };
        let mut payload = payload(entry, old, new, now);
        let was = old.conditions.iter().find(|was| was.id == condition.id);
        if was.is_some_and(|was| was.condition_code == payload.payload.value) {
            payload.payload.value.clone_from(&condition.condition_code);
        }
        payloads.push(payload);
    }
    payloads
}

/// A point with a new place is a new point under the old id.
fn drop_enrollments_of_removed_parts(core: &mut Core, old: &Experiment, new: &Experiment) {
    let is_condition = |id: &str| new.conditions.iter().any(|condition| condition.id == id);
    let place = |e: &Experiment, id: &str| {
        let point = e.partitions.iter().find(|point| point.id == id)?;
        Some((point.site.clone(), point.target.clone()))
    };
    let stays = |id: &str| place(new, id).is_some_and(|at| Some(at) == place(old, id));
    let id = &new.columns.id;
    core.world.enrolled.remove_under(&[id], |row| {
        !row.condition_id.as_deref().is_none_or(is_condition) || !stays(&row.partition_id)
    });
    core.world.repeated.remove_under(&[id], |row| !row.condition_id.as_deref().is_none_or(is_condition));
    for point in old.partitions.iter().filter(|point| !stays(&point.id)) {
        core.world.forget_visits(id, &point.id);
    }
    core.world
        .enrolled_groups
        .remove_under(&[id], |row| !is_condition(&row.condition_id) || !stays(&row.partition_id));
}
