//! Which bodies the routes take. The original checks shapes, enums and the agreement of group and
//! unit, and nothing of sense: weights, names, sites and transitions are free.

use serde_json::{Value, json};

use super::shape::{
    date, each, filled, flag, has, integer, number, object, one_of, optional, text, two_characters,
};

/// The states that a body may name, in both vocabularies.
const STATES: [&str; 11] = [
    "inactive",
    "draft",
    "preview",
    "scheduled",
    "enrolling",
    "running",
    "enrollmentComplete",
    "paused",
    "cancelled",
    "completed",
    "archived",
];
const UNITS: [&str; 3] = ["individual", "group", "within-subjects"];
const CONSISTENCY: [&str; 3] = ["individual", "experiment", "group"];
const POST_RULES: [&str; 3] = ["continue", "revert", "assign"];
const ALGORITHMS: [&str; 3] = ["random", "stratified random sampling", "ts_configurable"];
const ORDERS: [&str; 3] = ["random", "random round robin", "ordered round robin"];
const FILTERS: [&str; 2] = ["includeAll", "excludeAll"];
const TYPES: [&str; 2] = ["Simple", "Factorial"];
const PAYLOADS: [&str; 3] = ["string", "json", "csv"];
const SEGMENTS: [&str; 3] = ["public", "private", "global_exclude"];
const STATUSES: [&str; 3] = ["condition applied", "condition not applied", "no condition assigned"];
const SEARCH_KEYS: [&str; 6] = ["all", "name", "status", "tag", "context", "id"];
const SORT_KEYS: [&str; 4] = ["name", "state", "updatedAt", "postExperimentRule"];

/// The fields of an experiment, each with the first of its constraints.
const EXPERIMENT_FIELDS: [(&str, &str); 21] = [
    ("id", "isString"),
    ("name", "isString"),
    ("description", "isString"),
    ("context", "isArray"),
    ("state", "isEnum"),
    ("startOn", "isDateString"),
    ("consistencyRule", "isEnum"),
    ("assignmentUnit", "isEnum"),
    ("postExperimentRule", "isEnum"),
    ("endOn", "isDateString"),
    ("revertTo", "isString"),
    ("tags", "isArray"),
    ("group", "isString"),
    ("assignmentAlgorithm", "isEnum"),
    ("filterMode", "isEnum"),
    ("conditions", "isArray"),
    ("partitions", "isArray"),
    ("factors", "isArray"),
    ("conditionPayloads", "isArray"),
    ("queries", "isArray"),
    ("type", "isEnum"),
];
const SEGMENT_FIELDS: [(&str, &str); 10] = [
    ("id", "isUuid"),
    ("name", "isString"),
    ("description", "isString"),
    ("listType", "isString"),
    ("context", "isString"),
    ("type", "isEnum"),
    ("userIds", "isArray"),
    ("tags", "isArray"),
    ("groups", "isArray"),
    ("subSegmentIds", "isArray"),
];

/// A whole experiment, as create and update want it.
pub(super) fn is_experiment(body: &Value) -> bool {
    let within = body["assignmentUnit"] == "within-subjects";
    has(body, "id", optional(text))
        && has(body, "name", filled)
        && has(body, "description", optional(text))
        && has(body, "context", |context| each(text)(context) && *context != Value::Array(vec![]))
        && has(body, "state", one_of(&STATES))
        && has(body, "startOn", optional(date))
        && has(body, "endOn", optional(date))
        && (within || has(body, "consistencyRule", one_of(&CONSISTENCY)))
        && (!within || has(body, "conditionOrder", one_of(&ORDERS)))
        && has(body, "assignmentUnit", one_of(&UNITS))
        && has(body, "postExperimentRule", one_of(&POST_RULES))
        && has(body, "assignmentAlgorithm", optional(one_of(&ALGORITHMS)))
        && has(body, "revertTo", optional(text))
        && has(body, "tags", each(text))
        && has(body, "filterMode", one_of(&FILTERS))
        && has(body, "type", one_of(&TYPES))
        && group_agrees(body)
        && has(body, "conditions", each(is_condition))
        && has(body, "partitions", each(is_partition))
        && has(body, "conditionPayloads", optional(each(is_condition_payload)))
        && has(body, "queries", optional(each(is_query)))
        && has(body, "factors", optional(each(object)))
        && has(body, "experimentSegmentInclusion", optional(each(is_list)))
        && has(body, "experimentSegmentExclusion", optional(each(is_list)))
}

