//! Reads the server's data about experiments.

use serde_json::Value;

use super::fields::Fields;
use crate::client::model::{
    Condition, ConditionEnrollment, ConditionPayload, Context, ContextMetadata, DecisionPoint,
    DeletedExperiment, EnrollmentDetail, Experiment, ExperimentName, GlobalExclusion, GroupMember, Health,
    Members, Payload, PointEnrollment, PostRule, Raw, SegmentRef, StateChange,
};
use crate::client::pages::Page;
use crate::client::reply::Body;
use crate::client::words::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    PostExperimentRule,
};

/// The readable entries of a list; `None` if the value is not a list.
pub(in crate::client) fn list<T>(value: &Value, entry: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    Some(value.as_array()?.iter().filter_map(entry).collect())
}

pub(in crate::client) fn health(body: &Body) -> Option<Health> {
    let Body::Json(value) = body else { return None };
    let fields = Fields::of(value)?;
    Some(Health {
        version: fields.text("version")?,
        name: fields.text_or_empty("name"),
        description: fields.text_or_empty("description"),
    })
}

pub(in crate::client) fn context_metadata(value: &Value) -> Option<ContextMetadata> {
    let contexts = value.get("contextMetadata")?.as_object()?;
    let read = |(name, value)| Some((String::clone(name), context(value)?));
    Some(ContextMetadata { contexts: contexts.iter().filter_map(read).collect() })
}

fn context(value: &Value) -> Option<Context> {
    let fields = Fields::of(value)?;
    Some(Context {
        conditions: fields.texts("CONDITIONS"),
        group_types: fields.texts("GROUP_TYPES"),
        sites: fields.texts("EXP_POINTS"),
        targets: fields.texts("EXP_IDS"),
    })
}

pub(in crate::client) fn experiment_name(value: &Value) -> Option<ExperimentName> {
    let fields = Fields::of(value)?;
    Some(ExperimentName { id: fields.text("id")?, name: fields.text_or_empty("name") })
}

pub(in crate::client) fn experiment(value: &Value) -> Option<Experiment> {
    experiment_of(value.as_object()?)
}

pub(in crate::client) fn experiment_of(raw: &Raw) -> Option<Experiment> {
    let fields = Fields(raw);
    let conditions = ordered(&fields, "conditions", condition, |condition| condition.order);
    Some(Experiment {
        id: fields.text("id")?,
        name: fields.text_or_empty("name"),
        description: fields.text_or_empty("description"),
        context: fields.texts("context"),
        state: fields.word("state", ExperimentState::Unknown(String::new())),
        tags: fields.texts("tags"),
        design: fields.word("type", ExperimentType::Simple),
        assignment_unit: fields.word("assignmentUnit", AssignmentUnit::Individual),
        group_type: fields.text("group").filter(|group| !group.is_empty()),
        consistency_rule: fields.get("consistencyRule").as_str().map(ConsistencyRule::from),
        assignment_algorithm: fields.word("assignmentAlgorithm", AssignmentAlgorithm::Random),
        post_rule: post_rule(&fields, &conditions),
        filter_mode: fields.word("filterMode", FilterMode::IncludeAll),
        inclusion: members(fields.get("experimentSegmentInclusion")),
        exclusion: members(fields.get("experimentSegmentExclusion")),
        inclusion_segments: segments(fields.get("experimentSegmentInclusion")),
        exclusion_segments: segments(fields.get("experimentSegmentExclusion")),
        conditions,
        decision_points: ordered(&fields, "partitions", decision_point, |point| point.order),
        payloads: fields.entries("conditionPayloads").filter_map(condition_payload).collect(),
        state_log: ordered(&fields, "stateTimeLogs", state_change, |change| change.at.clone()),
        start_on: fields.text("startOn"),
        end_on: fields.text("endOn"),
        created_at: fields.text("createdAt"),
        updated_at: fields.text("updatedAt"),
        version_number: fields.get("versionNumber").as_u64(),
    })
}

/// Servers return these lists in any order.
fn ordered<T, K: Ord>(
    fields: &Fields<'_>,
    name: &str,
    read: fn(&Value) -> Option<T>,
    place: fn(&T) -> K,
) -> Vec<T> {
    let mut entries: Vec<T> = fields.entries(name).filter_map(read).collect();
    entries.sort_by_key(place);
    entries
}

pub(in crate::client) fn conditions(value: &Value) -> Option<Vec<Condition>> {
    let mut conditions = list(value, condition)?;
    conditions.sort_by_key(|condition| condition.order);
    Some(conditions)
}

fn condition(value: &Value) -> Option<Condition> {
    let fields = Fields::of(value)?;
    Some(Condition {
        id: fields.text("id")?,
        code: fields.text_or_empty("conditionCode"),
        weight: fields.number("assignmentWeight"),
        name: fields.text("name"),
        description: fields.text("description"),
        order: fields.integer("order"),
    })
}

fn decision_point(value: &Value) -> Option<DecisionPoint> {
    let fields = Fields::of(value)?;
    Some(DecisionPoint {
        id: fields.text("id")?,
        site: fields.text_or_empty("site"),
        target: fields.text_or_empty("target"),
        description: fields.text("description"),
        order: fields.integer("order"),
        exclude_if_reached: fields.flag("excludeIfReached"),
    })
}

fn condition_payload(value: &Value) -> Option<ConditionPayload> {
    let fields = Fields::of(value)?;
    Some(ConditionPayload {
        id: fields.text("id")?,
        condition_id: reference(fields.get("parentCondition")),
        decision_point_id: reference(fields.get("decisionPoint")),
        payload: payload(fields.get("payload"))?,
    })
}

