//! Writes segments. The checks come first, so a rejected body changes nothing.

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::Value;

use crate::core::Core;
use crate::wire::body::{check_texts, entries, text};
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::world::World;
use crate::world::model::{FlagTie, ListGroup, ListTie, Segment, SegmentKind, Stamp};
use crate::world::table::key;

/// The values that the original's database rejects.
pub(crate) fn check(world: &World, input: &Value) -> Result<(), Fault> {
    check_texts(input)?;
    let id = input["id"].as_str().filter(|id| !id.is_empty());
    if let Some(id) = id.filter(|_| !validate::is_uuid(&input["id"])) {
        return Err(Fault::database(format!("invalid input syntax for type uuid: \"{id}\"")));
    }
    let is_new = id.is_none_or(|id| world.segment(&id.to_lowercase()).is_none());
    for column in ["name", "context"] {
        let is_missing =
            if is_new { input[column].is_null() } else { input.get(column) == Some(&Value::Null) };
        if is_missing {
            return Err(Fault::database(null_in(column, "segment")));
        }
    }
    match input["type"].as_str() {
        Some(word) if kind(input).is_none() => {
            Err(Fault::database(format!("invalid input value for enum segment_type_enum: \"{word}\"")))
        }
        // Lists in the body are created with the segment.
        _ => entries(input, "subSegments")
            .filter(|list| list["type"] == "private")
            .try_for_each(|list| check(world, &unbound(list))),
    }
}

pub(crate) fn null_in(column: &str, table: &str) -> String {
    format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint")
}

/// Creates the segment of this body, or updates the one with its id: columns that the body omits stay,
/// members are replaced. Unknown sub-segments are skipped. Returns the id.
pub(crate) fn write(core: &mut Core, input: &Value) -> String {
    let now = core.now();
    let given = text(input, "id").filter(|id| !id.is_empty()).map(|id| id.to_lowercase());
    let id = given.unwrap_or_else(|| core.new_id());
    let sub_segments = sub_segments(core, input);
    let at = key(&[&id]);
    let old = core.world.segments.get(&at).cloned();
    let new = Segment {
        enlisted_at: now.clone(),
        users: users(input),
        groups: groups(input),
        sub_segments,
        ..columns(core, input, id.clone(), old.as_ref(), &now)
    };
    core.world.segments.insert(at, new);
    id
}

