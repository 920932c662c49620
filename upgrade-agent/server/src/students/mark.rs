//! A visit of a decision point: enrols the student, or excludes the student permanently, and ends the
//! enrolment if the limit is reached.
//!
//! The condition in the report only has to exist: students are enrolled with the condition that the rules
//! give.

use std::collections::BTreeSet;

use crate::assignment::assign::{Participation, condition};
use crate::assignment::{random, strata};
use crate::experiments::{state, statistics};
use crate::segments::lists::{ListVerdict, is_globally_excluded, listed};
use crate::wire::fault::Fault;
use crate::wire::words::{AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState};
use crate::world::World;
use crate::world::model::{
    Condition, Exclusion, Experiment, GroupEnrollment, RepeatedEnrollment, User, UserEnrollment, Visit,
};
use crate::world::table::key;

/// A visit as reported by the application.
pub(super) struct Report<'r> {
    pub(super) site: &'r str,
    pub(super) target: &'r str,
    pub(super) condition: Option<&'r str>,
    pub(super) experiment_id: Option<&'r str>,
    /// Whether the application could not show the condition.
    pub(super) failed: bool,
    /// Distinguishes the visit from others of the same student there.
    pub(super) uniquifier: Option<&'r str>,
    /// The time of the report.
    pub(super) now: &'r str,
}

/// Records the visit and its consequences. A repeated visit returns the first one.
pub(super) fn mark(
    world: &mut World,
    user: &User,
    report: &Report<'_>,
    ids: &mut dyn FnMut() -> String,
) -> Result<Visit, Fault> {
    let found = experiment_at(world, user, report)?;
    let mut told = report.condition;
    let is_out = |experiment: &Experiment| {
        let context = experiment.columns.context.first();
        context.is_some_and(|context| is_globally_excluded(world, context, user))
    };
    if let Some((experiment, partition)) = found.as_ref().filter(|(experiment, _)| !is_out(experiment)) {
        check_condition(experiment, report.condition)?;
        take_note(world, experiment, partition, user, report, ids)?;
        told = told.filter(|_| experiment.columns.assignment_unit != AssignmentUnit::WithinSubjects);
    }
    let chosen = found.as_ref().map(|(experiment, _)| experiment.columns.id.as_str());
    let place = key(&[report.site, report.target, &user.id]);
    world.visits.insert_first(
        place.clone(),
        Visit {
            id: ids(),
            user_id: user.id.clone(),
            condition: told.map(str::to_owned),
            experiment_id: chosen.or(report.experiment_id).map(str::to_owned),
        },
    );
    let first = world.visits.get(&place).cloned().ok_or_else(|| Fault::internal("lost visit"))?;
    let condition = first.condition.or_else(|| report.condition.map(str::to_owned));
    Ok(Visit { condition, ..first })
}

/// The experiment of the visit, with the id of its point there. Cloned, because the world changes below;
/// visits are rare compared with assignments.
fn experiment_at(
    world: &World,
    user: &User,
    report: &Report<'_>,
) -> Result<Option<(Experiment, String)>, Fault> {
    let here: Vec<(&Experiment, &str)> = world
        .experiments_in_order()
        .into_iter()
        .flat_map(|e| e.partitions.iter().map(move |partition| (e, partition)))
        .filter(|(_, partition)| partition.is_at(report.site, report.target))
        .map(|(experiment, partition)| (experiment, partition.id.as_str()))
        .collect();
    if here.is_empty() {
        return Ok(None);
    }
    let chosen = match report.experiment_id {
        Some(id) => here.iter().find(|(experiment, _)| experiment.columns.id == id),
        None => here.get((random::first(&user.id) * here.len() as f64) as usize),
    };
    let unknown = || match report.experiment_id {
        Some(_) => Fault::not_at_point(&user.id),
        None => Fault::shared_point(&user.id),
    };
    let (experiment, partition) = chosen.ok_or_else(unknown)?;
    Ok(Some(((*experiment).clone(), (*partition).to_owned())))
}

fn check_condition(experiment: &Experiment, code: Option<&str>) -> Result<(), Fault> {
    let Some(code) = code else { return Ok(()) };
    let is_code = experiment.conditions.iter().any(|condition| condition.condition_code == code);
    if is_code || experiment.payloads.iter().any(|entry| entry.payload.value == code) {
        return Ok(());
    }
    Err(Fault::condition_not_found(code))
}

/// The consequences of a visit at an experiment's point.
fn take_note(
    world: &mut World,
    experiment: &Experiment,
    partition: &str,
    user: &User,
    report: &Report<'_>,
    ids: &mut dyn FnMut() -> String,
) -> Result<(), Fault> {
    let columns = &experiment.columns;
    let word = listed(world, experiment, user);
    if word == ListVerdict::OutByOtherGroup {
        leave_out_groups(world, &columns.id, user)?;
    }
    let is_live = matches!(columns.state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete);
    if is_live && !world.is_preview_user(&user.id) {
        if report.failed {
            world.exclude(&columns.id, &user.id, Exclusion::ByClient);
        } else if word == ListVerdict::In {
            enrol_or_exclude(world, experiment, partition, user, report);
        } else {
            leave_out(world, experiment, word, user)?;
        }
        end_if_enough(world, &columns.id, report.now, ids);
    }
    Ok(())
}

