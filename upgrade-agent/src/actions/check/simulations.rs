//! Checks of the actions that simulate students.

use std::collections::BTreeSet;

use super::parts::{NamedContext, check_context};
use super::students::{check_groups, check_user};
use super::words::check_known;
use super::{Problems, check_ready, unusual};
use crate::actions::display::{display, display_list};
use crate::actions::simulations::{MOST_STEPS, MOST_STUDENTS, USUAL_STUDENTS};
use crate::actions::transitions::is_usual;
use crate::actions::{
    Action, Facts, JourneyStep, SimulateUserJourney, TestConditionBalance, VisitDecisionPoint, is_offline,
    starts,
};
use crate::balance::own_group;
use crate::client::{AssignmentAlgorithm, AssignmentUnit, Experiment, ExperimentState};
use crate::plan::is_live;

pub(super) fn check_visit(visit: &VisitDecisionPoint, facts: &Facts<'_>, found: &mut Problems) {
    check_user(&visit.user_id, found);
    check_groups(visit.group.as_ref(), visit.working_group.as_ref(), found);
    let context = check_context(&visit.context, facts, found);
    check_place(&visit.site, &visit.target, context, found);
}

pub(super) fn check_balance(
    action: &Action,
    test: &TestConditionBalance,
    facts: &Facts<'_>,
    found: &mut Problems,
) {
    check_number(test.num_users.unwrap_or(i64::from(USUAL_STUDENTS)), facts, found);
    check_groups(test.group.as_ref(), test.working_group.as_ref(), found);
    if let Some(prefix) = &test.prefix {
        // An id is the prefix and a UUID of 36 characters.
        check_user(&format!("{prefix}{}", "0".repeat(36)), found);
    }
    if test.site.is_some() != test.target.is_some() {
        found.push("a decision point is a site and a target: give both, or neither".to_owned());
    }
    let Some(experiment) = facts.experiment else { return };
    let name = display(&experiment.name);
    if experiment.assignment_unit == AssignmentUnit::WithinSubjects {
        found.push(format!(
            "experiment '{name}' is within-subjects: every student gets each of its conditions, so there is no split to test"
        ));
    }
    if let (Some(site), Some(target)) = (&test.site, &test.target) {
        check_own_place(site, target, experiment, found);
    }
    if starts(action, experiment) {
        check_ready(experiment, found)
    } else {
        check_playable(experiment, found)
    }
    check_working_group(test, experiment, found);
    let drawn_alone = experiment.assignment_algorithm == AssignmentAlgorithm::Random;
    if is_offline(test, &experiment.state) && !drawn_alone {
        found.push(format!(
            "experiment '{name}' does not draw by ids and weights alone ({}), so its split cannot be computed: ask for a live \
             test",
            experiment.assignment_algorithm
        ));
    }
    if !is_offline(test, &experiment.state) {
        check_start(experiment, found);
    }
}

/// An experiment that is enrolling may have any weights, because the test is about them.
fn check_playable(experiment: &Experiment, found: &mut Problems) {
    let name = display(&experiment.name);
    if experiment.conditions.is_empty() {
        found.push(format!(
            "experiment '{name}' has no conditions, so there is no split to test: give it some first"
        ));
    }
    if experiment.decision_points.is_empty() {
        found.push(format!(
            "experiment '{name}' has no decision points, so no student can come to it: give it one first"
        ));
    }
}

/// Students with groups of the assigned kind but without a working group would all be left out.
fn check_working_group(test: &TestConditionBalance, experiment: &Experiment, found: &mut Problems) {
    let Some(kind) = own_group(experiment) else { return };
    let Some(groups) = test.group.as_ref().and_then(|groups| groups.get(kind)) else { return };
    let works = test.working_group.as_ref().and_then(|works| works.get(kind));
    let name = display(&experiment.name);
    let kind = display(kind);
    match works {
        None => found.push(format!(
            "experiment '{name}' assigns groups of the type {kind}, and a student without a working group of that type is \
             left out: give working_group, or leave the group out, so that each student has one of his own"
        )),
        Some(works) if !groups.contains(works) => found.push(format!(
            "the working group {} is none of the groups that the students are in, and experiment '{name}' leaves such \
             students out: add it to group",
            display(works)
        )),
        Some(_) => {}
    }
}

/// A live test needs an experiment that is enrolling, or that the test can start.
fn check_start(experiment: &Experiment, found: &mut Problems) {
    let state = &experiment.state;
    if *state != ExperimentState::Enrolling && !is_usual(state, &ExperimentState::Enrolling) {
        found.push(format!(
            "experiment '{}' is {state}, and a live test would have to start it again: test it offline, or set its status first",
            display(&experiment.name)
        ));
    }
}

