//! Holding an action against what the server told: everything the server itself would let pass.

use super::decode::nearest;
use super::params::weights;
use super::transitions::{is_usual, usual_targets};
use super::{
    Action, ConditionParam, CreateExperiment, DecisionPointParam, Facts, PostRuleParam, UpdateExperiment,
    UpdateExperimentStatus,
};
use crate::client::{
    AssignmentUnit, ConsistencyRule, Context, ContextMetadata, Experiment, ExperimentName, ExperimentState,
    FilterMode, PostExperimentRule,
};

/// How far the sum of the weights may be from 100: what adding up decimals costs, and no more.
const TOLERANCE: f64 = 1e-6;

/// Says what is wrong with an action, a sentence each. What the facts do not hold is not checked.
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
    let mut found = Vec::new();
    match action {
        Action::CreateExperiment(create) => check_create(create, facts, &mut found),
        Action::UpdateExperiment(update) => check_update(update, facts, &mut found),
        Action::UpdateExperimentStatus(status) => check_status(status, facts, &mut found),
        Action::GetDecisionPointAssignments(asked) => {
            check_context(&asked.context, facts, &mut found);
        }
        Action::MarkDecisionPoint(mark) => {
            let code = mark.assigned_condition.as_ref().and_then(|shown| shown.condition_code.as_deref());
            if let (Some(experiment), Some(code)) = (facts.experiment, code) {
                let codes: Vec<&str> =
                    experiment.conditions.iter().map(|known| known.code.as_str()).collect();
                check_known(
                    "condition",
                    code,
                    &codes,
                    &format!("experiment '{}'", experiment.name),
                    &mut found,
                );
            }
        }
        Action::DeleteExperiment(_) | Action::InitExperimentUser(_) => {}
    }
    found
}

fn check_create(create: &CreateExperiment, facts: &Facts<'_>, found: &mut Vec<String>) {
    check_name(&create.name, None, facts, found);
    let context = check_context(&create.context, facts, found);
    let unit = create.assignment_unit.as_ref().unwrap_or(&AssignmentUnit::Individual);
    check_unit(unit, create.group_type.as_deref(), create.consistency_rule.as_ref(), context, found);
    check_conditions(&create.conditions, context, found);
    check_points(&create.decision_points, context, found);
    check_filter(create.filter_mode.as_ref(), found);
    let codes: Vec<&str> = create.conditions.iter().map(|condition| condition.code.as_str()).collect();
    check_rule(create.post_experiment_rule.as_ref(), &codes, found);
    for group in create.inclusion_groups.iter().chain(&create.exclusion_groups) {
        if let Some((name, context)) = context {
            let types: Vec<&str> = context.group_types.iter().map(String::as_str).collect();
            check_known("group type", &group.group_type, &types, &in_context(name), found);
        }
    }
}

fn check_update(update: &UpdateExperiment, facts: &Facts<'_>, found: &mut Vec<String>) {
    if update.params_are_empty() {
        found.push("an update must change something: name what".to_owned());
    }
    let old = facts.experiment;
    if let Some(name) = &update.name {
        check_name(name, Some(&update.experiment_id), facts, found);
    }
    let context = update.context.as_deref().or(old.and_then(|old| old.context.first().map(String::as_str)));
    let context = context.and_then(|name| check_context(name, facts, found));
    if update.assignment_unit.is_some() || update.group_type.is_some() || update.consistency_rule.is_some() {
        let unit = update.assignment_unit.as_ref().or(old.map(|old| &old.assignment_unit));
        let group_type = update.group_type.as_deref().or_else(|| {
            let stays = unit == Some(&AssignmentUnit::Group);
            old.filter(|_| stays).and_then(|old| old.group_type.as_deref())
        });
        let unit = unit.unwrap_or(&AssignmentUnit::Individual);
        check_unit(unit, group_type, update.consistency_rule.as_ref(), context, found);
    }
    if let Some(conditions) = &update.conditions {
        check_conditions(conditions, context, found);
    }
    if let Some(points) = &update.decision_points {
        check_points(points, context, found);
    }
    check_filter(update.filter_mode.as_ref(), found);
    let given =
        update.conditions.as_deref().unwrap_or_default().iter().map(|condition| condition.code.as_str());
    let kept = old.filter(|_| update.conditions.is_none()).map(|old| &old.conditions);
    let kept = kept.into_iter().flatten().map(|condition| condition.code.as_str());
    let codes: Vec<&str> = given.chain(kept).collect();
    check_rule(update.post_experiment_rule.as_ref(), &codes, found);
    check_lock(update, old, found);
}