/// Excludes a student who is on a list. A group that is the reason is excluded from all experiments. The
/// original fails for a student without a working group of that kind.
fn leave_out(
    world: &mut World,
    experiment: &Experiment,
    word: ListVerdict,
    user: &User,
) -> Result<(), Fault> {
    let id = &experiment.columns.id;
    if word == ListVerdict::OutByAssignedGroup {
        let group = assigned_group(experiment, user).ok_or_else(Fault::no_group_to_exclude)?;
        world.exclude_group(id, group, Exclusion::Listed);
        let experiments = world.experiments.values().map(|e| key(&[&e.columns.id, group]));
        for at in experiments.collect::<Vec<_>>() {
            world.enrolled_groups.remove(&at);
        }
    }
    world.exclude(id, &user.id, Exclusion::Listed);
    Ok(())
}

/// Enrols or excludes a student who is on no exclusion list.
fn enrol_or_exclude(
    world: &mut World,
    experiment: &Experiment,
    partition: &str,
    user: &User,
    report: &Report<'_>,
) {
    let columns = &experiment.columns;
    let is_late = columns.state == ExperimentState::EnrollmentComplete
        && columns.consistency_rule != Some(ConsistencyRule::Experiment);
    match (is_late, &columns.assignment_unit) {
        (true, AssignmentUnit::Group) => turn_away_with_group(world, experiment, partition, user),
        (true, _) => turn_away(world, experiment, partition, user),
        (false, AssignmentUnit::Group) => enrol_with_group(world, experiment, partition, user, report),
        (false, AssignmentUnit::WithinSubjects) => enrol_again(world, experiment, partition, user, report),
        (false, _) => enrol(world, experiment, partition, user, report.now),
    }
}

/// A group of another kind than the assigned one excludes the working group. The original fails for a student
/// without a working group.
fn leave_out_groups(world: &mut World, id: &str, user: &User) -> Result<(), Fault> {
    let working = user.working_group.as_ref().ok_or_else(Fault::no_object)?;
    for group in working.values() {
        world.exclude_group(id, group, Exclusion::GroupLogic);
    }
    Ok(())
}

fn assigned_group<'u>(experiment: &Experiment, user: &'u User) -> Option<&'u str> {
    user.works_in(experiment.columns.group.as_deref())
}

/// The participation at this point only: enrolments at other points do not count.
fn participation_at<'w>(
    world: &'w World,
    experiment: &Experiment,
    partition: &str,
    user: &User,
) -> Participation<'w> {
    let id = &experiment.columns.id;
    let is_grouped = experiment.columns.assignment_unit == AssignmentUnit::Group;
    let group = assigned_group(experiment, user).filter(|_| is_grouped);
    Participation {
        own: world.enrollment_at(id, &user.id, partition),
        group: world.group_enrollment(id, group),
        excluded: world.is_excluded(id, &user.id),
        group_excluded: world.is_group_excluded(id, group),
        present: strata::present(world, experiment, user),
    }
}

fn enrol(world: &mut World, experiment: &Experiment, partition: &str, user: &User, now: &str) {
    let standing = participation_at(world, experiment, partition, user);
    if standing.own.is_some() || standing.excluded {
        return;
    }
    if let Some(condition) = condition(experiment, user, &standing) {
        let row = row(user, partition, Some(condition.id.clone()), None, now);
        insert(world, experiment, row);
    }
}

fn turn_away(world: &mut World, experiment: &Experiment, partition: &str, user: &User) {
    let standing = participation_at(world, experiment, partition, user);
    if standing.own.is_none() {
        world.exclude(&experiment.columns.id, &user.id, Exclusion::ReachedAfter);
    }
}

fn turn_away_with_group(world: &mut World, experiment: &Experiment, partition: &str, user: &User) {
    let columns = &experiment.columns;
    let standing = participation_at(world, experiment, partition, user);
    let is_new = standing.own.is_none();
    let group_is_new = standing.group.is_none();
    if is_new && group_is_new {
        world.exclude(&columns.id, &user.id, Exclusion::ReachedAfter);
    }
    let group = assigned_group(experiment, user);
    let is_valid = user.is_grouped(columns.group.as_deref()) || !has_groups(user);
    if let (true, true, Some(group)) = (group_is_new, is_valid, group) {
        world.exclude_group(&columns.id, group, Exclusion::ReachedAfter);
    }
}

