//! What becomes of a student's enrolments when he goes to work in another group.

use std::collections::BTreeMap;

use crate::wire::words::{AssignmentUnit, ConsistencyRule, ExperimentState};
use crate::world::World;
use crate::world::table::key;

/// Where a student works, by kind of group.
pub(super) type WorkingGroups = BTreeMap<String, String>;

/// Lets go of what bound a student to his old groups, in experiments that assign groups of a kind that
/// changed. With the consistency of groups his enrolments and exclusions go, with that of individuals
/// his exclusions, with that of experiments his enrolments.
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
            forgive(world, id, user);
        }
    }
}

/// Takes a student's exclusion away. If nobody else is excluded, every group is free again.
fn forgive(world: &mut World, experiment: &str, user: &str) {
    let was_out = world.excluded.remove(&key(&[experiment, user])).is_some();
    if was_out && world.excluded.under(&[experiment]).next().is_none() {
        world.excluded_groups.remove_under(&[experiment], |_| true);
    }
}