/// Conditions and decision points of an experiment that students are in.
fn check_lock(update: &UpdateExperiment, old: Option<&Experiment>, found: &mut Vec<String>) {
    let Some(old) = old else { return };
    let locked = matches!(old.state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete);
    let touches = update.conditions.is_some() || update.decision_points.is_some();
    if locked && touches && !update.force {
        found.push(format!(
            "experiment '{}' is {}, and its conditions and decision points must not change while students are in it; \
             say that you want it forced if you mean it",
            old.name, old.state
        ));
    }
}

fn check_status(change: &UpdateExperimentStatus, facts: &Facts<'_>, found: &mut Vec<String>) {
    if let ExperimentState::Unknown(word) = &change.status {
        let newer = ["running", "paused", "completed"];
        let words: Vec<&str> = ExperimentState::WORDS.iter().copied().chain(newer).collect();
        found.push(not_a_word("status", word, &words));
        return;
    }
    let Some(experiment) = facts.experiment else { return };
    let (name, from, to) = (&experiment.name, &experiment.state, &change.status);
    if from == to {
        found.push(format!("experiment '{name}' is {to} already"));
        return;
    }
    if !is_usual(from, to) && !change.force {
        let targets =
            usual_targets(from).iter().map(ExperimentState::to_string).collect::<Vec<_>>().join(", ");
        let targets = if targets.is_empty() { "nothing".to_owned() } else { targets };
        found.push(format!(
            "an experiment that is {from} usually becomes {targets}, not {to}; say that you want it forced if you mean it"
        ));
    }
    if *to == ExperimentState::Enrolling && !change.force {
        check_ready(experiment, found);
    }
}

/// What UpGrade's own screen asks before it lets an experiment start.
fn check_ready(experiment: &Experiment, found: &mut Vec<String>) {
    let name = &experiment.name;
    if experiment.decision_points.is_empty() {
        found.push(format!("experiment '{name}' has no decision points, so it cannot start"));
    }
    if experiment.conditions.is_empty() {
        found.push(format!("experiment '{name}' has no conditions, so it cannot start"));
        return;
    }
    let sum: f64 = experiment.conditions.iter().map(|condition| condition.weight).sum();
    if (sum - 100.0).abs() > TOLERANCE {
        found
            .push(format!("the weights of experiment '{name}' sum to {sum}, not to 100, so it cannot start"));
    }
}

fn check_name(name: &str, own_id: Option<&str>, facts: &Facts<'_>, found: &mut Vec<String>) {
    if name.trim().is_empty() {
        found.push("an experiment needs a name".to_owned());
    }
    let taken = |known: &&ExperimentName| known.name == name && Some(known.id.as_str()) != own_id;
    if let Some(other) = facts.names.iter().find(taken) {
        found.push(format!("there is an experiment '{name}' already ({}); choose another name", other.id));
    }
}

/// The context by name, if it is known what contexts there are and this is one.
fn check_context<'a>(
    name: &'a str,
    facts: &Facts<'a>,
    found: &mut Vec<String>,
) -> Option<(&'a str, &'a Context)> {
    let contexts = facts.contexts?;
    let Some(context) = contexts.get(name) else {
        let known: Vec<&str> = contexts.names().collect();
        check_known("context", name, &known, "this server", found);
        return None;
    };
    Some((name, context))
}

/// What is wrong with the name of a context.
pub(crate) fn unknown_context(name: &str, contexts: &ContextMetadata) -> Option<String> {
    let mut found = Vec::new();
    check_context(name, &Facts { contexts: Some(contexts), ..Facts::default() }, &mut found);
    found.pop()
}

/// Says that there is no experiment of that name, and which one may be meant.
pub(crate) fn unknown_experiment(name: &str, names: &[ExperimentName]) -> String {
    let known: Vec<&str> = names.iter().map(|known| known.name.as_str()).collect();
    let mut found = Vec::new();
    check_known("experiment", name, &known, "this server", &mut found);
    found.pop().unwrap_or_default()
}

fn check_unit(
    unit: &AssignmentUnit,
    group_type: Option<&str>,
    rule: Option<&ConsistencyRule>,
    context: Option<(&str, &Context)>,
    found: &mut Vec<String>,
) {
    match (unit, group_type) {
        (AssignmentUnit::Individual, Some(_)) => {
            found.push("a group type goes with the assignment unit group only".to_owned());
        }
        (AssignmentUnit::Group, None) => {
            found.push("the assignment unit group needs a group_type".to_owned());
        }
        (AssignmentUnit::Group, Some(group_type)) => {
            if let Some((name, context)) = context {
                let types: Vec<&str> = context.group_types.iter().map(String::as_str).collect();
                check_known("group type", group_type, &types, &in_context(name), found);
            }
        }
        (AssignmentUnit::Individual, None) => {}
        (other, _) => found.push(not_a_word("assignment unit", other.as_str(), &["individual", "group"])),
    }
    match rule {
        None | Some(ConsistencyRule::Individual) => {}
        Some(ConsistencyRule::Group) if *unit == AssignmentUnit::Group => {}
        Some(ConsistencyRule::Group) => {
            found.push("the consistency rule group goes with the assignment unit group only".to_owned());
        }
        Some(other) => found.push(not_a_word("consistency rule", other.as_str(), &["individual", "group"])),
    }
}

