//! The bodies that the original declares, property by property. Where 6.2 and 6.5 differ there is a form for
//! each.

mod flags;

use serde_json::Value;

use super::rules::Check::{self, *};
use super::rules::{Field, Form, may, must};
use super::words;
pub(super) use flags::{FLAG, FLAG_FILTER, FLAG_LIST, FLAG_STATUS};

const TEXT: &[Check] = &[Text];
/// A non-empty text.
const NAME: &[Check] = &[Text, Filled];

static PAYLOAD: Form = Form::of(&[&[must("type", &[OneOf(&words::PAYLOADS), Filled]), must("value", TEXT)]]);

static LEVEL: Form = Form::of(&[&[
    must("id", NAME),
    must("name", NAME),
    may("description", TEXT),
    may("order", &[Integer]),
    may("payload", &[]).form(&PAYLOAD),
]]);

static COMBINATION: Form = Form::of(&[&[must("id", NAME), must("level", &[Filled]).form(&LEVEL)]]);

static FACTOR: Form = Form::of(&[&[
    may("id", TEXT),
    must("name", NAME),
    may("description", TEXT),
    must("order", &[Integer, Filled]),
    must("levels", &[Array, Filled]).each(&LEVEL),
]]);

static CONDITION: Form = Form::of(&[&[
    must("id", NAME),
    may("twoCharacterId", &[AtMostTwo, AtLeastTwo, Alphanumeric]),
    may("description", TEXT),
    may("name", TEXT),
    must("conditionCode", NAME),
    must("assignmentWeight", &[Number, Filled]),
    must("order", &[Integer, Filled]),
    may("levelCombinationElements", &[]).each(&COMBINATION),
]]);

static POINT: Form = Form::of(&[&[
    must("id", NAME),
    may("twoCharacterId", &[AtMostTwo, AtLeastTwo]),
    must("site", NAME),
    may("target", TEXT),
    may("description", TEXT),
    must("order", &[Integer, Filled]),
    must("excludeIfReached", &[Flag, Filled]),
]]);

static CONDITION_PAYLOAD: Form = Form::of(&[&[
    must("id", NAME),
    must("payload", &[Filled]).form(&PAYLOAD),
    must("parentCondition", NAME),
    may("decisionPoint", TEXT),
]]);

static METRIC: Form = Form::of(&[&[must("key", NAME)]]);

static QUERY: Form = Form::of(&[&[
    may("id", TEXT),
    must("name", &[Filled, Text]),
    must("query", &[Filled, Object]),
    must("metric", &[Filled]).form(&METRIC),
    must("repeatedMeasure", &[OneOf(&words::MEASURES), Filled]),
]]);

static STUDENT: Form = Form::of(&[&[must("userId", NAME)]]);
static GROUP: Form = Form::of(&[&[must("groupId", NAME), must("type", NAME)]]);
static SUB_SEGMENT: Form = Form::of(&[&[must("id", NAME)]]);

static LIST: Form = Form::of(&[&[
    may("id", TEXT),
    may("name", TEXT),
    may("description", TEXT),
    may("context", TEXT),
    may("individualForSegment", &[Array]).each(&STUDENT),
    may("groupForSegment", &[Array]).each(&GROUP),
    may("subSegments", &[Array]).each(&SUB_SEGMENT),
    must("type", &[OneOf(&words::SEGMENTS), Text]),
    may("listType", TEXT),
]]);

static PARTICIPANTS: Form = Form::of(&[&[must("segment", &[Filled]).form(&LIST)]]);

static STRATUM: Form = Form::of(&[&[must("stratificationFactorName", &[Filled, Text])]]);

