//! The change of an experiment's state. Every change is allowed. A start excludes earlier visitors of the
//! decision points that ask for it.

use crate::wire::words::{AssignmentUnit, ConsistencyRule, ExperimentState};
use crate::world::World;
use crate::world::model::{Exclusion, Stamp, StateTimeLog};
use crate::world::table::key;

/// Sets the state and logs it.
pub(crate) fn enter(world: &mut World, id: &str, to: &ExperimentState, now: &str, log_id: String) {
    let Some(experiment) = world.experiments.get_mut(&key(&[id])) else { return };
    experiment.log.push(StateTimeLog {
        stamp: Stamp::new(now),
        id: log_id,
        from_state: experiment.columns.state.clone(),
        to_state: to.clone(),
        time_log: now.to_owned(),
    });
    experiment.columns.state = to.clone();
    experiment.columns.stamp.touch(now);
}

/// Excludes the early visitors of an experiment that is about to start. Resuming after a pause is not a
/// start.
pub(super) fn exclude_early_visitors(world: &mut World, id: &str, to: &ExperimentState) {
    let Some(experiment) = world.experiments.get(&key(&[id])) else { return };
    let columns = &experiment.columns;
    let starts = *to == ExperimentState::Enrolling && columns.state != ExperimentState::EnrollmentComplete;
    if !starts {
        return;
    }
    let rule = columns.consistency_rule.clone();
    let by_user = matches!(rule, Some(ConsistencyRule::Individual | ConsistencyRule::Group))
        || columns.assignment_unit == AssignmentUnit::WithinSubjects;
    let kind = columns.group.clone();
    for user in early_visitors(world, id) {
        if by_user {
            world.exclude(id, &user, Exclusion::ReachedPrior);
        }
        let group = world.user(&user).and_then(|user| user.works_in(kind.as_deref()));
        if let (Some(ConsistencyRule::Group), Some(group)) = (&rule, group.map(str::to_owned)) {
            world.exclude_group(id, &group, Exclusion::ReachedPrior);
        }
    }
}

/// All visitors of such points, in any experiment. The original combines sites with targets: a visit at one
/// point's site and another's target counts.
fn early_visitors(world: &World, id: &str) -> Vec<String> {
    let Some(experiment) = world.experiments.get(&key(&[id])) else { return Vec::new() };
    let points = || experiment.partitions.iter().filter(|point| point.exclude_if_reached);
    let mut users = Vec::new();
    for (site, _) in points().map(|point| point.place()) {
        for (_, target) in points().map(|point| point.place()) {
            let visits = world.visits.under(&[site, target]);
            users.extend(visits.map(|(_, visit)| visit.user_id.clone()));
        }
    }
    users.sort();
    users.dedup();
    users
}