fn check_conditions(
    conditions: &[ConditionParam],
    context: Option<(&str, &Context)>,
    found: &mut Vec<String>,
) {
    let codes: Vec<&str> = conditions.iter().map(|condition| condition.code.as_str()).collect();
    check_twice("condition", &codes, found);
    for code in &codes {
        if code.eq_ignore_ascii_case("default") {
            found.push("UpGrade keeps the code `default` for itself; choose another".to_owned());
        } else if let Some((name, context)) = context {
            let known: Vec<&str> = context.conditions.iter().map(String::as_str).collect();
            check_known("condition", code, &known, &in_context(name), found);
        }
    }
    let weights = weights(conditions);
    if let Some(bad) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
        found.push(format!("a weight is a percentage, and {bad} is none"));
        return;
    }
    let sum: f64 = weights.iter().sum();
    if conditions.is_empty() {
        found.push("an experiment needs at least one condition".to_owned());
    } else if (sum - 100.0).abs() > TOLERANCE {
        found.push(format!("the weights must sum to 100, and they sum to {sum}"));
    }
}

fn check_points(points: &[DecisionPointParam], context: Option<(&str, &Context)>, found: &mut Vec<String>) {
    if points.is_empty() {
        found.push("an experiment needs at least one decision point".to_owned());
    }
    let places: Vec<String> =
        points.iter().map(|point| format!("{} / {}", point.site, point.target)).collect();
    check_twice("decision point", &places.iter().map(String::as_str).collect::<Vec<_>>(), found);
    let Some((name, context)) = context else { return };
    let sites: Vec<&str> = context.sites.iter().map(String::as_str).collect();
    let targets: Vec<&str> = context.targets.iter().map(String::as_str).collect();
    for point in points {
        check_known("site", &point.site, &sites, &in_context(name), found);
        check_known("target", &point.target, &targets, &in_context(name), found);
    }
}

fn check_filter(mode: Option<&FilterMode>, found: &mut Vec<String>) {
    if let Some(FilterMode::Unknown(word)) = mode {
        found.push(not_a_word("filter mode", word, FilterMode::WORDS));
    }
}

fn check_rule(rule: Option<&PostRuleParam>, codes: &[&str], found: &mut Vec<String>) {
    let Some(rule) = rule else { return };
    match (&rule.rule, &rule.condition_code) {
        (PostExperimentRule::Continue, None) | (PostExperimentRule::Assign, None) => {}
        (PostExperimentRule::Assign, Some(code)) if codes.contains(&code.as_str()) => {}
        (PostExperimentRule::Assign, Some(code)) => {
            found.push(format!("the post-experiment rule assigns `{code}`, which is none of the conditions"));
        }
        (PostExperimentRule::Continue, Some(_)) => {
            found.push("the post-experiment rule `continue` takes no condition".to_owned());
        }
        (other, _) => found.push(not_a_word("post-experiment rule", other.as_str(), &["continue", "assign"])),
    }
}

fn check_twice(what: &str, all: &[&str], found: &mut Vec<String>) {
    for (at, one) in all.iter().enumerate() {
        if all[..at].contains(one) {
            found.push(format!("the {what} `{one}` is there twice"));
        }
    }
}

fn check_known(what: &str, word: &str, known: &[&str], place: &str, found: &mut Vec<String>) {
    if known.contains(&word) {
        return;
    }
    let hint = match nearest(word, known.iter().copied()) {
        Some(near) if near.eq_ignore_ascii_case(word) => {
            format!("did you mean `{near}`? Upper and lower case differ")
        }
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "it has none".to_owned(),
        None => format!("it has {}", known.join(", ")),
    };
    found.push(format!("{place} has no {what} `{word}`: {hint}"));
}

fn not_a_word(what: &str, word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("`{word}` is no {what}; did you mean `{near}`?"),
        None => format!("`{word}` is no {what}; there are {}", known.join(", ")),
    }
}

fn in_context(name: &str) -> String {
    format!("the context `{name}`")
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