/// The common properties of both versions.
static EXPERIMENT: [Field; 24] = [
    may("id", TEXT),
    must("name", &[Filled, Text]),
    may("description", TEXT),
    must("context", &[Texts, Some, Array, Filled]),
    may("startOn", &[Date]),
    must("consistencyRule", &[OneOf(&words::CONSISTENCY), Filled]).only_if(is_between_subjects),
    must("postExperimentRule", &[OneOf(&words::POST_RULES), Filled]),
    may("assignmentAlgorithm", &[OneOf(&words::ALGORITHMS)]),
    may("endOn", &[Date]),
    may("revertTo", TEXT),
    must("tags", &[Texts, Array, Filled]),
    may("group", TEXT),
    must("conditionOrder", &[OneOf(&words::ORDERS), Filled]).only_if(is_within_subjects),
    must("filterMode", &[OneOf(&words::FILTERS), Filled]),
    may("stratificationFactor", &[]).form(&STRATUM),
    must("conditions", &[Array, Filled]).each(&CONDITION),
    may("factors", &[Array]).each(&FACTOR),
    must("partitions", &[Array, Filled]).each(&POINT),
    may("queries", &[Array]).each(&QUERY),
    may("backendVersion", TEXT),
    must("type", &[OneOf(&words::TYPES), Filled]),
    may("conditionPayloads", &[Array]).each(&CONDITION_PAYLOAD),
    must("moocletPolicyParameters", &[Defined]).only_if(is_adaptive),
    must("rewardMetricKey", &[Defined]).only_if(is_adaptive),
];

const STATE_62: &[Check] = &[OneOf(&words::STATES_62), Filled];
const STATE_65: &[Check] = &[OneOf(&words::STATES_65), Filled];

static LOG_62: Form = Form::of(&[&[
    must("id", NAME),
    must("fromState", STATE_62),
    must("toState", STATE_62),
    must("timeLog", &[Date, Filled]),
]]);
static LOG_65: Form = Form::of(&[&[
    must("id", NAME),
    must("fromState", STATE_65),
    must("toState", STATE_65),
    must("timeLog", &[Date, Filled]),
]]);

pub(super) static EXPERIMENT_62: Form = Form::of(&[
    &EXPERIMENT,
    &[
        must("state", STATE_62),
        must("assignmentUnit", &[OneOf(&words::UNITS), Filled]),
        may("stateTimeLogs", &[Array]).each(&LOG_62),
        must("experimentSegmentInclusion", &[Filled]).form(&PARTICIPANTS),
        must("experimentSegmentExclusion", &[Filled]).form(&PARTICIPANTS),
    ],
]);

const GROUP_AGREES: Check = Own(
    "isAssignmentUnitGroupConsistent",
    "When assignmentUnit is GROUP, group must be defined. When assignmentUnit is not GROUP, group must be \
     null or undefined.",
    group_agrees,
);

pub(super) static EXPERIMENT_65: Form = Form::of(&[
    &EXPERIMENT,
    &[
        must("state", STATE_65),
        must("assignmentUnit", &[GROUP_AGREES, OneOf(&words::UNITS), Filled]),
        may("stateTimeLogs", &[Array]).each(&LOG_65),
        may("experimentSegmentInclusion", &[Array]).each(&PARTICIPANTS),
        may("experimentSegmentExclusion", &[Array]).each(&PARTICIPANTS),
    ],
]);

fn is_within_subjects(experiment: &Value) -> bool {
    experiment["assignmentUnit"] == "within-subjects"
}

fn is_between_subjects(experiment: &Value) -> bool {
    !is_within_subjects(experiment)
}

/// Such an algorithm needs an external service, with more parameters.
fn is_adaptive(experiment: &Value) -> bool {
    experiment["assignmentAlgorithm"] == "ts_configurable"
}

/// A kind of group is present exactly if groups are assigned.
fn group_agrees(unit: &Value, experiment: &Value) -> bool {
    let group = experiment.get("group").unwrap_or(&Value::Null);
    let is_named = group.as_str().is_some_and(|name| !name.is_empty());
    if unit == "group" { is_named } else { group.is_null() || *group == "" }
}

pub(super) static STATE_CHANGE_62: Form = Form::of(&[&[
    may("scheduleDate", &[Date]),
    must("experimentId", &[Uuid, Filled]),
    must("state", &[OneOf(&words::STATES_62), Defined]),
]]);
pub(super) static STATE_CHANGE_65: Form = Form::of(&[&[
    may("scheduleDate", &[Date]),
    must("experimentId", &[Uuid, Filled]),
    must("state", &[OneOf(&words::STATES_65), Defined]),
]]);

static SORT: Form = Form::of(&[&[
    must("key", &[OneOf(&words::SORT_KEYS), Filled]),
    must("sortAs", &[OneOf(&words::DIRECTIONS), Filled]),
]]);
static SEARCH_62: Form =
    Form::of(&[&[may("key", &[OneOf(&words::SEARCH_KEYS_62)]), must("string", &[Text, Defined, Filled])]]);
