//! The choice of a student's condition: the state of the experiment, the rule after enrolment, and earlier
//! conditions.

use super::draw::{ConditionCounts, draw};
use super::{pools, strata};
use crate::segments::lists::{ListVerdict, is_globally_excluded, listed};
use crate::wire::words::{AssignmentUnit, ConsistencyRule, ExperimentState, PostExperimentRule};
use crate::world::World;
use crate::world::model::{Condition, Experiment, GroupEnrollment, User, UserEnrollment};

/// The records of a student and their group in one experiment.
pub(crate) struct Participation<'w> {
    pub(crate) own: Option<&'w UserEnrollment>,
    pub(crate) group: Option<&'w GroupEnrollment>,
    pub(crate) excluded: bool,
    pub(crate) group_excluded: bool,
    /// The number of students in the student's stratum, by condition.
    pub(crate) present: ConditionCounts<'w>,
}

impl<'w> Participation<'w> {
    /// The participation of a student. An enrolment at any point of the experiment counts.
    fn of(world: &'w World, experiment: &Experiment, user: &User) -> Self {
        let columns = &experiment.columns;
        let group = user.works_in(columns.group.as_deref());
        Self {
            own: world.enrollment(&columns.id, &user.id),
            group: world.group_enrollment(&columns.id, group),
            excluded: world.is_excluded(&columns.id, &user.id),
            group_excluded: world.is_group_excluded(&columns.id, group),
            present: strata::present(world, experiment, user),
        }
    }
}

/// The experiments of a context that assign a condition to the student, with the condition.
pub(crate) fn assignments<'w>(
    world: &'w World,
    context: &str,
    user: &User,
) -> Vec<(&'w Experiment, &'w Condition)> {
    if is_globally_excluded(world, context, user) {
        return Vec::new();
    }
    let open = world.experiments_in_order().into_iter();
    let open = open.filter(|e| e.columns.context.iter().any(|name| name == context));
    let previews = world.is_preview_user(&user.id);
    let open = open.filter(|e| is_open(e, previews) && is_eligible(world, e, user));
    let taken: Vec<_> = open.filter(|e| listed(world, e, user) == ListVerdict::In).collect();
    let chosen = pools::choose(world, &taken, user).into_iter();
    chosen.filter_map(|e| Some((e, condition(e, user, &Participation::of(world, e, user))?))).collect()
}

/// The experiment at a place that assigns a condition to the student, with the condition. Here a missing
/// group does not exclude a student, and preview is ignored.
pub(crate) fn assignment_at<'w>(
    world: &'w World,
    context: &str,
    (site, target): (&str, &str),
    user: &User,
) -> Option<(&'w Experiment, &'w Condition)> {
    if is_globally_excluded(world, context, user) {
        return None;
    }
    let open = world.experiments_in_order().into_iter().filter(|e| {
        e.columns.context.iter().any(|name| name == context)
            && e.partitions.iter().any(|point| point.is_at(site, target))
            && is_open(e, false)
            && listed(world, e, user) == ListVerdict::In
    });
    let chosen = pools::choose(world, &open.collect::<Vec<_>>(), user).into_iter().next()?;
    Some((chosen, condition(chosen, user, &Participation::of(world, chosen, user))?))
}

/// Whether the experiment assigns students, or this preview user.
fn is_open(experiment: &Experiment, previews: bool) -> bool {
    let columns = &experiment.columns;
    match columns.state {
        ExperimentState::Enrolling => true,
        ExperimentState::Preview => previews,
        ExperimentState::EnrollmentComplete => {
            columns.post_experiment_rule != PostExperimentRule::Assign || columns.revert_to.is_some()
        }
        _ => false,
    }
}

/// A group experiment skips a student without a valid group, unless the student is enrolled already.
fn is_eligible(world: &World, experiment: &Experiment, user: &User) -> bool {
    let columns = &experiment.columns;
    columns.assignment_unit != AssignmentUnit::Group
        || user.is_grouped(columns.group.as_deref())
        || world.enrollment(&columns.id, &user.id).is_some()
}

/// The condition, given the participation.
pub(crate) fn condition<'e>(
    experiment: &'e Experiment,
    user: &User,
    standing: &Participation<'_>,
) -> Option<&'e Condition> {
    match experiment.columns.state {
        ExperimentState::Enrolling | ExperimentState::Preview => match kept(experiment, standing) {
            EarlierDecision::Nothing => draw(experiment, user, &standing.present),
            EarlierDecision::Left => None,
            EarlierDecision::Condition(condition) => Some(condition),
        },
        ExperimentState::EnrollmentComplete => post_experiment_condition(experiment, standing),
        _ => None,
    }
}

fn post_experiment_condition<'e>(
    experiment: &'e Experiment,
    standing: &Participation<'_>,
) -> Option<&'e Condition> {
    let columns = &experiment.columns;
    match columns.post_experiment_rule {
        PostExperimentRule::Continue => match kept(experiment, standing) {
            EarlierDecision::Condition(condition) => Some(condition),
            EarlierDecision::Left | EarlierDecision::Nothing => None,
        },
        PostExperimentRule::Assign => by_id(experiment, columns.revert_to.as_deref()?),
        _ => None,
    }
}

/// The decision that follows from earlier visits.
enum EarlierDecision<'e> {
    /// The student keeps this condition.
    Condition(&'e Condition),
    /// The student is excluded.
    Left,
    /// No decision yet.
    Nothing,
}

fn kept<'e>(experiment: &'e Experiment, standing: &Participation<'_>) -> EarlierDecision<'e> {
    let own = standing.own.and_then(|row| by_id(experiment, row.condition_id.as_deref()?));
    let group = standing.group.and_then(|row| by_id(experiment, &row.condition_id));
    let own = (standing.excluded, own);
    let group = (standing.group_excluded, group);
    match experiment.columns.consistency_rule {
        Some(ConsistencyRule::Individual) => first_word([own, group]),
        Some(ConsistencyRule::Group) => first_word([group, own]),
        _ if experiment.columns.assignment_unit == AssignmentUnit::Individual => first_word([(false, own.1)]),
        _ => first_word([(false, group.1)]),
    }
}

/// The first decision in the given order; an exclusion takes precedence over a condition.
fn first_word<'e, const N: usize>(parties: [(bool, Option<&'e Condition>); N]) -> EarlierDecision<'e> {
    for (excluded, condition) in parties {
        if excluded {
            return EarlierDecision::Left;
        }
        if let Some(condition) = condition {
            return EarlierDecision::Condition(condition);
        }
    }
    EarlierDecision::Nothing
}

fn by_id<'e>(experiment: &'e Experiment, id: &str) -> Option<&'e Condition> {
    experiment.conditions.iter().find(|condition| condition.id == id)
}