/// The columns. A change of a value is counted; a write without one is not.
fn columns(core: &Core, input: &Value, id: String, old: Option<&Segment>, now: &str) -> Segment {
    let was = |pick: fn(&Segment) -> Option<String>| old.and_then(pick);
    let column = |field: &str, was: Option<String>| match input.get(field) {
        None => was,
        Some(_) => text(input, field),
    };
    let tags = match &input["tags"] {
        Value::Array(_) => {
            Some(entries(input, "tags").filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => old.and_then(|old| old.tags.clone()),
    };
    let mut new = Segment {
        stamp: old.map_or_else(|| Stamp::new(now), |old| old.stamp.clone()),
        sequence: old.map_or_else(|| core.world.next_segment(), |old| old.sequence),
        id,
        name: column("name", was(|old| Some(old.name.clone()))).unwrap_or_default(),
        description: column("description", was(|old| old.description.clone())),
        list_type: column("listType", was(|old| old.list_type.clone())),
        context: column("context", was(|old| Some(old.context.clone()))).unwrap_or_default(),
        kind: kind(input).or(old.map(|old| old.kind)).unwrap_or(SegmentKind::Public),
        tags,
        enlisted_at: String::new(),
        users: Vec::new(),
        groups: Vec::new(),
        sub_segments: Vec::new(),
    };
    if old.is_some_and(|old| differs(old, &new)) {
        new.stamp.touch(now);
    }
    new
}

fn differs(old: &Segment, new: &Segment) -> bool {
    old.name != new.name
        || old.description != new.description
        || old.list_type != new.list_type
        || old.context != new.context
        || old.kind != new.kind
        || old.tags != new.tags
}

fn kind(input: &Value) -> Option<SegmentKind> {
    serde_json::from_value(input["type"].clone()).ok()
}

/// A public segment has lists of its own: lists of others in the body are copied.
fn sub_segments(core: &mut Core, input: &Value) -> Vec<String> {
    let named = entries(input, "subSegmentIds").filter_map(Value::as_str).map(str::to_lowercase);
    let mut known: Vec<String> = named.filter(|id| core.world.segment(id).is_some()).collect();
    dedup(&mut known);
    let is_private = |id: &String| core.world.segment(id).is_some_and(|s| s.kind == SegmentKind::Private);
    let inline: Vec<&Value> =
        entries(input, "subSegments").filter(|list| list["type"] == "private").collect();
    let has_lists = known.iter().any(is_private) || !inline.is_empty();
    if kind(input) != Some(SegmentKind::Public) || !has_lists {
        return known;
    }
    let copies = known.iter().map(|id| copy(core, id)).collect::<Vec<_>>();
    let written = inline.into_iter().map(|list| write(core, &unbound(list))).collect::<Vec<_>>();
    [copies, written].concat()
}

fn copy(core: &mut Core, id: &str) -> String {
    let now = core.now();
    let new_id = core.new_id();
    let sequence = core.world.next_segment();
    if let Some(old) = core.world.segment(id).cloned() {
        let new = Segment { stamp: Stamp::new(&now), sequence, id: new_id.clone(), enlisted_at: now, ..old };
        core.world.segments.insert(key(&[&new_id]), new);
    }
    new_id
}

/// A list in a file or response, as the body that creates it.
pub(crate) fn unbound(shown: &Value) -> Value {
    let mut input = shown.clone();
    let Some(fields) = input.as_object_mut() else { return input };
    fields.remove("id");
    let members = |field: &str, member: fn(&Value) -> Option<Value>| -> Value {
        entries(shown, field).filter_map(member).collect()
    };
    fields.insert("userIds".into(), members("individualForSegment", |user| user.get("userId").cloned()));
    fields.insert("groups".into(), members("groupForSegment", |group| Some(group.clone())));
    fields.insert("subSegmentIds".into(), members("subSegments", |segment| segment.get("id").cloned()));
    fields.remove("subSegments");
    input
}

fn users(input: &Value) -> Vec<String> {
    let mut all: Vec<String> = entries(input, "userIds").filter_map(Value::as_str).map(trimmed).collect();
    dedup(&mut all);
    all
}

fn groups(input: &Value) -> Vec<ListGroup> {
    let group = |entry: &Value| {
        Some(ListGroup { kind: text(entry, "type")?, group_id: trimmed(entry["groupId"].as_str()?) })
    };
    let mut all: Vec<ListGroup> = entries(input, "groups").filter_map(group).collect();
    dedup(&mut all);
    all
}

/// Ids in files may contain line ends and tabs.
fn trimmed(id: &str) -> String {
    id.replace(['\r', '\n', '\t'], "").trim().to_owned()
}

fn dedup<T: Eq + Hash + Clone>(all: &mut Vec<T>) {
    let mut met = HashSet::with_capacity(all.len());
    all.retain(|one| met.insert(one.clone()));
}

/// Removes a segment from everything that uses it. Its own lists stay.
pub(crate) fn remove(world: &mut World, id: &str) -> Option<Segment> {
    let gone = world.segments.remove(&key(&[id]))?;
    let parents = world.segments.values().filter(|segment| segment.sub_segments.iter().any(|sub| sub == id));
    let parents: Vec<String> = parents.map(|segment| key(&[&segment.id])).collect();
    for at in parents {
        if let Some(parent) = world.segments.get_mut(&at) {
            parent.sub_segments.retain(|sub| sub != id);
        }
    }
    untie_experiments(world, id);
    untie_flags(world, id);
    Some(gone)
}

/// Removes the ties of a segment to experiments.
fn untie_experiments(world: &mut World, id: &str) {
    let is_tied = |lists: &[ListTie]| lists.iter().any(|tie| tie.segment_id == id);
    let tied = world.experiments.values().filter(|e| is_tied(&e.inclusion) || is_tied(&e.exclusion));
    let tied: Vec<String> = tied.map(|experiment| key(&[&experiment.columns.id])).collect();
    for at in tied {
        if let Some(experiment) = world.experiments.get_mut(&at) {
            experiment.inclusion.retain(|tie| tie.segment_id != id);
            experiment.exclusion.retain(|tie| tie.segment_id != id);
        }
    }
}

/// Removes the ties of a segment to flags.
fn untie_flags(world: &mut World, segment: &str) {
    let is_tied = |ties: &[FlagTie]| ties.iter().any(|tie| tie.segment_id == segment);
    let tied = world.flags.values().filter(|flag| is_tied(&flag.inclusion) || is_tied(&flag.exclusion));
    let tied: Vec<String> = tied.map(|flag| key(&[&flag.columns.id])).collect();
    for at in tied {
        if let Some(flag) = world.flags.get_mut(&at) {
            flag.inclusion.retain(|tie| tie.segment_id != segment);
            flag.exclusion.retain(|tie| tie.segment_id != segment);
        }
    }
}

/// Deletes a segment with its own lists.
pub(crate) fn remove_with_lists(world: &mut World, id: &str) -> Option<Segment> {
    let gone = remove(world, id)?;
    for list in &gone.sub_segments {
        if world.segment(list).is_some_and(|list| list.kind == SegmentKind::Private) {
            remove_with_lists(world, list);
        }
    }
    Some(gone)
}
