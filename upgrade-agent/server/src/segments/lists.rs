//! The verdict of an experiment's lists and of the global list on a student. A list includes the members of
//! its sub-segments at any depth. Groups count by membership, not by working group; only the global list uses
//! the working group.

use std::collections::HashSet;

use crate::wire::words::{AssignmentUnit, ConsistencyRule, FilterMode};
use crate::world::World;
use crate::world::model::{Experiment, ListGroup, ListTie, Segment, SegmentKind, User};

/// The verdict of the lists on a student.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListVerdict {
    /// Included.
    In,
    /// Excluded by id.
    Out,
    /// Excluded by the assigned group.
    OutByAssignedGroup,
    /// Excluded by a group of another kind.
    OutByOtherGroup,
}

/// The verdict of the lists. They do not apply to a student with an enrolment of their own in a group
/// experiment; then only the filter mode counts.
pub(crate) fn listed(world: &World, experiment: &Experiment, user: &User) -> ListVerdict {
    let columns = &experiment.columns;
    let beyond = columns.consistency_rule == Some(ConsistencyRule::Individual)
        && columns.assignment_unit == AssignmentUnit::Group
        && world.enrollment(&columns.id, &user.id).is_some();
    let segments = |ties: &[ListTie]| {
        let ids = ties.iter().filter(|_| !beyond).map(|tie| tie.segment_id.as_str());
        with_sub_segments(world, ids)
    };
    let inclusion = segments(&experiment.inclusion);
    let exclusion = segments(&experiment.exclusion);
    by_segments(&inclusion, &exclusion, &columns.filter_mode, user, columns.group.as_deref())
}

/// Whether these lists include a student.
pub(crate) fn includes_student(
    world: &World,
    (inclusion, exclusion): (&[&str], &[&str]),
    filter: &FilterMode,
    user: &User,
) -> bool {
    let segments = |ids: &[&str]| with_sub_segments(world, ids.iter().copied());
    by_segments(&segments(inclusion), &segments(exclusion), filter, user, None) == ListVerdict::In
}

fn by_segments(
    inclusion: &[&Segment],
    exclusion: &[&Segment],
    filter: &FilterMode,
    user: &User,
    assigned: Option<&str>,
) -> ListVerdict {
    if names_user(exclusion, user) {
        return ListVerdict::Out;
    }
    if names_user(inclusion, user) {
        return ListVerdict::In;
    }
    if *filter == FilterMode::IncludeAll {
        return by_exclusion(exclusion, user, assigned);
    }
    let is_in = group_kinds(inclusion, user).next().is_some();
    if is_in && group_kinds(exclusion, user).next().is_none() { ListVerdict::In } else { ListVerdict::Out }
}

/// Whether the global list of a context excludes a student, by id or by working group. As in the original,
/// any group on the list excludes every student without a working group.
pub(crate) fn is_globally_excluded(world: &World, context: &str, user: &User) -> bool {
    let is_global =
        |segment: &&Segment| segment.kind == SegmentKind::GlobalExclude && segment.context == context;
    let Some(global) = world.segments.values().find(is_global) else { return false };
    let segments = with_sub_segments(world, [global.id.as_str()].into_iter());
    if names_user(&segments, user) {
        return true;
    }
    let mut groups = segments.iter().flat_map(|segment| &segment.groups);
    match user.working_group.as_ref().filter(|working| !working.is_empty()) {
        None => groups.next().is_some(),
        Some(working) => groups.any(|group| working.get(&group.kind) == Some(&group.group_id)),
    }
}

/// These segments and all below them, each once, because segments may contain each other.
fn with_sub_segments<'w, 'i>(world: &'w World, ids: impl Iterator<Item = &'i str>) -> Vec<&'w Segment> {
    let mut waiting: Vec<&Segment> = ids.filter_map(|id| world.segment(id)).collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some(segment) = waiting.pop() {
        if seen.insert(segment.id.as_str()) {
            waiting.extend(segment.sub_segments.iter().filter_map(|id| world.segment(id)));
            found.push(segment);
        }
    }
    found
}

fn by_exclusion(exclusion: &[&Segment], user: &User, assigned: Option<&str>) -> ListVerdict {
    let mut kinds = group_kinds(exclusion, user).peekable();
    if kinds.peek().is_none() {
        ListVerdict::In
    } else if kinds.any(|kind| Some(kind) == assigned) {
        ListVerdict::OutByAssignedGroup
    } else {
        ListVerdict::OutByOtherGroup
    }
}

fn names_user(segments: &[&Segment], user: &User) -> bool {
    segments.iter().flat_map(|segment| &segment.users).any(|id| *id == user.id)
}

/// The kinds of the student's groups that are on a list.
fn group_kinds<'a>(segments: &'a [&Segment], user: &'a User) -> impl Iterator<Item = &'a str> {
    let is_of = |group: &ListGroup| {
        let own = user.group.as_ref().and_then(|all| all.get(&group.kind));
        own.is_some_and(|ids| ids.contains(&group.group_id))
    };
    let groups = segments.iter().flat_map(|segment| &segment.groups);
    groups.filter(move |group| is_of(group)).map(|group| group.kind.as_str())
}