/// A kind of group is named exactly when groups are assigned.
fn group_agrees(body: &Value) -> bool {
    if body["assignmentUnit"] == "group" {
        return has(body, "group", filled);
    }
    has(body, "group", |group| group.is_null() || *group == "")
}

fn is_condition(entry: &Value) -> bool {
    has(entry, "id", filled)
        && has(entry, "twoCharacterId", optional(two_characters))
        && has(entry, "conditionCode", filled)
        && has(entry, "assignmentWeight", number)
        && has(entry, "order", integer)
        && has(entry, "name", optional(text))
        && has(entry, "description", optional(text))
}

fn is_partition(entry: &Value) -> bool {
    has(entry, "id", filled)
        && has(entry, "twoCharacterId", optional(two_characters))
        && has(entry, "site", filled)
        && has(entry, "target", optional(text))
        && has(entry, "description", optional(text))
        && has(entry, "order", integer)
        && has(entry, "excludeIfReached", flag)
}

fn is_condition_payload(entry: &Value) -> bool {
    has(entry, "id", filled)
        && has(entry, "parentCondition", filled)
        && has(entry, "decisionPoint", optional(text))
        && has(entry, "payload", |payload| {
            has(payload, "type", one_of(&PAYLOADS)) && has(payload, "value", text)
        })
}

fn is_query(entry: &Value) -> bool {
    has(entry, "name", filled)
        && has(entry, "query", object)
        && has(entry, "metric", |metric| has(metric, "key", filled))
}

fn is_list(entry: &Value) -> bool {
    has(entry, "segment", |segment| {
        has(segment, "type", one_of(&SEGMENTS))
            && ["id", "name", "description", "context"].iter().all(|f| has(segment, f, optional(text)))
            && has(segment, "individualForSegment", optional(each(|user| has(user, "userId", filled))))
            && has(segment, "groupForSegment", optional(each(is_list_group)))
            && has(segment, "subSegments", optional(each(|segment| has(segment, "id", filled))))
    })
}

fn is_list_group(entry: &Value) -> bool {
    has(entry, "groupId", filled) && has(entry, "type", filled)
}

/// A change of state.
pub(super) fn is_state_change(body: &Value) -> bool {
    has(body, "experimentId", is_uuid)
        && has(body, "state", one_of(&STATES))
        && has(body, "scheduleDate", optional(date))
}

/// A page of experiments.
pub(super) fn is_page(body: &Value) -> bool {
    let is_search = |search: &Value| has(search, "key", one_of(&SEARCH_KEYS)) && has(search, "string", text);
    let is_sort =
        |sort: &Value| has(sort, "key", one_of(&SORT_KEYS)) && has(sort, "sortAs", one_of(&["ASC", "DESC"]));
    has(body, "skip", integer)
        && has(body, "take", integer)
        && has(body, "searchParams", optional(is_search))
        && has(body, "sortParams", optional(is_sort))
}

/// Students whose conditions at one place are asked for.
pub(super) fn is_batch(body: &Value) -> bool {
    ["context", "site", "target"].iter().all(|field| has(body, field, filled))
        && has(body, "userIds", each(filled))
}

/// A segment, as it is made or rewritten.
pub(super) fn is_segment(body: &Value) -> bool {
    has(body, "id", optional(is_uuid))
        && has(body, "name", filled)
        && has(body, "description", optional(text))
        && has(body, "listType", optional(text))
        && has(body, "context", filled)
        && has(body, "type", one_of(&SEGMENTS))
        && has(body, "userIds", each(text))
        && has(body, "tags", optional(each(text)))
        && has(body, "groups", each(is_list_group))
        && has(body, "subSegmentIds", each(text))
}

