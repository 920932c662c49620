//! The calls that make an experiment's lists match the wanted members.
//!
//! As few as possible: a member who stays is never off the lists for a moment, because a visit in that moment
//! would exclude the student for good. A list with segments keeps them and is never removed.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::fields::Fields;
use super::read::{add_members, group_member, lists, sub_segments};
use crate::client::model::{GroupMember, Members, Raw};

/// The kind of a list of students. A list of groups has the kind of its groups.
const STUDENTS: &str = "individual";

/// The two kinds of lists of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Side {
    Inclusion,
    Exclusion,
}

impl Side {
    /// The experiment's field.
    fn field(self) -> &'static str {
        match self {
            Self::Inclusion => "experimentSegmentInclusion",
            Self::Exclusion => "experimentSegmentExclusion",
        }
    }

    /// The part of the path of its calls.
    pub(in crate::client) fn route(self) -> &'static str {
        match self {
            Self::Inclusion => "inclusionList",
            Self::Exclusion => "exclusionList",
        }
    }
}

/// One call about one list.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::client) enum ListStep {
    Add(Value),
    Change(String, Value),
    Remove(String),
}

/// A list before and after the change.
struct List<'a> {
    raw: Fields<'a>,
    id: String,
    kind: String,
    was: Members,
    now: Members,
}

/// The steps that make the lists of one side contain exactly these members; additions come first.
pub(in crate::client) fn steps(experiment: &Raw, side: Side, wanted: &Members) -> Vec<ListStep> {
    let empty = Value::Null;
    let mut stored = stored(experiment.get(side.field()).unwrap_or(&empty));
    let mut missing = keep_wanted(&mut stored, wanted);
    add_to_lists(&mut stored, &mut missing);
    let context = experiment.get("context").and_then(|context| context[0].as_str()).unwrap_or("");
    let mut steps = new_lists(&missing, context);
    let grows = |list: &List<'_>| list.now.users.len() + list.now.groups.len() >= list.count();
    steps.extend(stored.iter().filter(|list| grows(list)).filter_map(List::step));
    steps.extend(stored.iter().filter(|list| !grows(list)).filter_map(List::step));
    steps
}

fn stored(side: &Value) -> Vec<List<'_>> {
    let read = |list| {
        let raw = Fields::of(Value::get(list, "segment")?)?;
        let mut was = Members::default();
        add_members(&raw, &mut was);
        Some(List { id: raw.text("id")?, kind: raw.text_or_empty("listType"), now: was.clone(), was, raw })
    };
    lists(side).iter().filter_map(read).collect()
}

/// Removes unwanted and duplicate members from the lists, and returns the members that are on none yet.
fn keep_wanted(stored: &mut [List<'_>], wanted: &Members) -> Members {
    let mut users: HashSet<&String> = wanted.users.iter().collect();
    let mut groups: HashSet<&GroupMember> = wanted.groups.iter().collect();
    for list in stored {
        list.now.users.retain(|user| users.remove(user));
        list.now.groups.retain(|group| groups.remove(group));
    }
    Members {
        users: wanted.users.iter().filter(|user| users.remove(user)).cloned().collect(),
        groups: wanted.groups.iter().filter(|group| groups.remove(group)).cloned().collect(),
    }
}

/// Adds missing members to existing lists of their kind.
fn add_to_lists(stored: &mut [List<'_>], missing: &mut Members) {
    let of_kind = |stored: &[List<'_>], kind: &str| {
        stored.iter().position(|list| list.kind.eq_ignore_ascii_case(kind) && !list.has_segments())
    };
    if let Some(at) = of_kind(stored, STUDENTS) {
        stored[at].now.users.append(&mut missing.users);
    }
    missing.groups.retain(|group| match of_kind(stored, &group.group_type) {
        Some(at) => {
            stored[at].now.groups.push(group.clone());
            false
        }
        None => true,
    });
}

fn new_lists(missing: &Members, context: &str) -> Vec<ListStep> {
    let mut kinds: BTreeMap<&str, Members> = BTreeMap::new();
    for group in &missing.groups {
        kinds.entry(&group.group_type).or_default().groups.push(group.clone());
    }
    if !missing.users.is_empty() {
        kinds.entry(STUDENTS).or_default().users.clone_from(&missing.users);
    }
    let new = kinds.into_iter().map(|(kind, members)| {
        let name = format!("{kind} list");
        let body = json!({
            "name": name, "description": "", "context": context, "type": "private", "listType": kind,
        });
        ListStep::Add(with_members(body, &members, Vec::new(), &[]))
    });
    new.collect()
}

impl List<'_> {
    fn count(&self) -> usize {
        self.was.users.len() + self.was.groups.len()
    }

    fn has_segments(&self) -> bool {
        self.raw.entries("subSegments").next().is_some()
    }

    fn step(&self) -> Option<ListStep> {
        if self.now == self.was {
            return None;
        }
        let others = self.other_groups();
        if self.now.is_empty() && others.is_empty() && !self.has_segments() {
            return Some(ListStep::Remove(self.id.clone()));
        }
        let kept = ["id", "name", "description", "context", "type", "listType", "tags"];
        let kept = kept.into_iter().filter(|field| !self.raw.get(field).is_null());
        let body = kept.map(|field| (field.to_owned(), self.raw.get(field).clone())).collect::<Raw>();
        let segments = sub_segments(&self.raw);
        let segments: Vec<&str> = segments.iter().map(|segment| segment.id.as_str()).collect();
        let body = with_members(Value::Object(body), &self.now, others, &segments);
        Some(ListStep::Change(self.id.clone(), body))
    }

    /// Entries that are not groups in this crate's sense, such as "everybody".
    fn other_groups(&self) -> Vec<Value> {
        let entries = self.raw.entries("groupForSegment").filter(|entry| group_member(entry).is_none());
        entries.map(|entry| json!({ "type": entry["type"], "groupId": entry["groupId"] })).collect()
    }
}

fn with_members(mut list: Value, members: &Members, others: Vec<Value>, segments: &[&str]) -> Value {
    let group = |group: &GroupMember| json!({ "type": group.group_type, "groupId": group.group_id });
    list["userIds"] = json!(members.users);
    list["groups"] = members.groups.iter().map(group).chain(others).collect();
    list["subSegmentIds"] = json!(segments);
    list
}
