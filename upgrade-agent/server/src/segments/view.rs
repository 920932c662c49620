//! Segments in the bodies of responses.

use serde_json::{Value, json};

use crate::wire::dialect::Dialect;
use crate::wire::row::{row, with};
use crate::world::World;
use crate::world::model::{FlagTie, ListGroup, ListTie, Segment, Stamp};

/// A segment's own columns.
pub(crate) fn columns(segment: &Segment) -> Value {
    with(
        row(&segment.stamp),
        [
            ("id", json!(segment.id)),
            ("name", json!(segment.name)),
            ("description", json!(segment.description)),
            ("listType", json!(segment.list_type)),
            ("context", json!(segment.context)),
            ("type", json!(segment.kind)),
            ("tags", json!(segment.tags)),
        ],
    )
}

/// With its members, which refer back to it, and the columns of its sub-segments.
pub(crate) fn whole(world: &World, segment: &Segment) -> Value {
    let subs = segment.sub_segments.iter().filter_map(|id| world.segment(id));
    with_members(segment, subs.map(columns).collect())
}

pub(super) fn with_members(segment: &Segment, sub_segments: Value) -> Value {
    let id = &segment.id;
    let stamp = row(&Stamp::new(&segment.enlisted_at));
    let user = |user: &String| with(stamp.clone(), [("segmentId", json!(id)), ("userId", json!(user))]);
    let group = |group: &ListGroup| {
        with(
            stamp.clone(),
            [("segmentId", json!(id)), ("type", json!(group.kind)), ("groupId", json!(group.group_id))],
        )
    };
    with(
        columns(segment),
        [
            ("individualForSegment", segment.users.iter().map(user).collect()),
            ("groupForSegment", segment.groups.iter().map(group).collect()),
            ("subSegments", sub_segments),
        ],
    )
}

/// The ties only.
pub(crate) fn ties(dialect: Dialect, ties: &[ListTie], experiment: &str) -> Value {
    let all = ties.iter().map(|tie| self::tie(tie, experiment));
    if dialect == Dialect::V62 { last_of(all) } else { all.collect() }
}

/// Up to 6.2 an experiment has one list of each kind, not an array. After a merge it has more, of which the
/// original returns an arbitrary one.
fn last_of(all: impl Iterator<Item = Value>) -> Value {
    all.last().unwrap_or_default()
}

pub(crate) fn tie(tie: &ListTie, experiment: &str) -> Value {
    with(row(&tie.stamp), [("segmentId", json!(tie.segment_id)), ("experimentId", json!(experiment))])
}

/// A tie to a flag.
pub(crate) fn flag_tie(tie: &FlagTie, flag: &str) -> Value {
    with(row(tie), [("featureFlagId", json!(flag))])
}

/// The lists of an experiment, as stored.
pub(crate) fn lists(world: &World, ties: &[ListTie], experiment: &str) -> Value {
    let list = |tie: &ListTie| {
        let segment = world.segment(&tie.segment_id)?;
        Some(with(self::tie(tie, experiment), [("segment", whole(world, segment))]))
    };
    let all = ties.iter().filter_map(list);
    if world.dialect == Dialect::V62 { last_of(all) } else { all.collect() }
}

/// The lists of an experiment whose type is known or follows from their members; others are left out.
pub(crate) fn typed_lists(world: &World, ties: &[ListTie], experiment: &str) -> Value {
    if world.dialect == Dialect::V62 {
        return lists(world, ties, experiment);
    }
    let list = |tie: &ListTie| {
        let segment = world.segment(&tie.segment_id)?;
        let shown = with(whole(world, segment), [("listType", json!(list_type(segment)?))]);
        Some(with(self::tie(tie, experiment), [("segment", shown)]))
    };
    ties.iter().filter_map(list).collect()
}

fn list_type(segment: &Segment) -> Option<&str> {
    if let Some(known) = segment.list_type.as_deref().filter(|known| !known.is_empty()) {
        return Some(known);
    }
    let (users, groups, subs) =
        (!segment.users.is_empty(), &segment.groups, !segment.sub_segments.is_empty());
    let first = groups.first().map(|group| group.kind.as_str());
    match (users, first, subs) {
        (true, None, false) => Some("individual"),
        (false, None, true) => Some("segment"),
        (false, Some(kind), false) if kind != "All" && groups.iter().all(|group| group.kind == kind) => {
            Some(kind)
        }
        _ => None,
    }
}
