//! Actions in words: a title, the question before an action, and the meaning of a status.

use std::collections::BTreeMap;

use super::display::{display, on_one_line};
use super::params::weights;
use super::{
    Action, ConditionParam, CreateExperiment, DecisionPointParam, GroupParam, JourneyStep, Proposal,
    SimulateUserJourney, UpdateExperiment,
};
use crate::client::{ExperimentState, FilterMode};
use crate::plan::PlanStep;

/// With more students than this, the question names only the first ones.
const NAMED_STUDENTS: usize = 20;

/// A short title, such as `delete experiment 'Foo'`.
pub(crate) fn title(proposal: &Proposal) -> String {
    let name = name(proposal);
    let title = match &proposal.action {
        Action::CreateExperiment(create) => format!("create experiment '{}'", display(&create.name)),
        Action::UpdateExperiment(_) => format!("update experiment '{name}'"),
        Action::UpdateExperimentStatus(to) => format!("change experiment '{name}' to {}", to.status),
        Action::DeleteExperiment(_) => format!("delete experiment '{name}'"),
        Action::InitExperimentUser(init) => format!("initialize user '{}'", init.user_id),
        Action::GetDecisionPointAssignments(asked) => {
            format!("get the assignments of user '{}' in '{}'", asked.user_id, asked.context)
        }
        Action::MarkDecisionPoint(mark) => {
            let place = &mark.decision_point;
            format!("mark user '{}' at {} / {}", mark.user_id, place.site, place.target)
        }
        Action::VisitDecisionPoint(visit) => {
            format!("let user '{}' visit {} / {}", visit.user_id, visit.site, visit.target)
        }
        Action::TestConditionBalance(_) => format!("test the balance of experiment '{name}'"),
        Action::SimulateUserJourney(journey) => {
            format!("simulate the journey of {} in '{}'", students_of_journey(journey), journey.context)
        }
    };
    on_one_line(&title)
}

/// The question to the person, without the instructions for a yes.
pub(crate) fn question(proposal: &Proposal) -> String {
    let mut lines = match &proposal.action {
        Action::CreateExperiment(create) => create_lines(create),
        Action::UpdateExperiment(update) => update_lines(update, proposal),
        Action::UpdateExperimentStatus(change) => status_lines(&change.status, change.force, proposal),
        Action::DeleteExperiment(delete) => {
            let name = name(proposal);
            vec![format!(
                "⚠️ PERMANENTLY DELETE experiment '{name}' ({})? Its enrolments go with it. This cannot be undone!",
                delete.experiment_id
            )]
        }
        Action::InitExperimentUser(init) => {
            let first = format!("Initialize user '{}' for experiment simulation?", init.user_id);
            let groups = group_lines((init.group.as_ref(), init.working_group.as_ref()));
            std::iter::once(first).chain(groups).collect()
        }
        Action::GetDecisionPointAssignments(asked) => {
            vec![format!(
                "Get condition assignments of user '{}' for context '{}'?",
                asked.user_id, asked.context
            )]
        }
        Action::MarkDecisionPoint(mark) => {
            let place = format!("{} / {}", mark.decision_point.site, mark.decision_point.target);
            let shown = mark.assigned_condition.as_ref();
            let code = shown.and_then(|shown| shown.condition_code.as_deref());
            let whose = shown.map_or_else(String::new, |_| format!(" for experiment '{}'", name(proposal)));
            let code = code.map_or_else(String::new, |code| format!(" with condition '{code}'"));
            vec![format!("Mark decision point visit of user '{}' at {place}{whose}{code}?", mark.user_id)]
        }
        Action::VisitDecisionPoint(visit) => {
            let user = &visit.user_id;
            let context = &visit.context;
            let mut lines = vec![format!(
                "Let user '{user}' visit {} / {} in context '{context}'?",
                visit.site, visit.target
            )];
            lines.extend(group_lines((visit.group.as_ref(), visit.working_group.as_ref())));
            let known = "The student is made known and assigned, and the visit is marked, which may enrol the student.";
            lines.push(known.to_owned());
            lines
        }
        Action::TestConditionBalance(test) => {
            let first = format!(
                "Test the balance of experiment '{}' with {}?",
                name(proposal),
                students(test.students() as usize)
            );
            with_plan(first, (test.group.as_ref(), test.working_group.as_ref()), proposal)
        }
        Action::SimulateUserJourney(journey) => {
            let first = format!(
                "Simulate the journey of {} in context '{}'?",
                students_of_journey(journey),
                journey.context
            );
            with_plan(first, (journey.group.as_ref(), journey.working_group.as_ref()), proposal)
        }
    };
    lines.extend(proposal.warnings.iter().map(|warning| format!("Note: {warning}")));
    // Each line starts with the agent's words, so that a text of others cannot imitate a line.
    lines.iter().map(|line| on_one_line(line)).collect::<Vec<_>>().join("\n")
}