static SEARCH_65: Form =
    Form::of(&[&[may("key", &[OneOf(&words::SEARCH_KEYS_65)]), must("string", &[Text])]]);

pub(super) static PAGE_62: Form = Form::of(&[&[
    must("skip", &[Defined, Number, Filled]),
    must("take", &[Defined, Number, Filled]),
    may("searchParams", &[]).form(&SEARCH_62),
    may("sortParams", &[]).form(&SORT),
]]);
pub(super) static PAGE_65: Form = Form::of(&[&[
    must("skip", &[Number, Filled]),
    must("take", &[Number, Filled]),
    may("searchParams", &[]).form(&SEARCH_65),
    may("sortParams", &[]).form(&SORT),
]]);

/// The id in a path.
pub(super) static ID: Form = Form::of(&[&[must("id", &[Uuid, Filled])]]);

pub(super) static COUNTED: Form = Form::of(&[&[must("experimentIds", &[Uuids, Array, Filled])]]);
pub(super) static DETAILED: Form = Form::of(&[&[must("experimentId", NAME)]]);

pub(super) static SEGMENT: Form = Form::of(&[&[
    may("id", &[Uuid]),
    must("name", NAME),
    may("description", TEXT),
    may("listType", TEXT),
    must("context", NAME),
    must("type", &[OneOf(&words::SEGMENTS), Filled]),
    must("userIds", &[Texts, Array]),
    may("tags", &[Texts, Array]),
    must("groups", &[Array]).each(&GROUP),
    must("subSegmentIds", &[Texts, Array]),
]]);

const GROUPS: Check = Own("IsGroupRecord", "The Group is not a valid Record<string, string[]>", is_groups);
const WORKING_GROUPS: Check =
    Own("IsWorkingGroupRecord", "The WorkingGroup is not a valid Record<string, string>", is_working_groups);

/// Only groups may be set for a student.
pub(super) static INIT: Form =
    Form { fields: &[&[may("group", &[GROUPS]), may("workingGroup", &[WORKING_GROUPS])]], closed: true };
pub(super) static GROUP_MEMBERSHIP: Form =
    Form::of(&[&[may("group", &[GROUPS]), may("workingGroup", &[WORKING_GROUPS])]]);
pub(super) static WORKING_GROUP: Form = Form::of(&[&[must("workingGroup", &[Filled, WORKING_GROUPS])]]);

fn filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_groups(value: &Value, _: &Value) -> bool {
    is_record(value, |ids| ids.as_array().is_some_and(|ids| ids.iter().all(filled)))
}

fn is_working_groups(value: &Value, _: &Value) -> bool {
    is_record(value, filled)
}

/// Whether every entry has a name and passes.
fn is_record(value: &Value, test: fn(&Value) -> bool) -> bool {
    value.as_object().is_some_and(|fields| fields.iter().all(|(name, entry)| !name.is_empty() && test(entry)))
}

pub(super) static ASSIGN: Form = Form::of(&[&[must("context", NAME)]]);

static MARKED: Form = Form::of(&[&[may("id", TEXT), may("conditionCode", TEXT), may("experimentId", TEXT)]]);
static VISIT: Form = Form::of(&[&[
    must("site", &[Filled, Text]),
    must("target", TEXT),
    may("assignedCondition", &[]).form(&MARKED),
]]);
static MARK_FIELDS: [Field; 4] = [
    must("data", &[Defined]).form(&VISIT),
    may("status", &[OneOf(&words::STATUSES)]),
    may("uniquifier", TEXT),
    may("clientError", TEXT),
];
pub(super) static MARK: Form = Form::of(&[&MARK_FIELDS]);

const ATTRIBUTES: Check = Own(
    "IsLogAttributesRecord",
    "The Attributes value is not a valid Record<string, string | number>",
    |value, _| is_record(value, |entry| filled(entry) || entry.is_number()),
);
static LOGGED_GROUP: Form = Form::of(&[&[
    must("groupClass", &[Filled, Text]),
    must("groupKey", &[Filled, Text]),
    must("groupUniquifier", &[Filled, Text]),
    must("attributes", &[ATTRIBUTES, Filled]),
]]);
static LOGGED: Form =
    Form::of(&[&[may("attributes", &[ATTRIBUTES]), may("groupedMetrics", &[Array]).each(&LOGGED_GROUP)]]);
