//! `PUT /experiments/:id`: conditions, points and payloads are replaced by id, columns by name; lists
//! in the body count up to 6.2 and for nothing since, and nobody asks for the version it was made from.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::audit;
use super::body;
use super::core::{Asked, Core};
use super::experiments::path_id;
use super::factorial;
use super::fault::Fault;
use super::model::{
    Columns, Condition, ConditionPayload, Experiment, Partition, Payload, Stamp, StateTimeLog,
};
use super::queries;
use super::segment;
use super::state;
use super::strata;
use super::table::key;
use super::validate;
use super::view;
use crate::client::{Dialect, FilterMode};

pub(super) fn update(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let id = path_id(asked)?;
    let body = &asked.body;
    validate::experiment(core.world.dialect, body)?;
    body::check(core, body)?;
    if body.get("moocletPolicyParameters").is_some() {
        return Err(Fault::no_mooclets("update"));
    }
    let old = core.world.experiments.get(&key(&[&id])).cloned();
    let old = old.ok_or_else(|| Fault::reads_nothing("undefined", "state"))?;
    if body["conditionPayloads"].is_null() && core.world.dialect != Dialect::V62 {
        return Err(Fault::reads_nothing("undefined", "reduce"));
    }
    body::check_columns(body)?;
    check_parts(body)?;
    strata::wanted(&core.world, body)?;
    factorial::check(&core.world, body, Some(&id))?;
    let new = rewrite(core, body, &old);
    state::shut_out_early_visitors(&mut core.world, &id, &new.columns.state);
    drop_enrollments_of_removed_parts(core, &old, &new);
    let at = key(&[&id]);
    let kept = |list: &str| new.inclusion.iter().chain(&new.exclusion).any(|tie| tie.segment_id == list);
    for list in old.inclusion.iter().chain(&old.exclusion).filter(|list| !kept(&list.segment_id)) {
        segment::remove(&mut core.world, &list.segment_id);
    }
    if core.world.dialect == Dialect::V62 {
        rewrite_lists(core, body, &new);
    }
    let answer = view::updated(&core.world, &new);
    audit::updated(core, &new.columns);
    core.world.experiments.insert(at, new);
    Ok(answer)
}

/// What the original leaves to its database to refuse: ids that are none, and payloads of
/// nothing.
fn check_parts(body: &Value) -> Result<(), Fault> {
    let ids = |field| body::entries(body, field).map(|entry| &entry["id"]);
    if !ids("conditions").chain(ids("partitions")).chain(ids("conditionPayloads")).all(validate::is_uuid) {
        let message = "Error in creating conditions, decision points, queries \"updateExperimentInDB\"";
        return Err(Fault::database(message));
    }
    let known: HashSet<&str> = ids("conditions").chain(ids("partitions")).filter_map(Value::as_str).collect();
    let is_tied = |entry: &Value| {
        let tied = |field: &str| entry[field].as_str().is_none_or(|id| known.contains(id));
        tied("parentCondition") && tied("decisionPoint")
    };
    if body::entries(body, "conditionPayloads").all(is_tied) {
        return Ok(());
    }
    Err(Fault::database("Error in creating conditionPayloads \"updateExperimentInDB\""))
}

/// Up to 6.2 the lists of the body are the experiment's from now on, under their old names.
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
    let mut columns = columns(dialect, body, old, &now);
    let conditions = conditions(body, old, &now);
    let partitions = partitions(body, old, &now);
    let mut payloads = payloads(body, old, &now);
    if dialect != Dialect::V62 {
        fill_payloads(core, &conditions, &partitions, &mut payloads, &now);
    }
    let moved = dialect != Dialect::V62 && columns.context.first() != old.columns.context.first();
    let (mut inclusion, mut exclusion) = (old.inclusion.clone(), old.exclusion.clone());
    if moved {
        inclusion.clear();
        exclusion.clear();
        columns.filter_mode = FilterMode::ExcludeAll;
    }
    let mut log = old.log.clone();
    if columns.state != old.columns.state {
        log.push(StateTimeLog {
            stamp: Stamp::new(&now),
            id: core.new_id(),
            from_state: old.columns.state.clone(),
            to_state: columns.state.clone(),
            time_log: now.clone(),
        });
    }
    Experiment {
        factors: factorial::factors(core, body, &now),
        elements: factorial::elements(core, body, &now, &HashMap::new()),
        queries: if moved { Vec::new() } else { queries::rewritten(core, body, old, &now) },
        stratification_factor: match body.get("stratificationFactor") {
            None => old.stratification_factor.clone(),
            Some(_) => strata::wanted(&core.world, body).unwrap_or_default(),
        },
        columns,
        conditions,
        partitions,
        payloads,
        inclusion,
        exclusion,
        log,
        ..old.clone()
    }
}