/// The meaning of a status.
pub(crate) fn effect(state: &ExperimentState) -> &'static str {
    match state {
        ExperimentState::Inactive => "Nobody is assigned; everybody gets the default.",
        ExperimentState::Draft => "It is set aside as a draft; nobody is assigned.",
        ExperimentState::Preview => "Only preview users are assigned.",
        ExperimentState::Scheduled => {
            "It starts at the date it was given on UpGrade's own screen, and without a date never."
        }
        ExperimentState::Enrolling => "Students who come to its decision points are assigned and enrolled.",
        ExperimentState::EnrollmentComplete => {
            "Nobody new is enrolled, and those enrolled keep their condition; UpGrade's own screen calls this Pause. \
             If you want it over for everybody, say cancelled instead."
        }
        ExperimentState::Cancelled => {
            "It is over: everybody gets the default, the enrolled ones too. UpGrade's own screen calls this completed."
        }
        ExperimentState::Archived => "It is over and put away.",
        ExperimentState::Unknown(_) => "",
    }
}

/// The groups by kind, and the working group of each kind.
type Groups<'a> = (Option<&'a BTreeMap<String, Vec<String>>>, Option<&'a BTreeMap<String, String>>);

fn group_lines<'a>((groups, works): Groups<'a>) -> impl Iterator<Item = String> + use<'a> {
    let groups = groups.into_iter().flatten().map(|(kind, ids)| format!("- {kind}: {}", ids.join(", ")));
    groups.chain(works.into_iter().flatten().map(|(kind, id)| format!("- works in {kind} {id}")))
}

/// A question with the steps of a plan.
fn with_plan(question: String, groups: Groups<'_>, proposal: &Proposal) -> Vec<String> {
    let mut lines = vec![question];
    lines.extend(group_lines(groups));
    let names_students =
        matches!(&proposal.action, Action::SimulateUserJourney(journey) if !journey.user_ids.is_empty());
    let plan = proposal.plan.iter();
    let steps = plan.clone().flat_map(|plan| &plan.steps).map(|step| step_in_words(step, names_students));
    let last = plan.filter_map(|plan| plan.restores.as_ref());
    let last = last.map(|first| format!("restore the status {first}, also if a step fails"));
    lines.extend(steps.chain(last).zip(1..).map(|(step, number)| format!("{number}. {step}")));
    lines.push(
        "The students and their enrolments stay on the server: UpGrade cannot take them back.".to_owned(),
    );
    lines
}

fn step_in_words(step: &PlanStep, names_students: bool) -> String {
    match step {
        PlanStep::SetStatus { to } => format!("change the status to {to}"),
        PlanStep::Crowd { students: number, site, target } => {
            format!(
                "play {} at {site} / {target}: made known, assigned, visit marked",
                students(*number as usize)
            )
        }
        PlanStep::Begin { students: 1 } if names_students => "make the student known".to_owned(),
        PlanStep::Begin { .. } if names_students => "make the students known".to_owned(),
        PlanStep::Begin { students: number } => format!("make {} known", students(*number)),
        PlanStep::VisitAssigned => "let each visit every place where he is assigned something".to_owned(),
        PlanStep::Journey(JourneyStep::Assign {}) => "look at what they would get".to_owned(),
        PlanStep::Journey(JourneyStep::Visit { site, target }) => format!("let them visit {site} / {target}"),
        PlanStep::Journey(JourneyStep::SetWorkingGroup { working_group }) => {
            let groups = working_group.iter().map(|(kind, id)| format!("{kind} {id}"));
            format!("let them work in {}", groups.collect::<Vec<_>>().join(", "))
        }
        PlanStep::Journey(JourneyStep::SetStatus { status }) => format!("change the status to {status}"),
    }
}

/// The named students, otherwise the number of generated ones.
fn students_of_journey(journey: &SimulateUserJourney) -> String {
    let ids = journey.user_ids.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>();
    let more = ids.len().saturating_sub(NAMED_STUDENTS);
    match ids.as_slice() {
        [] => students(journey.students()),
        [only] => format!("student {only}"),
        _ if more > 0 => format!("students {} and {more} more", ids[..NAMED_STUDENTS].join(", ")),
        [first @ .., last] => format!("students {} and {last}", first.join(", ")),
    }
}

fn students(number: usize) -> String {
    match number {
        1 => "one simulated student".to_owned(),
        number => format!("{number} simulated students"),
    }
}

fn name(proposal: &Proposal) -> String {
    display(match &proposal.about {
        Some(about) => &about.name,
        None => proposal.action.experiment_id().unwrap_or_default(),
    })
}

