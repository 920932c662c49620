//! `POST /experiments`. From 6.3 on conditions and points get new ids and the rule becomes `continue`; up to
//! 6.2 both are kept. An existing id is not an error: the experiment is merged, with its columns replaced and
//! parts added.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{factorial, lists, rows, view};
use crate::accounts::audit;
use crate::assignment::strata;
use crate::core::{ApiRequest, Core};
use crate::metrics::queries;
use crate::segments::segment;
use crate::segments::side::Side;
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::wire::words::{ExperimentState, PostExperimentRule};
use crate::wire::{body, validate};
use crate::world::World;
use crate::world::model::{Condition, ConditionPayload, Experiment, Partition, Stamp, StateTimeLog};
use crate::world::table::key;

/// The new names of states, which are never stored.
const ONLY_SHOWN: [&str; 3] = ["running", "paused", "completed"];

pub(crate) fn create(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    validate::experiment(core.world.dialect, body)?;
    check(core, body)?;
    Ok(insert(core, body))
}

/// `POST /experiments/batch`.
pub(crate) fn create_many(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let bodies = asked.body.as_array().ok_or_else(Fault::body)?;
    bodies.iter().try_for_each(|body| validate::experiment(core.world.dialect, body))?;
    bodies.iter().try_for_each(|body| check(core, body))?;
    Ok(bodies.iter().map(|body| insert(core, body)).collect())
}

/// The checks of a body that has the right shape.
pub(super) fn check(core: &Core, body: &Value) -> Result<(), Fault> {
    rows::check(core, body)?;
    if body.get("moocletPolicyParameters").is_some() {
        return Err(Fault::no_mooclets("create"));
    }
    check_columns(body)?;
    rows::check_columns(body)?;
    if core.world.dialect == Dialect::V62 {
        check_lists(body)?;
        check_parts(&core.world, body)?;
    }
    strata::wanted(&core.world, body)?;
    factorial::check(&core.world, body, None)
}

/// Creates the experiment of a checked body, or merges it into the one with its id.
pub(super) fn insert(core: &mut Core, body: &Value) -> Value {
    let made = make(core, body);
    let id = made.columns.id.clone();
    let at = key(&[&id]);
    let answer = if core.world.experiments.contains(&at) {
        merge(core, &at, made)
    } else {
        let answer = view::created(&core.world, &made, false);
        core.world.experiments.insert(at.clone(), made);
        answer
    };
    if let Some(made) = core.world.experiments.get(&at).map(|made| made.columns.clone()) {
        audit::created(core, &made);
    }
    add_lists(core, &id, body);
    answer
}

/// The values that the original's database rejects.
fn check_columns(body: &Value) -> Result<(), Fault> {
    let state = body["state"].as_str().unwrap_or_default();
    if ONLY_SHOWN.contains(&state) {
        let message = format!("invalid input value for enum experiment_state_enum: \"{state}\"");
        return Err(Fault::database(message));
    }
    match body["id"].as_str() {
        Some(id) if !id.is_empty() && !validate::is_uuid(&body["id"]) => {
            Err(Fault::database(format!("invalid input syntax for type uuid: \"{id}\"")))
        }
        _ => Ok(()),
    }
}

/// Up to 6.2 an experiment has one list of each kind, so an array is invalid.
fn check_lists(body: &Value) -> Result<(), Fault> {
    if body["experimentSegmentInclusion"].is_array() || body["experimentSegmentExclusion"].is_array() {
        return Err(Fault::no_list_to_add());
    }
    Ok(())
}