/// A column that the body does not name stays.
fn columns(dialect: Dialect, body: &Value, old: &Experiment, now: &str) -> Columns {
    let mut stamp = old.columns.stamp.clone();
    stamp.touch(now);
    let mut new = body::columns(dialect, body, old.columns.id.clone(), stamp);
    let stays = |field: &str| body.get(field).is_none();
    if stays("description") {
        new.description.clone_from(&old.columns.description);
    }
    if stays("startOn") {
        new.start_on.clone_from(&old.columns.start_on);
    }
    if stays("endOn") {
        new.end_on.clone_from(&old.columns.end_on);
    }
    if stays("revertTo") {
        new.revert_to.clone_from(&old.columns.revert_to);
    }
    if stays("group") {
        new.group.clone_from(&old.columns.group);
    }
    if stays("enrollmentCompleteCondition") {
        let old = &old.columns.enrollment_complete_condition;
        new.enrollment_complete_condition.clone_from(old);
    }
    new
}

/// Parts keep when they were made; that they were written again is all that their stamp tells.
fn stamp(old: Option<&Stamp>, now: &str) -> Stamp {
    let old = old.cloned().unwrap_or_else(|| Stamp::new(now));
    Stamp { updated_at: now.to_owned(), ..old }
}

fn conditions(body: &Value, old: &Experiment, now: &str) -> Vec<Condition> {
    let condition = |entry: &Value| {
        let id = body::text(entry, "id").unwrap_or_default();
        let old = old.conditions.iter().find(|condition| condition.id == id);
        body::condition(entry, id, stamp(old.map(|condition| &condition.stamp), now))
    };
    body::entries(body, "conditions").map(condition).collect()
}

fn partitions(body: &Value, old: &Experiment, now: &str) -> Vec<Partition> {
    let partition = |entry: &Value| {
        let id = body::text(entry, "id").unwrap_or_default();
        let old = old.partitions.iter().find(|partition| partition.id == id);
        body::partition(entry, id, stamp(old.map(|partition| &partition.stamp), now))
    };
    body::entries(body, "partitions").map(partition).collect()
}

fn payloads(body: &Value, old: &Experiment, now: &str) -> Vec<ConditionPayload> {
    let payload = |entry: &Value| {
        let id = body::text(entry, "id").unwrap_or_default();
        let old = old.payloads.iter().find(|payload| payload.id == id);
        ConditionPayload {
            stamp: stamp(old.map(|payload| &payload.stamp), now),
            id,
            parent_condition: body::text(entry, "parentCondition").unwrap_or_default(),
            decision_point: body::text(entry, "decisionPoint"),
            payload: body::payload(entry),
        }
    };
    body::entries(body, "conditionPayloads").map(payload).collect()
}

/// Every condition gets a payload at every point, its own code if the body gives none.
fn fill_payloads(
    core: &mut Core,
    conditions: &[Condition],
    partitions: &[Partition],
    payloads: &mut Vec<ConditionPayload>,
    now: &str,
) {
    for (condition, point) in
        conditions.iter().flat_map(|condition| partitions.iter().map(move |point| (condition, point)))
    {
        let is_given = payloads.iter().any(|payload| {
            payload.parent_condition == condition.id && payload.decision_point.as_ref() == Some(&point.id)
        });
        if is_given {
            continue;
        }
        payloads.push(ConditionPayload {
            stamp: Stamp::new(now),
            id: core.new_id(),
            parent_condition: condition.id.clone(),
            decision_point: Some(point.id.clone()),
            payload: Payload { kind: "string".into(), value: condition.condition_code.clone() },
        });
    }
}

/// A point that moves to another place is a new one under the old id.
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
