//! The bodies of successful responses. Each route returns other parts of an experiment, and not all of them
//! translate the names of states; both as in the original.

use serde_json::{Value, json};

use super::factorial;
use crate::assignment::strata;
use crate::metrics::queries;
use crate::segments;
use crate::wire::dialect::Dialect;
use crate::wire::row::{row, with};
use crate::wire::words::{ExperimentState, outward};
use crate::world::World;
use crate::world::model::{Columns, Condition, ConditionPayload, Experiment, Partition, StateTimeLog};

fn columns(dialect: Dialect, columns: &Columns) -> Value {
    with(row(columns), [("state", json!(outward(dialect, &columns.state)))])
}

fn state_logs(dialect: Dialect, log: &[StateTimeLog]) -> Value {
    let entry = |log: &StateTimeLog| {
        let name = |state| json!(outward(dialect, state));
        with(row(log), [("fromState", name(&log.from_state)), ("toState", name(&log.to_state))])
    };
    log.iter().map(entry).collect()
}

fn partitions(partitions: &[Partition]) -> Value {
    partitions.iter().map(row).collect()
}

/// A payload for every point names none.
fn payloads(payloads: &[ConditionPayload]) -> Value {
    let shown = |entry: &ConditionPayload| {
        let mut shown = row(entry);
        if let (None, Some(columns)) = (&entry.decision_point, shown.as_object_mut()) {
            columns.remove("decisionPoint");
        }
        shown
    };
    payloads.iter().map(shown).collect()
}

/// The payloads in responses: in a factorial design by condition alone, otherwise by point.
fn read_payloads(experiment: &Experiment) -> Value {
    let is_placed = |entry: &&ConditionPayload| experiment.is_factorial() || entry.decision_point.is_some();
    let mut shown: Vec<ConditionPayload> = experiment.payloads.iter().filter(is_placed).cloned().collect();
    if experiment.is_factorial() {
        shown.iter_mut().for_each(|entry| entry.decision_point = None);
    }
    payloads(&shown)
}

/// A condition with its payloads; in a factorial design they are with its points.
fn whole_condition(experiment: &Experiment, condition: &Condition) -> Value {
    let shown = with_elements(experiment, condition);
    if experiment.is_factorial() {
        return shown;
    }
    let own = experiment.payloads.iter().filter(|payload| payload.parent_condition == condition.id);
    with(shown, [("conditionPayloads", own.map(stored_payload).collect())])
}

/// The points in responses: in a factorial design with their payloads, and these with their conditions.
fn whole_partitions(experiment: &Experiment) -> Value {
    if !experiment.is_factorial() {
        return partitions(&experiment.partitions);
    }
    let payload = |entry: &ConditionPayload| {
        let condition = experiment.conditions.iter().find(|c| c.id == entry.parent_condition);
        with(stored_payload(entry), [("parentCondition", condition.map_or(Value::Null, row))])
    };
    let point = |point: &Partition| {
        let is_here = |entry: &&ConditionPayload| entry.decision_point.as_ref() == Some(&point.id);
        let own = experiment.payloads.iter().filter(is_here).map(payload);
        with(row(point), [("conditionPayloads", own.collect())])
    };
    experiment.partitions.iter().map(point).collect()
}

/// A payload with the database's own columns.
fn stored_payload(entry: &ConditionPayload) -> Value {
    with(
        row(&entry.stamp),
        [
            ("id", json!(entry.id)),
            ("payloadValue", json!(entry.payload.value)),
            ("payloadType", json!(entry.payload.kind)),
        ],
    )
}

fn with_elements(experiment: &Experiment, condition: &Condition) -> Value {
    let elements = factorial::shown_elements(experiment, &condition.id);
    with(row(condition), [("levelCombinationElements", elements)])
}

/// A condition in responses to writes: with its levels only if it can have some.
fn written_condition(experiment: &Experiment, condition: &Condition) -> Value {
    if experiment.is_factorial() { with_elements(experiment, condition) } else { row(condition) }
}

/// An entry of `GET /experiments`.
pub(super) fn listed(world: &World, experiment: &Experiment) -> Value {
    let lists = |lists| segments::view::lists(world, lists, &experiment.columns.id);
    whole(world, experiment, lists(&experiment.inclusion), lists(&experiment.exclusion))
}