/// Up to 6.2 the ids of the parts come from the body, and there must be some of each kind.
fn check_parts(world: &World, body: &Value) -> Result<(), Fault> {
    let what = "conditions, decision points, conditionPayloads and queries";
    let message = format!("Error in creating {what} \"addExperimentInDB\"");
    let kinds = [
        ("conditions", "ExperimentConditionRepository", "insertConditions", "conditionDocs"),
        ("partitions", "DecisionPointRepository", "insertPartitions", "partitionsDocs"),
    ];
    for (field, class, function, parts) in kinds {
        if body::entries(body, field).next().is_none() {
            return Err(Fault::no_parts(class, function, parts, &message));
        }
    }
    let known = world.experiments.values();
    let known: HashSet<&str> = known
        .flat_map(|e| e.conditions.iter().map(|c| &c.id).chain(e.partitions.iter().map(|p| &p.id)))
        .map(String::as_str)
        .collect();
    let is_free = |id: &Value| {
        validate::is_uuid(id) && id.as_str().is_some_and(|id| !known.contains(id.to_lowercase().as_str()))
    };
    for (field, class, function, _) in kinds {
        if !body::entries(body, field).map(|entry| &entry["id"]).all(is_free) {
            return Err(Fault::repository(class, function, &message));
        }
    }
    Ok(())
}

fn make(core: &mut Core, body: &Value) -> Experiment {
    let now = core.now();
    let dialect = core.world.dialect;
    let given = body["id"].as_str().and_then(|id| uuid::Uuid::try_parse(id).ok());
    let id = given.map_or_else(|| core.new_id(), |id| id.to_string());
    let mut columns = rows::columns(dialect, body, id, Stamp::new(&now));
    if dialect != Dialect::V62 {
        columns.post_experiment_rule = PostExperimentRule::Continue;
    }
    let mut ids = HashMap::new();
    let conditions = conditions(core, body, &now, &mut ids);
    let partitions = partitions(core, body, &now, &mut ids);
    Experiment {
        sequence: core.world.next_sequence(),
        payloads: payloads(core, body, &now, &ids),
        inclusion: Vec::new(),
        exclusion: Vec::new(),
        log: first_log(core, &columns.state, &now),
        factors: factorial::factors(core, body, &now),
        elements: factorial::elements(core, body, &now, &ids),
        queries: queries::made(core, body, &now),
        stratification_factor: strata::wanted(&core.world, body).unwrap_or_default(),
        columns,
        conditions,
        partitions,
    }
}

/// Places are counted from 1, whatever the body has.
fn conditions(core: &mut Core, body: &Value, now: &str, ids: &mut HashMap<String, String>) -> Vec<Condition> {
    let entries = body::entries(body, "conditions").zip(1..);
    let condition = |(entry, order)| {
        let id = renamed(core, entry, ids);
        Condition { order, ..rows::condition(entry, id, Stamp::new(now)) }
    };
    entries.map(condition).collect()
}

fn partitions(core: &mut Core, body: &Value, now: &str, ids: &mut HashMap<String, String>) -> Vec<Partition> {
    let entries = body::entries(body, "partitions").zip(1..);
    let partition = |(entry, order)| {
        let id = renamed(core, entry, ids);
        let partition = rows::partition(entry, id, Stamp::new(now));
        let description = Some(partition.description.unwrap_or_default());
        Partition { order, description, ..partition }
    };
    entries.map(partition).collect()
}

/// The id of a part: up to 6.2 the body's, from 6.3 on a new one.
fn renamed(core: &mut Core, entry: &Value, ids: &mut HashMap<String, String>) -> String {
    let given = entry["id"].as_str().unwrap_or_default();
    let id = if core.world.dialect == Dialect::V62 { given.to_lowercase() } else { core.new_id() };
    ids.insert(given.to_owned(), id.clone());
    id
}

/// Payloads refer to the new ids of their condition and point; those with unknown ids are dropped.
fn payloads(
    core: &mut Core,
    body: &Value,
    now: &str,
    ids: &HashMap<String, String>,
) -> Vec<ConditionPayload> {
    let renamed = |entry: &Value, field: &str| ids.get(entry[field].as_str()?).cloned();
    let payload = |entry: &Value| {
        Some(ConditionPayload {
            stamp: Stamp::new(now),
            parent_condition: renamed(entry, "parentCondition")?,
            decision_point: renamed(entry, "decisionPoint"),
            payload: rows::payload(entry),
            id: payload_id(core, entry),
        })
    };
    body::entries(body, "conditionPayloads").filter_map(payload).collect()
}

