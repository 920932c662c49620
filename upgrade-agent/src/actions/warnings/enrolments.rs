//! The effect of a change on the enrolments of an experiment.

use super::Warning;
use crate::actions::{DecisionPointParam, Facts, UpdateExperiment};
use crate::client::{ConditionEnrollment, Experiment};

/// The numbers of enrolled students and groups, if any.
pub(super) fn enrolled(facts: Facts<'_>) -> Option<(u64, u64)> {
    let detail = facts.enrollment?;
    let counts = (detail.users, detail.groups);
    (counts != (0, 0)).then_some(counts)
}

pub(super) fn enrolments_deleted(facts: Facts<'_>) -> Option<Warning> {
    enrolled(facts).map(|(users, groups)| Warning::EnrolmentsDeleted { users, groups })
}

/// The enrolments in conditions and at points that an update removes.
pub(super) fn enrolments_dropped(
    update: &UpdateExperiment,
    old: &Experiment,
    facts: Facts<'_>,
) -> Option<Warning> {
    let detail = facts.enrollment?;
    let stays = |code: &str| {
        update.conditions.as_ref().is_none_or(|all| all.iter().any(|condition| condition.code == code))
    };
    let is_at = |site: &str, target: &str| {
        let is_it = |point: &DecisionPointParam| point.site == site && point.target == target;
        update.decision_points.as_ref().is_none_or(|all| all.iter().any(is_it))
    };
    let mut removed = Vec::new();
    let mut users = 0;
    for condition in old.conditions.iter().filter(|condition| !stays(&condition.code)) {
        let count =
            detail.conditions.iter().filter(|one| one.id == condition.id).map(|one| one.users).sum::<u64>();
        if count > 0 {
            removed.push(condition.code.clone());
            users += count;
        }
    }
    for point in old.decision_points.iter().filter(|point| !is_at(&point.site, &point.target)) {
        let count = enrolled_at(&detail.conditions, &point.id);
        if count > 0 {
            removed.push(format!("{} / {}", point.site, point.target));
            users += count;
        }
    }
    // A student may be enrolled at several points.
    (users > 0).then(|| Warning::EnrolmentsDropped { removed, users: users.min(detail.users) })
}

fn enrolled_at(conditions: &[ConditionEnrollment], point: &str) -> u64 {
    let points = conditions.iter().flat_map(|condition| &condition.decision_points);
    points.filter(|one| one.id == point).map(|one| one.users).sum()
}