fn whole(world: &World, experiment: &Experiment, inclusion: Value, exclusion: Value) -> Value {
    let dialect = world.dialect;
    let conditions = experiment.conditions.iter();
    let conditions = conditions.map(|condition| whole_condition(experiment, condition));
    with(
        columns(dialect, &experiment.columns),
        [
            ("conditions", conditions.collect()),
            ("partitions", whole_partitions(experiment)),
            ("factors", factorial::shown_factors(&experiment.factors)),
            ("queries", queries::shown(world, &experiment.queries)),
            ("stateTimeLogs", state_logs(dialect, &experiment.log)),
            ("experimentSegmentInclusion", inclusion),
            ("experimentSegmentExclusion", exclusion),
            ("conditionPayloads", read_payloads(experiment)),
        ],
    )
}

/// An experiment with its parts in order.
fn in_order(experiment: &Experiment) -> Experiment {
    let mut ordered = experiment.clone();
    ordered.conditions.sort_by_key(|condition| condition.order);
    ordered.partitions.sort_by_key(|point| point.order);
    ordered.factors.sort_by_key(|factor| factor.order);
    ordered.factors.iter_mut().for_each(|factor| factor.levels.sort_by_key(|level| level.order));
    ordered
}

/// `GET /experiments/single/:id`.
pub(super) fn single(world: &World, experiment: &Experiment) -> Value {
    let experiment = &in_order(experiment);
    let lists = |lists| segments::view::typed_lists(world, lists, &experiment.columns.id);
    let whole = whole(world, experiment, lists(&experiment.inclusion), lists(&experiment.exclusion));
    with(whole, [("stratificationFactor", factor(world, experiment))])
}

/// A file of `GET /experiments/export`: all parts, with their stored names.
pub(super) fn exported(world: &World, experiment: &Experiment) -> Value {
    let logs = experiment.log.iter().map(row);
    with(
        listed(world, experiment),
        [
            ("state", json!(experiment.columns.state)),
            ("stateTimeLogs", logs.collect()),
            ("backendVersion", json!(world.dialect.version())),
            ("stratificationFactor", factor(world, experiment)),
        ],
    )
}

fn factor(world: &World, experiment: &Experiment) -> Value {
    strata::shown(world, experiment.stratification_factor.as_deref())
}

/// An entry of `POST /experiments/paginated`: up to 6.2 everything but the log, from 6.3 on a few fields and
/// an empty log.
pub(super) fn node(world: &World, experiment: &Experiment) -> Value {
    let dialect = world.dialect;
    if dialect == Dialect::V62 {
        let factor = [("stratificationFactor", factor(world, experiment))];
        let mut node = with(listed(world, experiment), factor);
        if let Some(columns) = node.as_object_mut() {
            columns.remove("stateTimeLogs");
        }
        return node;
    }
    with(
        columns(dialect, &experiment.columns),
        [
            ("partitions", partitions(&experiment.partitions)),
            (
                "experimentSegmentInclusion",
                segments::view::ties(dialect, &experiment.inclusion, &experiment.columns.id),
            ),
            ("stateTimeLogs", json!([])),
        ],
    )
}

/// `GET /experiments/conditions/:id`.
pub(super) fn conditions(experiment: &Experiment) -> Value {
    let experiment = in_order(experiment);
    experiment.conditions.iter().map(|condition| whole_condition(&experiment, condition)).collect()
}

/// The response of a create: states with their stored names, only the parts that this body created, and no
/// time of creation if it was merged into an existing experiment.
pub(super) fn created(world: &World, made: &Experiment, merged: bool) -> Value {
    let conditions = made.conditions.iter().map(|condition| written_condition(made, condition));
    let mut answer = with(
        row(&made.columns),
        [
            ("conditions", conditions.collect()),
            ("partitions", partitions(&made.partitions)),
            ("factors", factorial::shown_factors(&made.factors)),
            ("conditionPayloads", payloads(&made.payloads)),
            ("queries", queries::created(world, &made.queries, &made.columns)),
        ],
    );
    if let Some(name) = &made.stratification_factor {
        answer["stratificationFactor"] = json!({ "stratificationFactorName": name });
    }
    if let Some(answer) = answer.as_object_mut().filter(|_| merged) {
        answer.remove("createdAt");
    }
    answer
}