fn payload_id(core: &mut Core, entry: &Value) -> String {
    let given = entry["id"].as_str().filter(|_| core.world.dialect == Dialect::V62);
    given.map_or_else(|| core.new_id(), str::to_owned)
}

/// Up to 6.2 an experiment has one list of each kind, with a name from the server.
fn add_both_lists(core: &mut Core, experiment: &str, body: &Value) {
    let context = body["context"][0].as_str().unwrap_or_default().to_lowercase();
    for (field, side, word) in [
        ("experimentSegmentInclusion", Side::Inclusion, "Inclusion"),
        ("experimentSegmentExclusion", Side::Exclusion, "Exclusion"),
    ] {
        let given = given(&body[field]["segment"], "id").filter(|id| validate::is_uuid(&json!(id)));
        let mut input = segment::unbound(&body[field]["segment"]);
        input["id"] = json!(given.unwrap_or_else(|| core.new_id()));
        let name = format!("{experiment} {word} Segment");
        input["name"] = json!(name);
        input["description"] = json!(name);
        input["context"] = json!(context);
        input["type"] = json!("private");
        lists::add(core, experiment, &input, side);
    }
}

/// Lists get new ids and the experiment's context, whatever the body has.
fn add_lists(core: &mut Core, experiment: &str, body: &Value) {
    if core.world.dialect == Dialect::V62 {
        return add_both_lists(core, experiment, body);
    }
    let context = body["context"][0].as_str().unwrap_or_default().to_lowercase();
    for (field, side) in
        [("experimentSegmentExclusion", Side::Exclusion), ("experimentSegmentInclusion", Side::Inclusion)]
    {
        for entry in body::entries(body, field) {
            let id = core.new_id();
            let mut input = segment::unbound(&entry["segment"]);
            input["name"] = json!(given(&input, "name").unwrap_or_else(|| format!("{id} Segment")));
            input["description"] = json!(given(&input, "description").unwrap_or_default());
            input["context"] = json!(context);
            input["type"] = json!("private");
            input["id"] = json!(id);
            lists::add(core, experiment, &input, side);
        }
    }
}

fn given(input: &Value, field: &str) -> Option<String> {
    body::text(input, field).filter(|text| !text.is_empty())
}

/// An experiment created in any state but inactive has started already.
fn first_log(core: &mut Core, state: &ExperimentState, now: &str) -> Vec<StateTimeLog> {
    if *state == ExperimentState::Inactive {
        return Vec::new();
    }
    vec![StateTimeLog {
        stamp: Stamp::new(now),
        id: core.new_id(),
        from_state: ExperimentState::Inactive,
        to_state: state.clone(),
        time_log: now.to_owned(),
    }]
}

fn merge(core: &mut Core, at: &str, mut made: Experiment) -> Value {
    let Some(old) = core.world.experiments.get(at) else { return Value::Null };
    let now = std::mem::replace(&mut made.columns.stamp, old.columns.stamp.clone()).updated_at;
    made.columns.stamp.touch(&now);
    let answer = view::created(&core.world, &made, true);
    let Some(old) = core.world.experiments.get_mut(at) else { return answer };
    old.columns = made.columns;
    old.conditions.extend(made.conditions);
    old.partitions.extend(made.partitions);
    old.payloads.extend(made.payloads);
    old.factors.extend(made.factors);
    old.elements.extend(made.elements);
    old.queries.extend(made.queries);
    if made.stratification_factor.is_some() {
        old.stratification_factor = made.stratification_factor;
    }
    old.log.extend(made.log);
    answer
}
