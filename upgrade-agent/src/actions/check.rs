//! Compares an action with the server's data, and finds mistakes that the server would accept.

mod parts;
mod simulations;
mod students;
mod words;

use super::display::display;
use super::transitions::{is_usual, usual_targets};
use super::{Action, CreateExperiment, Facts, UpdateExperiment, UpdateExperimentStatus};
use crate::client::{
    AssignmentUnit, ContextMetadata, Experiment, ExperimentName, ExperimentState, ExperimentType,
    PostExperimentRule,
};
use parts::{
    NamedContext, TOLERANCE, check_conditions, check_context, check_filter, check_list, check_name,
    check_points, check_rule, check_tags, check_unit, rounded,
};
use simulations::{check_balance, check_journey, check_visit};
use students::{check_init, check_mark, check_user};
use words::{check_known, in_context, not_a_word};

/// A mistake, and the parameter that it is in; none if it is in no single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) parameter: Option<&'static str>,
    pub(crate) text: String,
}

/// The mistakes found so far, and the parameter that is being checked.
#[derive(Default)]
struct Problems(Vec<Problem>, Option<&'static str>);

impl Problems {
    /// Begins with a parameter.
    fn of(&mut self, parameter: &'static str) -> &mut Self {
        self.1 = Some(parameter);
        self
    }

    /// Begins with what concerns several parameters.
    fn of_all(&mut self) -> &mut Self {
        self.1 = None;
        self
    }

    fn push(&mut self, text: String) {
        self.0.push(Problem { parameter: self.1, text });
    }
}

/// The mistakes of an action, a sentence each, with what would be right. Missing facts are not checked.
///
/// ```
/// use serde_json::json;
/// use upgrade_agent::actions::{ActionKind, Facts, check, decode};
///
/// let params = json!({ "name": "Hints", "context": "assign-prog",
///     "decision_points": [{ "site": "SelectSection", "target": "a" }],
///     "conditions": [{ "code": "control", "weight": 50 }, { "code": "variant", "weight": 60 }] });
/// let action = decode(ActionKind::CreateExperiment, params.as_object().unwrap()).unwrap();
/// assert_eq!(check(&action, &Facts::default()), ["the weights must sum to 100, and they sum to 110"]);
/// ```
pub fn check(action: &Action, facts: &Facts<'_>) -> Vec<String> {
    problems(action, facts).into_iter().map(|problem| problem.text).collect()
}

/// The mistakes of an action with their parameters.
pub(crate) fn problems(action: &Action, facts: &Facts<'_>) -> Vec<Problem> {
    let mut all = Problems::default();
    let found = &mut all;
    match action {
        Action::CreateExperiment(create) => check_create(create, facts, found),
        Action::UpdateExperiment(update) => check_update(update, facts, found),
        Action::UpdateExperimentStatus(status) => check_status(status, facts, found),
        Action::GetDecisionPointAssignments(asked) => {
            check_user(&asked.user_id, found);
            check_context(&asked.context, facts, found);
        }
        Action::MarkDecisionPoint(mark) => check_mark(mark, facts, found),
        Action::InitExperimentUser(init) => check_init(init, found),
        Action::VisitDecisionPoint(visit) => check_visit(visit, facts, found),
        Action::TestConditionBalance(test) => check_balance(action, test, facts, found),
        Action::SimulateUserJourney(journey) => check_journey(journey, facts, found),
        Action::DeleteExperiment(_) => {}
    }
    all.0
}

/// The mistake in the name of a context.
pub(crate) fn unknown_context(name: &str, contexts: &ContextMetadata) -> Option<String> {
    let mut found = Problems::default();
    check_context(name, &Facts { contexts: Some(contexts), ..Facts::default() }, &mut found);
    found.0.pop().map(|problem| problem.text)
}

/// The sentence for an unknown experiment, with the name that may be meant.
pub(crate) fn unknown_experiment(name: &str, names: &[ExperimentName]) -> String {
    let known: Vec<&str> = names.iter().map(|known| known.name.as_str()).collect();
    let mut found = Problems::default();
    check_known("experiment", name, &known, "this server", &mut found);
    found.0.pop().map(|problem| problem.text).unwrap_or_default()
}

fn check_create(create: &CreateExperiment, facts: &Facts<'_>, found: &mut Problems) {
    check_name(&create.name, None, facts, found.of("name"));
    let context = check_context(&create.context, facts, found.of("context"));
    let unit = create.assignment_unit.as_ref().unwrap_or(&AssignmentUnit::Individual);
    check_unit(unit, create.group_type.as_deref(), create.consistency_rule.as_ref(), context, found);
    check_conditions(&create.conditions, context, found.of("conditions"));
    check_points(&create.decision_points, context, found.of("decision_points"));
    check_filter(create.filter_mode.as_ref(), found.of("filter_mode"));
    check_tags(&create.tags, found.of("tags"));
    let codes: Vec<&str> = create.conditions.iter().map(|condition| condition.code.as_str()).collect();
    check_rule(create.post_experiment_rule.as_ref(), &codes, found.of("post_experiment_rule"));
    check_list("inclusion", &create.inclusion_users, &create.inclusion_groups, context, found);
    check_list("exclusion", &create.exclusion_users, &create.exclusion_groups, context, found);
}

fn check_update(update: &UpdateExperiment, facts: &Facts<'_>, found: &mut Problems) {
    if update.params_are_empty() {
        found.push("an update must change something: name what".to_owned());
    }
    let old = facts.experiment;
    if let Some(name) = &update.name {
        check_name(name, Some(&update.experiment_id), facts, found.of("name"));
    }
    let context = update.context.as_deref().or(old.and_then(|old| old.context.first().map(String::as_str)));
    let context = context.and_then(|name| check_context(name, facts, found.of("context")));
    check_new_unit(update, old, context, found);
    if let Some(conditions) = &update.conditions {
        check_conditions(conditions, context, found.of("conditions"));
    }
    if let Some(points) = &update.decision_points {
        check_points(points, context, found.of("decision_points"));
    }
    check_filter(update.filter_mode.as_ref(), found.of("filter_mode"));
    check_tags(update.tags.as_deref().unwrap_or_default(), found.of("tags"));
    let users = update.inclusion_users.as_deref();
    let groups = update.inclusion_groups.as_deref();
    check_list("inclusion", users.unwrap_or_default(), groups.unwrap_or_default(), context, found);
    let users = update.exclusion_users.as_deref();
    let groups = update.exclusion_groups.as_deref();
    check_list("exclusion", users.unwrap_or_default(), groups.unwrap_or_default(), context, found);
    check_new_rule(update, old, found);
    let found = found.of_all();
    let Some(old) = old else { return };
    check_lock(update, old, found);
    check_design(update, old, found);
    if let Some(context) = context.filter(|_| update.context.is_some()) {
        check_kept_parts(update, old, context, found);
    }
}

/// The unit with its group type and consistency rule, after the change.
fn check_new_unit(
    update: &UpdateExperiment,
    old: Option<&Experiment>,
    context: Option<NamedContext<'_>>,
    found: &mut Problems,
) {
    if update.assignment_unit.is_none() && update.group_type.is_none() && update.consistency_rule.is_none() {
        return;
    }
    let unit = update.assignment_unit.as_ref().or(old.map(|old| &old.assignment_unit));
    let group_type = update.group_type.as_deref().or_else(|| {
        let stays = unit == Some(&AssignmentUnit::Group);
        old.filter(|_| stays).and_then(|old| old.group_type.as_deref())
    });
    let unit = unit.unwrap_or(&AssignmentUnit::Individual);
    let kept =
        || old.filter(|_| update.assignment_unit.is_some()).and_then(|old| old.consistency_rule.as_ref());
    let rule = update.consistency_rule.as_ref().or_else(kept);
    check_unit(unit, group_type, rule, context, found);
}

/// The post-experiment rule and the conditions, after the change.
fn check_new_rule(update: &UpdateExperiment, old: Option<&Experiment>, found: &mut Problems) {
    let given =
        update.conditions.as_deref().unwrap_or_default().iter().map(|condition| condition.code.as_str());
    let kept = old.filter(|_| update.conditions.is_none()).map(|old| &old.conditions);
    let kept = kept.into_iter().flatten().map(|condition| condition.code.as_str());
    let codes: Vec<&str> = given.chain(kept).collect();
    check_rule(update.post_experiment_rule.as_ref(), &codes, found.of("post_experiment_rule"));
    let standing = old.filter(|_| update.post_experiment_rule.is_none()).map(|old| &old.post_rule);
    let assigned = standing.filter(|rule| rule.rule == PostExperimentRule::Assign);
    if let Some(code) = assigned.and_then(|rule| rule.condition_code.as_deref())
        && !codes.contains(&code)
    {
        found.push(format!(
            "the post-experiment rule assigns `{code}`, which this update removes: keep it, or give another \
             post_experiment_rule"
        ));
    }
}

/// The changes that are not allowed while students are in an experiment.
fn check_lock(update: &UpdateExperiment, old: &Experiment, found: &mut Problems) {
    let locked = matches!(old.state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete);
    if !locked || update.force {
        return;
    }
    let touches = update.conditions.is_some() || update.decision_points.is_some();
    if touches {
        found.push(format!(
            "experiment '{}' is {}, and its conditions and decision points must not change while students are in it; \
             say that you want it forced if you mean it",
            display(&old.name),
            old.state
        ));
    }
    let moves = update.context.as_ref().is_some_and(|context| !old.context.contains(context));
    let unit = update.assignment_unit.as_ref().is_some_and(|unit| *unit != old.assignment_unit);
    let kind = update.group_type.is_some() && update.group_type != old.group_type;
    for (changes, what) in [(moves, "context"), (unit, "assignment unit"), (kind, "group type")] {
        if changes {
            found.push(format!(
                "experiment '{}' is {}, and its {what} must not change while students are in it; say that you want it \
                 forced if you mean it",
                display(&old.name),
            old.state
            ));
        }
    }
}

/// Designs that these parameters cannot express are not changed.
fn check_design(update: &UpdateExperiment, old: &Experiment, found: &mut Problems) {
    if old.design == ExperimentType::Factorial && update.conditions.is_some() {
        found.push(format!(
            "experiment '{}' is factorial: its conditions are combinations of levels, which can be changed on UpGrade's \
             own screen only",
            display(&old.name)
        ));
    }
    let unit = update.assignment_unit.is_some() || update.consistency_rule.is_some();
    if old.assignment_unit == AssignmentUnit::WithinSubjects && unit {
        found.push(format!(
            "experiment '{}' is within-subjects: its unit and consistency can be changed on UpGrade's own screen only",
            display(&old.name)
        ));
    }
}

/// The remaining parts must be known in the new context too.
fn check_kept_parts(
    update: &UpdateExperiment,
    old: &Experiment,
    (name, context): NamedContext<'_>,
    found: &mut Problems,
) {
    if old.context.iter().any(|known| known == name) {
        return;
    }
    let strange_code = old.conditions.iter().any(|known| !context.conditions.contains(&known.code));
    if update.conditions.is_none() && strange_code {
        found.push(format!(
            "{} does not know the conditions of experiment '{}': give the conditions for it, too",
            in_context(name),
            display(&old.name)
        ));
    }
    let is_known =
        |site: &String, target: &String| context.sites.contains(site) && context.targets.contains(target);
    let strange_point = old.decision_points.iter().any(|point| !is_known(&point.site, &point.target));
    if update.decision_points.is_none() && strange_point {
        found.push(format!(
            "{} does not know the decision points of experiment '{}': give the decision_points for it, too",
            in_context(name),
            display(&old.name)
        ));
    }
    let kind =
        old.group_type.as_ref().filter(|_| update.group_type.is_none() && update.assignment_unit.is_none());
    if let Some(kind) = kind.filter(|kind| !context.group_types.contains(kind)) {
        found.push(format!(
            "{} has no group type `{kind}`: give the group_type for it, too",
            in_context(name)
        ));
    }
}

fn check_status(change: &UpdateExperimentStatus, facts: &Facts<'_>, found: &mut Problems) {
    if let ExperimentState::Unknown(word) = &change.status {
        let newer = ["running", "paused", "completed"];
        let words: Vec<&str> = ExperimentState::WORDS.iter().copied().chain(newer).collect();
        found.push(not_a_word("status", word, &words));
        return;
    }
    let Some(experiment) = facts.experiment else { return };
    let name = display(&experiment.name);
    let from = &experiment.state;
    let to = &change.status;
    if from == to {
        found.push(format!("experiment '{name}' is {to} already"));
        return;
    }
    if !is_usual(from, to) && !change.force {
        found.push(unusual(from, to));
    }
    if matches!(to, ExperimentState::Enrolling | ExperimentState::Scheduled) && !change.force {
        check_ready(experiment, found);
    }
}

fn unusual(from: &ExperimentState, to: &ExperimentState) -> String {
    let targets = usual_targets(from).iter().map(ExperimentState::to_string).collect::<Vec<_>>().join(", ");
    let targets = if targets.is_empty() { "nothing".to_owned() } else { targets };
    format!(
        "an experiment that is {from} usually becomes {targets}, not {to}; say that you want it forced if you mean it"
    )
}

/// The conditions under which UpGrade's own screen lets an experiment start.
fn check_ready(experiment: &Experiment, found: &mut Problems) {
    let name = display(&experiment.name);
    if experiment.decision_points.is_empty() {
        found.push(format!(
            "experiment '{name}' has no decision points, so it cannot start: give it one first"
        ));
    }
    if experiment.conditions.is_empty() {
        found.push(format!("experiment '{name}' has no conditions, so it cannot start: give it some first"));
        return;
    }
    let weights = experiment.conditions.iter().map(|condition| condition.weight);
    if let Some(bad) = weights.clone().find(|weight| !weight.is_finite() || *weight < 0.0) {
        found.push(format!(
            "a condition of experiment '{name}' has the weight {bad}, so it cannot start: give weights from 0 to 100"
        ));
        return;
    }
    let sum: f64 = weights.sum();
    // Within-subjects experiments show each condition in turn and have no weights.
    let weighs = experiment.assignment_unit != AssignmentUnit::WithinSubjects;
    if weighs && (sum - 100.0).abs() > TOLERANCE {
        let sum = rounded(sum);
        found.push(format!(
            "the weights of experiment '{name}' sum to {sum}, not to 100, so it cannot start: change them first"
        ));
    }
}

impl UpdateExperiment {
    fn params_are_empty(&self) -> bool {
        let nothing = UpdateExperiment {
            experiment_id: self.experiment_id.clone(),
            force: self.force,
            ..UpdateExperiment::default()
        };
        *self == nothing
    }
}