/// A reference is an id or a whole object.
fn reference(value: &Value) -> String {
    let id = value.as_str().or_else(|| value.get("id")?.as_str());
    id.unwrap_or_default().to_owned()
}

pub(super) fn payload(value: &Value) -> Option<Payload> {
    let fields = Fields::of(value)?;
    let value = match fields.get("value") {
        Value::String(text) => text.clone(),
        Value::Null => return None,
        other => other.to_string(),
    };
    Some(Payload { kind: fields.text("type").unwrap_or_else(|| "string".into()), value })
}

fn state_change(value: &Value) -> Option<StateChange> {
    let fields = Fields::of(value)?;
    Some(StateChange {
        from: ExperimentState::from(fields.get("fromState").as_str()?),
        to: ExperimentState::from(fields.get("toState").as_str()?),
        at: fields.text("timeLog"),
    })
}

/// `revertTo` is the id of a condition; only the rule `assign` has one.
fn post_rule(fields: &Fields<'_>, conditions: &[Condition]) -> PostRule {
    let rule = fields.word("postExperimentRule", PostExperimentRule::Continue);
    let id = fields.get("revertTo").as_str().filter(|_| rule == PostExperimentRule::Assign);
    let condition = id.and_then(|id| conditions.iter().find(|condition| condition.id == id));
    PostRule { rule, condition_code: condition.map(|condition| condition.code.clone()) }
}

/// One object per list up to 6.2, an array of such objects from 6.3 on.
pub(super) fn lists(value: &Value) -> &[Value] {
    match value {
        Value::Array(lists) => lists.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

fn members(value: &Value) -> Members {
    let mut members = Members::default();
    for segment in lists(value).iter().filter_map(|list| Fields::of(list.get("segment")?)) {
        add_members(&segment, &mut members);
    }
    members
}

pub(super) fn add_members(segment: &Fields<'_>, members: &mut Members) {
    let users = segment.entries("individualForSegment");
    members.users.extend(users.filter_map(|user| Some(user["userId"].as_str()?.to_owned())));
    members.groups.extend(segment.entries("groupForSegment").filter_map(group_member));
}

fn segments(value: &Value) -> Vec<SegmentRef> {
    let lists = lists(value).iter().filter_map(|list| Fields::of(list.get("segment")?));
    lists.flat_map(|list| sub_segments(&list)).collect()
}

pub(super) fn sub_segments(segment: &Fields<'_>) -> Vec<SegmentRef> {
    let read = |value| {
        let fields = Fields::of(value)?;
        Some(SegmentRef { id: fields.text("id")?, name: fields.text_or_empty("name") })
    };
    segment.entries("subSegments").filter_map(read).collect()
}

/// Servers before 6.0 have one list for all contexts.
pub(in crate::client) fn global_exclusion(value: &Value, context: &str) -> Option<GlobalExclusion> {
    let segments: Vec<Fields<'_>> = value.as_array()?.iter().filter_map(Fields::of).collect();
    let of = |name: &str| segments.iter().find(|segment| segment.get("context") == name);
    let Some(segment) = of(context).or_else(|| of("ALL")) else {
        return Some(GlobalExclusion::default());
    };
    let mut global = GlobalExclusion { segments: sub_segments(segment), ..GlobalExclusion::default() };
    add_members(segment, &mut global.members);
    Some(global)
}

/// "Everybody", which servers up to 6.2 store as a group, belongs to the filter mode.
pub(super) fn group_member(value: &Value) -> Option<GroupMember> {
    let fields = Fields::of(value)?;
    if value["type"] == "All" && value["groupId"] == "All" {
        return None;
    }
    Some(GroupMember { group_type: fields.text("type")?, group_id: fields.text("groupId")? })
}

/// The response is a list with the deleted row. An empty response means success as well.
pub(in crate::client) fn deleted(id: &str, value: &Value) -> DeletedExperiment {
    let row = value.as_array().and_then(|rows| rows.first()).unwrap_or(value);
    let name = row.get("name").and_then(Value::as_str).map(str::to_owned);
    DeletedExperiment { id: id.to_owned(), name }
}

pub(in crate::client) fn enrollment(value: &Value) -> Option<EnrollmentDetail> {
    let fields = Fields::of(value)?;
    Some(EnrollmentDetail {
        id: fields.text("id")?,
        users: fields.count("users"),
        groups: fields.count("groups"),
        users_excluded: fields.count("usersExcluded"),
        groups_excluded: fields.count("groupsExcluded"),
        conditions: fields.entries("conditions").filter_map(condition_enrollment).collect(),
    })
}

fn condition_enrollment(value: &Value) -> Option<ConditionEnrollment> {
    let fields = Fields::of(value)?;
    Some(ConditionEnrollment {
        id: fields.text("id")?,
        users: fields.count("users"),
        groups: fields.count("groups"),
        decision_points: fields.entries("partitions").filter_map(point_enrollment).collect(),
    })
}

fn point_enrollment(value: &Value) -> Option<PointEnrollment> {
    let fields = Fields::of(value)?;
    Some(PointEnrollment {
        id: fields.text("id")?,
        users: fields.count("users"),
        groups: fields.count("groups"),
    })
}

pub(in crate::client) fn page(value: &Value, skip: u64) -> Option<Page> {
    let fields = Fields::of(value)?;
    let experiments = list(fields.get("nodes"), experiment)?;
    Some(Page { total: fields.count("total"), skip, experiments })
}