static LOG_ENTRY: Form =
    Form::of(&[&[must("timestamp", &[Filled, Text]), must("metrics", &[Filled, Object]).form(&LOGGED)]]);
static LOG_FIELDS: [Field; 1] = [must("value", &[Array, Filled]).each(&LOG_ENTRY)];
pub(super) static LOG: Form = Form::of(&[&LOG_FIELDS]);

static ALIAS_FIELDS: [Field; 1] = [must("aliases", &[Texts, Array])];
pub(super) static ALIASES: Form = Form::of(&[&ALIAS_FIELDS]);

const BOTH_OR_NEITHER: Check = Own(
    "bothSessionPropertiesRequired",
    "Both groupsForSession and includeStoredUserGroups must be provided together, or neither should be provided",
    |_, request| {
        request.get("groupsForSession").is_some() == request.get("includeStoredUserGroups").is_some()
    },
);
pub(super) static FLAGS: Form = Form::of(&[&[
    must("context", NAME),
    may("groupsForSession", &[BOTH_OR_NEITHER, Object]),
    may("includeStoredUserGroups", &[BOTH_OR_NEITHER, Flag]),
]]);

const POINTS_AT_EXPERIMENT: Check = Own(
    "requireDecisionPointOrExperimentId",
    "experimentId or secondary lookup details (context and decisionPoint) must be provided.",
    |_, reward| {
        let is_given = |field: &str| !reward[field].is_null() && reward[field] != "";
        is_given("experimentId") || (is_given("decisionPoint") && is_given("context"))
    },
);
pub(super) static REWARD: Form = Form::of(&[&[
    must("rewardValue", &[OneOf(&words::REWARDS), Filled]),
    must("experimentId", &[POINTS_AT_EXPERIMENT]),
]]);

/// Older applications name the student in the body.
static USER: [Field; 1] = [must("userId", NAME)];
static ANY_USER: [Field; 1] = [must("userId", &[Filled])];
static ID_FIELD: [Field; 1] = [must("id", NAME)];
static GROUP_FIELDS: [Field; 2] = [may("group", &[GROUPS]), may("workingGroup", &[WORKING_GROUPS])];
pub(super) static V5_INIT: Form = Form::of(&[&ID_FIELD, &GROUP_FIELDS]);
pub(super) static V5_WORKING_GROUP: Form =
    Form::of(&[&ID_FIELD, &[must("workingGroup", &[Filled, WORKING_GROUPS])]]);
pub(super) static V5_ASSIGN: Form = Form::of(&[&USER, &[must("context", NAME)]]);
pub(super) static V5_MARK: Form = Form::of(&[&ANY_USER, &MARK_FIELDS]);
pub(super) static V5_LOG: Form = Form::of(&[&USER, &LOG_FIELDS]);
pub(super) static V5_ALIASES: Form = Form::of(&[&ANY_USER, &ALIAS_FIELDS]);

/// A name, and whether a metric is declared correctly, group by group.
const METRICS: Check = Own(
    "validateMetricUnit",
    "The MetricUnit array is not a valid ISingleMetric or IGroupMetric",
    |metrics, _| metrics.as_array().is_some_and(|metrics| metrics.iter().all(is_metric)),
);
pub(super) static METRIC_UNITS: Form =
    Form::of(&[&[must("metricUnit", &[METRICS, Filled, Array]), must("context", &[Texts, Filled, Array])]]);
pub(super) static ANALYSIS: Form = Form::of(&[&[must("queryIds", &[Array, Filled, Texts])]]);

fn is_metric(metric: &Value) -> bool {
    let is_name = |value: &Value| value.as_str().is_some_and(|name| !name.trim().is_empty());
    if metric.get("groupClass").is_some() {
        return is_name(&metric["groupClass"])
            && metric["allowedKeys"].as_array().is_some_and(|keys| keys.iter().all(is_name))
            && metric["attributes"].as_array().is_some_and(|all| all.iter().all(is_metric));
    }
    let is_value = |value: &Value| value.is_string() || value.is_number();
    let is_list = metric["allowedValues"].as_array().is_some_and(|allowed| allowed.iter().all(is_value));
    let is_free = metric["datatype"] == "continuous" && metric.get("allowedValues").is_none();
    let is_kind = metric["datatype"] == "continuous" || metric["datatype"] == "categorical";
    is_name(&metric["metric"]) && is_kind && (is_free || is_list)
}