fn enrol_with_group(
    world: &mut World,
    experiment: &Experiment,
    partition: &str,
    user: &User,
    report: &Report<'_>,
) {
    let columns = &experiment.columns;
    let is_strict = columns.consistency_rule != Some(ConsistencyRule::Experiment);
    let standing = participation_at(world, experiment, partition, user);
    let is_new = standing.own.is_none();
    let mut is_out = standing.excluded;
    let group_is_new = standing.group.is_none();
    let group_is_out = standing.group_excluded;
    let group = assigned_group(experiment, user).filter(|_| user.is_grouped(columns.group.as_deref()));
    let chosen = group.and_then(|_| chosen(experiment, user, &standing, report)).map(|c| c.id.clone());
    if group_is_out && is_strict {
        world.exclude(&columns.id, &user.id, Exclusion::GroupLogic);
        is_out = true;
    }
    let Some(group) = group else {
        if is_new && !is_out && is_strict {
            let why = if has_groups(user) { Exclusion::InvalidGroup } else { Exclusion::NoGroup };
            world.exclude(&columns.id, &user.id, why);
        }
        return;
    };
    let Some(chosen) = chosen else { return };
    if group_is_new && !group_is_out {
        let row = GroupEnrollment {
            partition_id: partition.into(),
            condition_id: chosen.clone(),
            created_at: Some(report.now.to_owned()),
        };
        world.enrolled_groups.insert(key(&[&columns.id, group]), row);
    }
    if is_new && !is_out {
        insert(world, experiment, row(user, partition, Some(chosen), Some(group), report.now));
    }
}

/// The condition of a group's enrolment: by the rules, and in a stratified experiment the one in the report.
fn chosen<'e>(
    experiment: &'e Experiment,
    user: &User,
    standing: &Participation<'_>,
    report: &Report<'_>,
) -> Option<&'e Condition> {
    if experiment.columns.assignment_algorithm == AssignmentAlgorithm::Stratified {
        return by_code(experiment, report.condition?);
    }
    condition(experiment, user, standing)
}

fn by_code<'e>(experiment: &'e Experiment, code: &str) -> Option<&'e Condition> {
    experiment.conditions.iter().find(|condition| condition.condition_code == code)
}

/// Within subjects every visit is counted, with the reported condition, even for excluded students.
fn enrol_again(
    world: &mut World,
    experiment: &Experiment,
    partition: &str,
    user: &User,
    report: &Report<'_>,
) {
    let id = &experiment.columns.id;
    if world.enrollment_at(id, &user.id, partition).is_none() {
        insert(world, experiment, row(user, partition, None, None, report.now));
    }
    let condition = report.condition.and_then(|code| by_code(experiment, code));
    let number = world.repeated.under(&[id, &user.id, partition]).count();
    world.repeated.insert(
        key(&[id, &user.id, partition, &format!("{number:08}")]),
        RepeatedEnrollment {
            condition_id: condition.map(|condition| condition.id.clone()),
            uniquifier: report.uniquifier.map(str::to_owned),
            created_at: report.now.to_owned(),
        },
    );
}

/// Whether the groups and working groups of a student are known. An unknown group counts as a missing one
/// rather than a wrong one.
fn has_groups(user: &User) -> bool {
    let has_groups = user.group.as_ref().is_some_and(|groups| !groups.is_empty());
    has_groups && user.working_group.as_ref().is_some_and(|groups| !groups.is_empty())
}

fn row(
    user: &User,
    partition: &str,
    condition: Option<String>,
    group: Option<&str>,
    now: &str,
) -> UserEnrollment {
    UserEnrollment {
        user_id: user.id.clone(),
        partition_id: partition.to_owned(),
        condition_id: condition,
        group_id: group.map(str::to_owned),
        created_at: Some(now.to_owned()),
    }
}

fn insert(world: &mut World, experiment: &Experiment, row: UserEnrollment) {
    let at = key(&[&experiment.columns.id, &row.user_id, &row.partition_id]);
    world.enrolled.insert(at, row);
}

/// Ends the enrolment of an experiment that has reached its number of students or groups.
fn end_if_enough(world: &mut World, id: &str, now: &str, ids: &mut dyn FnMut() -> String) {
    let Some(experiment) = world.experiments.get(&key(&[id])) else { return };
    let columns = &experiment.columns;
    let is_live = matches!(columns.state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete);
    let wanted = |field| columns.enrollment_complete_condition.as_ref()?.get(field)?.as_u64();
    let (Some(users), groups) = (wanted("userCount").filter(|n| *n > 0), wanted("groupCount")) else {
        return;
    };
    let by_group = columns.assignment_unit == AssignmentUnit::Group;
    let enough = match groups.filter(|n| *n > 0 && by_group) {
        Some(groups) => statistics::full_groups(world, id, users) >= groups,
        None => students(world, id).len() as u64 >= users,
    };
    if is_live && enough {
        state::enter(world, id, &ExperimentState::EnrollmentComplete, now, ids());
    }
}

fn students<'w>(world: &'w World, id: &str) -> BTreeSet<&'w str> {
    world.enrolled.under(&[id]).map(|(_, row)| row.user_id.as_str()).collect()
}
