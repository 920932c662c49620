//! The effect of a new working group on a student's enrolments.

use std::collections::BTreeMap;

use crate::wire::words::{AssignmentUnit, ConsistencyRule, ExperimentState};
use crate::world::World;
use crate::world::table::key;

/// The working groups of a student, by kind.
pub(super) type WorkingGroups = BTreeMap<String, String>;

/// Drops the effects of a student's old groups in experiments that assign groups of a changed kind.
/// Consistency by group drops the student's enrolments and exclusions, consistency by individual the
/// exclusions, consistency by experiment the enrolments.
pub(super) fn change(world: &mut World, user: &str, old: &WorkingGroups, new: &WorkingGroups) {
    let changed = |kind: &String| old.get(kind).is_some_and(|group| new.get(kind) != Some(group));
    let bound: Vec<(String, Option<ConsistencyRule>)> = world
        .experiments
        .values()
        .map(|experiment| &experiment.columns)
        .filter(|columns| {
            columns.assignment_unit == AssignmentUnit::Group
                && matches!(columns.state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete)
                && columns.group.as_ref().is_some_and(changed)
        })
        .map(|columns| (columns.id.clone(), columns.consistency_rule.clone()))
        .collect();
    let with = |rule: ConsistencyRule| bound.iter().filter(move |(_, own)| *own == Some(rule.clone()));
    for (id, _) in with(ConsistencyRule::Group).chain(with(ConsistencyRule::Experiment)) {
        world.enrolled.remove_under(&[id, user], |_| true);
        world.repeated.remove_under(&[id, user], |_| true);
    }
    for rule in [ConsistencyRule::Group, ConsistencyRule::Individual] {
        for (id, _) in with(rule) {
            remove_exclusion(world, id, user);
        }
    }
}

/// Removes a student's exclusion. If it was the last one, the excluded groups are removed too.
fn remove_exclusion(world: &mut World, experiment: &str, user: &str) {
    let was_out = world.excluded.remove(&key(&[experiment, user])).is_some();
    if was_out && world.excluded.under(&[experiment]).next().is_none() {
        world.excluded_groups.remove_under(&[experiment], |_| true);
    }
}
