//! Who an experiment's lists take in. Groups count by membership, not by where one works now.

use super::model::{Experiment, List, User};
use super::world::World;
use crate::client::{AssignmentUnit, ConsistencyRule, FilterMode};

/// What the lists say of a student.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// He takes part.
    In,
    /// He is left out himself.
    Out,
    /// He is left out by the very group that is assigned.
    OutByAssignedGroup,
    /// He is left out by a group of another kind.
    OutByOtherGroup,
}

/// Asks the lists. A student who takes part already with his own condition in a group experiment
/// is beyond them, which leaves only the filter.
pub(super) fn listed(world: &World, experiment: &Experiment, user: &User) -> Listed {
    let columns = &experiment.columns;
    let beyond = columns.consistency_rule == Some(ConsistencyRule::Individual)
        && columns.assignment_unit == AssignmentUnit::Group
        && world.enrollment(&columns.id, &user.id).is_some();
    let (inclusion, exclusion): (&[List], &[List]) =
        if beyond { (&[], &[]) } else { (&experiment.inclusion, &experiment.exclusion) };
    if names_user(exclusion, user) {
        return Listed::Out;
    }
    if names_user(inclusion, user) {
        return Listed::In;
    }
    if columns.filter_mode == FilterMode::IncludeAll {
        by_exclusion(exclusion, user, columns.group.as_deref())
    } else if group_kinds(inclusion, user).next().is_some() && group_kinds(exclusion, user).next().is_none() {
        Listed::In
    } else {
        Listed::Out
    }
}

fn by_exclusion(exclusion: &[List], user: &User, assigned: Option<&str>) -> Listed {
    let mut kinds = group_kinds(exclusion, user).peekable();
    if kinds.peek().is_none() {
        Listed::In
    } else if kinds.any(|kind| Some(kind) == assigned) {
        Listed::OutByAssignedGroup
    } else {
        Listed::OutByOtherGroup
    }
}

fn names_user(lists: &[List], user: &User) -> bool {
    lists.iter().flat_map(|list| &list.users).any(|id| *id == user.id)
}

/// The kinds of the student's groups that are on a list.
fn group_kinds<'a>(lists: &'a [List], user: &'a User) -> impl Iterator<Item = &'a str> {
    let groups = lists.iter().flat_map(|list| &list.groups);
    let is_of = |kind: &str, id: &String| {
        user.group.as_ref().and_then(|all| all.get(kind)).is_some_and(|ids| ids.contains(id))
    };
    groups.filter(move |group| is_of(&group.kind, &group.group_id)).map(|group| group.kind.as_str())
}
