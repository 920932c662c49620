//! The parts of a request that only servers up to 6.2 need: one segment object per list, always present.

use std::collections::HashSet;

use serde_json::{Value, json};
use uuid::Uuid;

use super::read::group_member;
use crate::client::draft::{ExperimentPatch, NewExperiment};
use crate::client::model::{GroupMember, Members, Raw};
use crate::client::words::FilterMode;

const INCLUSION: &str = "experimentSegmentInclusion";
const EXCLUSION: &str = "experimentSegmentExclusion";

/// Adds the segments, and the condition of the rule, whose id this dialect keeps.
pub(super) fn complete_create(body: &mut Raw, new: &NewExperiment, rule_id: Option<Uuid>) {
    body.insert(INCLUSION.into(), segment(&new.inclusion, new.filter_mode == FilterMode::IncludeAll));
    body.insert(EXCLUSION.into(), segment(&new.exclusion, false));
    if let Some(id) = rule_id {
        body.insert("revertTo".into(), json!(id));
    }
}

fn segment(members: &Members, with_everybody: bool) -> Value {
    let users = members.users.iter().map(|user| json!({ "userId": user }));
    let mut groups: Vec<Value> = members.groups.iter().map(group_entry).collect();
    if with_everybody {
        groups.push(everybody());
    }
    json!({ "segment": {
        "individualForSegment": users.collect::<Vec<_>>(),
        "groupForSegment": groups,
        "subSegments": [],
        "type": "private",
    } })
}

/// An update without its segments is rejected. A filter mode is written as "everybody" on a list.
/// Sub-segments stay.
pub(in crate::client) fn complete_update(whole: &mut Raw, patch: &ExperimentPatch) {
    for (list, wanted) in [(INCLUSION, &patch.inclusion), (EXCLUSION, &patch.exclusion)] {
        if !whole.get(list).is_some_and(Value::is_object) {
            whole.insert(list.into(), segment(&Members::default(), false));
        }
        let segment = whole.get_mut(list).and_then(|list| list.get_mut("segment"));
        if let (Some(Value::Object(segment)), Some(wanted)) = (segment, wanted) {
            set_members(segment, wanted);
        }
    }
    let groups = whole.get_mut(INCLUSION).and_then(|list| list.get_mut("segment"));
    let groups = groups.and_then(|segment| segment.get_mut("groupForSegment"));
    if let (Some(filter), Some(Value::Array(groups))) = (&patch.filter_mode, groups) {
        groups.retain(|group| group["type"] != "All");
        if *filter == FilterMode::IncludeAll {
            groups.push(everybody());
        }
    }
}

/// Remaining entries keep the fields that the server wrote beside the id, and entries that are not groups in
/// this crate's sense, such as "everybody", stay.
fn set_members(segment: &mut Raw, wanted: &Members) {
    let mut users: HashSet<&str> = wanted.users.iter().map(String::as_str).collect();
    let mut entries = taken(segment, "individualForSegment");
    entries.retain(|entry| entry["userId"].as_str().is_some_and(|user| users.remove(user)));
    let new = wanted.users.iter().filter(|user| users.remove(user.as_str()));
    entries.extend(new.map(|user| json!({ "userId": user })));
    segment.insert("individualForSegment".into(), Value::Array(entries));

    let mut groups: HashSet<&GroupMember> = wanted.groups.iter().collect();
    let mut entries = taken(segment, "groupForSegment");
    entries.retain(|entry| group_member(entry).is_none_or(|group| groups.remove(&group)));
    entries.extend(wanted.groups.iter().filter(|group| groups.remove(group)).map(group_entry));
    segment.insert("groupForSegment".into(), Value::Array(entries));
}

fn taken(segment: &mut Raw, field: &str) -> Vec<Value> {
    match segment.remove(field) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    }
}

fn group_entry(group: &GroupMember) -> Value {
    json!({ "type": group.group_type, "groupId": group.group_id })
}

/// "Everybody" is a group of its own in this dialect.
fn everybody() -> Value {
    json!({ "type": "All", "groupId": "All" })
}