/// The response of an update: the columns of the body, with the count of the change if there was one. The log
/// is the body's too, without the logged change of state.
pub(super) fn updated(world: &World, body: &Value, old: &Experiment, new: &Experiment) -> Value {
    let dialect = world.dialect;
    let id = &new.columns.id;
    let tied = |part: Value| with(part, [("experimentId", json!(id))]);
    let conditions = new.conditions.iter();
    let conditions = conditions.map(|condition| tied(written_condition(new, condition)));
    let points = new.partitions.iter().map(|point| tied(row(point)));
    with(
        updated_columns(dialect, body, old, new),
        [
            ("conditions", conditions.collect()),
            ("partitions", points.collect()),
            ("factors", factorial::shown_factors(&new.factors)),
            ("conditionPayloads", payloads(&new.payloads)),
            ("queries", queries::updated(world, &new.queries, id)),
            ("experimentSegmentInclusion", segments::view::typed_lists(world, &new.inclusion, id)),
            ("experimentSegmentExclusion", segments::view::typed_lists(world, &new.exclusion, id)),
        ],
    )
}

/// Columns that a counted update returns as null if the body omits them, whatever they contain.
const MAY_BE_NULL: [&str; 8] = [
    "startOn",
    "consistencyRule",
    "enrollmentCompleteCondition",
    "endOn",
    "revertTo",
    "tags",
    "group",
    "conditionOrder",
];

fn updated_columns(dialect: Dialect, body: &Value, old: &Experiment, new: &Experiment) -> Value {
    let columns = &new.columns;
    let mut answer = with(
        body.clone(),
        [
            ("id", json!(columns.id)),
            ("context", json!(columns.context)),
            ("state", json!(outward(dialect, &columns.state))),
        ],
    );
    if columns.context != old.columns.context && dialect != Dialect::V62 {
        answer["filterMode"] = json!(columns.filter_mode);
    }
    if row(&columns.stamp) != row(&old.columns.stamp) {
        for column in MAY_BE_NULL.into_iter().filter(|column| body.get(column).is_none()) {
            answer[column] = Value::Null;
        }
        answer["updatedAt"] = json!(columns.stamp.updated_at);
        answer["versionNumber"] = json!(columns.stamp.version_number);
    }
    if dialect != Dialect::V62 {
        answer["stateTimeLogs"] = given_logs(&body["stateTimeLogs"]);
    }
    answer
}

/// The log of a body, with the names of states for responses.
fn given_logs(given: &Value) -> Value {
    let outward = |state: &Value| match state.as_str() {
        Some(name) => json!(outward(Dialect::V65, &ExperimentState::from(name))),
        None => state.clone(),
    };
    let entry = |log: &Value| {
        let names = [("fromState", outward(&log["fromState"])), ("toState", outward(&log["toState"]))];
        with(log.clone(), names)
    };
    given.as_array().into_iter().flatten().map(entry).collect()
}

/// The response of a change of state: the experiment before it except for the state, and the last log entry,
/// whose experiment has stored names.
pub(super) fn state_changed(world: &World, before: &Experiment, after: &Experiment) -> Value {
    let dialect = world.dialect;
    let queries = queries::shown(world, &before.queries);
    let mut logs = state_logs(dialect, &after.log);
    let raw_logs: Value = before.log.iter().map(row).collect();
    let was = with(
        row(&before.columns),
        [
            ("stateTimeLogs", raw_logs),
            ("partitions", partitions(&before.partitions)),
            ("queries", queries.clone()),
        ],
    );
    if let Some(Value::Object(last)) = logs.as_array_mut().and_then(|logs| logs.last_mut()) {
        last.insert("experiment".into(), was);
    }
    with(
        row(&before.columns),
        [
            ("state", json!(outward(dialect, &after.columns.state))),
            ("startOn", json!(after.columns.start_on)),
            ("stateTimeLogs", logs),
            ("partitions", partitions(&before.partitions)),
            ("queries", queries),
        ],
    )
}

/// The response of a delete: the columns of the deleted row.
pub(super) fn deleted(experiment: &Experiment) -> Value {
    let factor = json!(experiment.stratification_factor);
    json!([with(row(&experiment.columns), [("stratificationFactorStratificationFactorName", factor)])])
}