pub(super) fn check_journey(journey: &SimulateUserJourney, facts: &Facts<'_>, found: &mut Problems) {
    let context = check_context(&journey.context, facts, found);
    if journey.user_ids.is_empty() {
        check_number(journey.num_users.unwrap_or(1), facts, found);
    }
    check_groups(journey.group.as_ref(), journey.working_group.as_ref(), found);
    journey.user_ids.iter().for_each(|id| check_user(id, found));
    let most = facts.max_students.unwrap_or(MOST_STUDENTS);
    if journey.user_ids.len() > most as usize {
        found.push(format!("at most {most} students can be played at once: name fewer"));
    }
    if let Some(twice) = named_twice(&journey.user_ids) {
        found.push(format!(
            "student '{}' is named twice, and goes once: name each student once",
            display(twice)
        ));
    }
    if let Some(experiment) = facts.experiment.filter(|one| !one.context.contains(&journey.context)) {
        found.push(format!(
            "experiment '{}' is in the context {}, so the journey must be, too, and not in {}",
            display(&experiment.name),
            display_list(experiment.context.iter().map(String::as_str)),
            display(&journey.context)
        ));
    }
    let named = journey.user_ids.len();
    if journey.num_users.is_some_and(|number| named > 0 && usize::try_from(number) != Ok(named)) {
        found.push(format!(
            "{named} students are named, and num_users says otherwise: leave one of the two out"
        ));
    }
    if journey.steps.len() > MOST_STEPS {
        found.push(format!("a journey has at most {MOST_STEPS} steps: leave some out, or make two of it"));
    }
    for step in &journey.steps {
        check_step(step, journey, facts, context, found);
    }
    if let Some(experiment) = facts.experiment {
        check_moves(journey, experiment, found);
    }
}

/// The statuses that the steps set, ending with the first one.
fn check_moves(journey: &SimulateUserJourney, experiment: &Experiment, found: &mut Problems) {
    let name = display(&experiment.name);
    let statuses = journey.steps.iter().filter_map(|step| match step {
        JourneyStep::SetStatus { status } => Some(status),
        _ => None,
    });
    let mut from = &experiment.state;
    let mut anew = false;
    for to in statuses.chain([&experiment.state]) {
        anew |= starts_anew(from, to);
        from = to;
    }
    let point = experiment.decision_points.iter().find(|point| point.exclude_if_reached);
    if let Some(point) = point.filter(|_| anew && is_live(&experiment.state)) {
        found.push(format!(
            "experiment '{name}' leaves out who was at {} / {} before it starts, and these steps would start it anew while \
             students are in it: UpGrade would shut them out for good. Of a journey it can only become enrollmentComplete",
            display(&point.site),
            display(&point.target)
        ));
        return;
    }
    let mut from = &experiment.state;
    for step in &journey.steps {
        let JourneyStep::SetStatus { status: to } = step else { continue };
        if from != to && !is_usual(from, to) && !journey.force && !matches!(to, ExperimentState::Unknown(_)) {
            found.push(unusual(from, to));
        }
        from = to;
    }
}

/// Whether this move starts the experiment for the server, which then looks for early visitors. Resuming
/// after a pause is not a start.
fn starts_anew(from: &ExperimentState, to: &ExperimentState) -> bool {
    *to == ExperimentState::Enrolling && !is_live(from)
}

fn check_step(
    step: &JourneyStep,
    journey: &SimulateUserJourney,
    facts: &Facts<'_>,
    context: Option<NamedContext<'_>>,
    found: &mut Problems,
) {
    match step {
        JourneyStep::Assign {} => {}
        JourneyStep::Visit { site, target } => match facts.experiment {
            Some(experiment) => check_own_place(site, target, experiment, found),
            None => check_place(site, target, context, found),
        },
        JourneyStep::SetWorkingGroup { working_group } => check_groups(None, Some(working_group), found),
        JourneyStep::SetStatus { status } => {
            if journey.experiment_id.is_none() {
                found.push(
                    "a step changes a status, and no experiment is named: give experiment_id".to_owned(),
                );
            }
            if let ExperimentState::Unknown(word) = status {
                found.push(format!("`{}` is no status", display(word)));
            }
            if let (ExperimentState::Enrolling, Some(experiment)) = (status, facts.experiment) {
                check_ready(experiment, found);
            }
        }
    }
}

fn check_number(students: i64, facts: &Facts<'_>, found: &mut Problems) {
    let most = facts.max_students.unwrap_or(MOST_STUDENTS);
    if !(1..=i64::from(most)).contains(&students) {
        found.push(format!("num_users is {students}, and it must be from 1 to {most}"));
    }
}

fn named_twice(ids: &[String]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    ids.iter().map(String::as_str).find(|id| !seen.insert(*id))
}

fn check_place(site: &str, target: &str, context: Option<NamedContext<'_>>, found: &mut Problems) {
    let Some((name, context)) = context else { return };
    let of_context = format!("context '{}'", display(name));
    check_known("site", site, &context.sites, &of_context, found);
    check_known("target", target, &context.targets, &of_context, found);
}

fn check_own_place(site: &str, target: &str, experiment: &Experiment, found: &mut Problems) {
    let points = experiment.decision_points.iter().map(|point| format!("{} / {}", point.site, point.target));
    let points: Vec<String> = points.collect();
    let own = format!("experiment '{}'", display(&experiment.name));
    check_known("decision point", &format!("{site} / {target}"), &points, &own, found);
}