fn create_lines(create: &CreateExperiment) -> Vec<String> {
    let mut lines = vec![format!("Create experiment '{}' in context '{}'?", create.name, create.context)];
    if !create.description.is_empty() {
        lines.push(format!("- description: {}", create.description));
    }
    lines.push(format!("- decision points: {}", points(&create.decision_points)));
    lines.push(format!("- conditions: {}", conditions(&create.conditions)));
    if let Some(unit) = &create.assignment_unit {
        let kind = create.group_type.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
        lines.push(format!("- assignment unit: {unit}{kind}"));
    }
    lines.extend(create.consistency_rule.as_ref().map(|rule| format!("- consistency rule: {rule}")));
    if let Some(rule) = &create.post_experiment_rule {
        let code = rule.condition_code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
        lines.push(format!("- after enrolment: {}{code}", rule.rule));
    }
    let mode = create.filter_mode.as_ref().unwrap_or(&FilterMode::ExcludeAll);
    lines.push(format!("- filter mode: {mode}"));
    let mut list = |word: &str, users: &[String], groups: &[super::GroupParam]| {
        let groups = groups.iter().map(|group| format!("{} {}", group.group_type, group.group_id));
        let all: Vec<String> = users.iter().cloned().chain(groups).collect();
        if !all.is_empty() {
            lines.push(format!("- {word}: {}", all.join(", ")));
        }
    };
    list("included", &create.inclusion_users, &create.inclusion_groups);
    list("excluded", &create.exclusion_users, &create.exclusion_groups);
    if !create.tags.is_empty() {
        lines.push(format!("- tags: {}", create.tags.join(", ")));
    }
    lines
}

fn update_lines(update: &UpdateExperiment, proposal: &Proposal) -> Vec<String> {
    let mut lines = vec![format!("Update experiment '{}' with new settings?", name(proposal))];
    lines.extend(changes(update));
    if let Some(state) = proposal.current.as_ref().filter(|_| update.force) {
        lines.push(format!("- forced: although it is {state}"));
    }
    lines
}

/// A line for each setting that an update changes.
pub(crate) fn changes(update: &UpdateExperiment) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |word: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("- {word}: {value}")));
    };
    line("name", update.name.clone());
    line("description", update.description.clone());
    line("context", update.context.clone());
    line("tags", update.tags.as_ref().map(|tags| tags.join(", ")));
    line("assignment unit", update.assignment_unit.as_ref().map(ToString::to_string));
    line("group type", update.group_type.clone());
    line("consistency rule", update.consistency_rule.as_ref().map(ToString::to_string));
    line(
        "after enrolment",
        update.post_experiment_rule.as_ref().map(|rule| {
            let code = rule.condition_code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
            format!("{}{code}", rule.rule)
        }),
    );
    line("filter mode", update.filter_mode.as_ref().map(ToString::to_string));
    line("included students", update.inclusion_users.as_deref().map(users));
    line("included groups", update.inclusion_groups.as_deref().map(groups));
    line("excluded students", update.exclusion_users.as_deref().map(users));
    line("excluded groups", update.exclusion_groups.as_deref().map(groups));
    line("conditions", update.conditions.as_deref().map(conditions));
    line("decision points", update.decision_points.as_deref().map(points));
    lines
}

fn status_lines(to: &ExperimentState, force: bool, proposal: &Proposal) -> Vec<String> {
    let from = proposal.current.as_ref().map_or_else(String::new, |from| format!(" from '{from}'"));
    let forced = if force { ", although that is not a usual move" } else { "" };
    let first = format!("Change experiment '{}' status{from} to '{to}'{forced}?", name(proposal));
    vec![first, effect(to).to_owned()]
}

fn conditions(conditions: &[ConditionParam]) -> String {
    let weights = weights(conditions);
    let each = conditions.iter().zip(weights).map(|(condition, weight)| {
        let weight = (weight * 100.0).round() / 100.0;
        format!("{} {weight}%", condition.code)
    });
    each.collect::<Vec<_>>().join(", ")
}

fn users(users: &[String]) -> String {
    if users.is_empty() { "nobody any more".to_owned() } else { users.join(", ") }
}

fn groups(groups: &[GroupParam]) -> String {
    let all: Vec<String> =
        groups.iter().map(|group| format!("{} {}", group.group_type, group.group_id)).collect();
    if all.is_empty() { "none any more".to_owned() } else { all.join(", ") }
}

fn points(points: &[DecisionPointParam]) -> String {
    let each = points.iter().map(|point| {
        let early = if point.exclude_if_reached { " (early visitors left out)" } else { "" };
        format!("{} / {}{early}", point.site, point.target)
    });
    each.collect::<Vec<_>>().join(", ")
}