/// The fields of an experiment that keep it from being one, with the constraint that each fails: a
/// body that is known to be good is spoilt with one field after the other.
pub(super) fn failing_fields(body: &Value) -> Vec<(&'static str, &'static str)> {
    let good = json!({
        "name": "n", "context": ["c"], "state": "inactive", "consistencyRule": "individual",
        "conditionOrder": "random", "assignmentUnit": "individual", "postExperimentRule": "continue",
        "tags": [], "filterMode": "includeAll", "type": "Simple", "conditions": [], "partitions": [],
    });
    let fails = |(field, _): &(&str, &str)| {
        let mut spoilt = good.clone();
        spoilt[*field] = body.get(*field).cloned().unwrap_or_default();
        if matches!(*field, "assignmentUnit" | "group") {
            spoilt["assignmentUnit"] = body["assignmentUnit"].clone();
            spoilt["group"] = body["group"].clone();
        }
        !is_experiment(&spoilt)
    };
    EXPERIMENT_FIELDS.into_iter().filter(fails).collect()
}

/// The same for a segment.
pub(super) fn failing_segment_fields(body: &Value) -> Vec<(&'static str, &'static str)> {
    let good = json!({
        "name": "n", "context": "c", "type": "public", "userIds": [], "groups": [], "subSegmentIds": [],
    });
    let fails = |(field, _): &(&str, &str)| {
        let mut spoilt = good.clone();
        spoilt[*field] = body.get(*field).cloned().unwrap_or_default();
        !is_segment(&spoilt)
    };
    SEGMENT_FIELDS.into_iter().filter(fails).collect()
}

/// A page of segments.
pub(super) fn is_segment_page(body: &Value) -> bool {
    let is_search = |search: &Value| {
        has(search, "key", one_of(&["all", "name", "tag", "context", "id"])) && has(search, "string", filled)
    };
    let is_sort = |sort: &Value| {
        has(sort, "key", one_of(&["name", "updatedAt"])) && has(sort, "sortAs", one_of(&["ASC", "DESC"]))
    };
    has(body, "skip", number)
        && has(body, "take", number)
        && has(body, "searchParams", optional(is_search))
        && has(body, "sortParams", optional(is_sort))
}

/// A student's groups; nothing else may be in the body.
pub(super) fn is_user(body: &Value) -> bool {
    let known = |field: &String| field == "group" || field == "workingGroup";
    let groups = |groups: &Value| values(groups, each(text));
    body.as_object().is_some_and(|fields| fields.keys().all(known))
        && has(body, "group", optional(groups))
        && has(body, "workingGroup", optional(|groups| values(groups, text)))
}

fn values(object: &Value, test: impl Fn(&Value) -> bool) -> bool {
    object.as_object().is_some_and(|fields| fields.values().all(test))
}

/// A visit.
pub(super) fn is_mark(body: &Value) -> bool {
    let is_condition = |condition: &Value| {
        has(condition, "conditionCode", optional(text)) && has(condition, "experimentId", optional(text))
    };
    has(body, "data", |data| {
        has(data, "site", filled)
            && has(data, "target", text)
            && has(data, "assignedCondition", optional(is_condition))
    }) && has(body, "status", optional(one_of(&STATUSES)))
        && has(body, "uniquifier", optional(text))
        && has(body, "clientError", optional(text))
}

/// Logged metrics.
pub(super) fn is_log(body: &Value) -> bool {
    has(body, "value", each(|entry| has(entry, "timestamp", text) && has(entry, "metrics", object)))
}

/// The form of an id.
pub(super) fn is_uuid(value: &Value) -> bool {
    value.as_str().is_some_and(|text| uuid::Uuid::try_parse(text).is_ok())
}
