//! The triggers of warnings: compares an action with the server's data.

use super::Warning;
use super::enrolments::{enrolled, enrolments_deleted, enrolments_dropped};
use super::lists::{Lists, listed_twice};
use super::points::{default_payloads, early_visitors, new_places, place, shared_points};
use crate::actions::decode::nearest;
use crate::actions::{
    Action, ConditionParam, CreateExperiment, Facts, InitExperimentUser, MarkDecisionPoint, PostRuleParam,
    UpdateExperiment, is_offline, starts,
};
use crate::client::{
    AssignmentAlgorithm, Experiment, ExperimentName, ExperimentState, FilterMode, PostExperimentRule,
};
use crate::plan::is_live;

/// The warnings about an action: settings that are allowed and probably not intended.
///
/// ```
/// use serde_json::json;
/// use upgrade_agent::actions::{ActionKind, Facts, Warning, decode, warnings};
///
/// let params = json!({ "name": "Hints", "context": "assign-prog",
///     "decision_points": [{ "site": "SelectSection", "target": "a" }],
///     "conditions": [{ "code": "control" }, { "code": "variant" }] });
/// let action = decode(ActionKind::CreateExperiment, params.as_object().unwrap()).unwrap();
/// assert_eq!(warnings(&action, &Facts::default()), [Warning::NobodyIncluded { new: true }]);
/// ```
pub fn warnings(action: &Action, facts: &Facts<'_>) -> Vec<Warning> {
    let mut due = Vec::new();
    match action {
        Action::CreateExperiment(create) => of_create(create, *facts, &mut due),
        Action::UpdateExperiment(update) => of_update(update, *facts, &mut due),
        Action::UpdateExperimentStatus(change) => of_status(&change.status, *facts, &mut due),
        Action::DeleteExperiment(_) => due.extend(enrolments_deleted(*facts)),
        Action::InitExperimentUser(init) => of_init(init, *facts, &mut due),
        Action::GetDecisionPointAssignments(asked) => due.extend(global_groups(&asked.context, *facts)),
        Action::MarkDecisionPoint(mark) => of_mark(mark, *facts, &mut due),
        Action::VisitDecisionPoint(visit) => due.extend(global_groups(&visit.context, *facts)),
        Action::SimulateUserJourney(journey) => {
            let started = facts.experiment.is_some_and(|experiment| starts(action, experiment));
            due.extend(global_groups(&journey.context, *facts).filter(|_| !started));
            of_played(action, *facts, &mut due);
        }
        Action::TestConditionBalance(test) => {
            of_played(action, *facts, &mut due);
            let live = facts.experiment.filter(|one| !is_offline(test, &one.state));
            let adapts = |one: &&Experiment| one.assignment_algorithm == AssignmentAlgorithm::TsConfigurable;
            due.extend(live.filter(adapts).map(|_| Warning::SplitAdapts));
        }
    }
    if !facts.untold.is_empty() {
        due.push(Warning::Untold { what: facts.untold.iter().map(|&what| what.to_owned()).collect() });
    }
    due
}

fn of_create(create: &CreateExperiment, facts: Facts<'_>, due: &mut Vec<Warning>) {
    due.extend(near_name(&create.name, None, facts.names));
    let listed = !create.inclusion_users.is_empty() || !create.inclusion_groups.is_empty();
    if !listed && create.filter_mode.as_ref().is_none_or(|mode| *mode == FilterMode::ExcludeAll) {
        due.push(Warning::NobodyIncluded { new: true });
    }
    due.extend(listed_twice(
        (&create.inclusion_users, &create.inclusion_groups),
        (&create.exclusion_users, &create.exclusion_groups),
    ));
    due.extend(create.post_experiment_rule.as_ref().and_then(|rule| assigns(rule, false, None)));
    if assigns_anything(create.post_experiment_rule.as_ref()) && !facts.is_old() {
        let pairs = create.conditions.len() * create.decision_points.len();
        due.extend((pairs > 0).then_some(Warning::DefaultPayloads { pairs }));
    }
    let places = create.decision_points.iter().map(place);
    shared_points(places, &create.context, facts, due);
}

fn of_update(update: &UpdateExperiment, facts: Facts<'_>, due: &mut Vec<Warning>) {
    if let Some(name) = &update.name {
        due.extend(near_name(name, Some(&update.experiment_id), facts.names));
    }
    let Some(old) = facts.experiment else { return };
    let moved = leaves_context(update, old);
    let dropping = moved.filter(|_| !facts.is_old());
    let lists = Lists::after(update, old, dropping.is_some());
    if let Some(from) = dropping {
        let entries = [&old.inclusion, &old.exclusion].map(|list| list.users.len() + list.groups.len());
        let segments = old.inclusion_segments.len() + old.exclusion_segments.len();
        let entries = entries.iter().sum::<usize>() + segments;
        due.push(Warning::ListsDropped { entries, from: from.to_owned(), closed: lists.take_nobody_in() });
    } else if lists.take_nobody_in() && lists.changed {
        due.push(Warning::NobodyIncluded { new: false });
    }
    due.extend(lists.listed_on_both().filter(|_| lists.changed));
    let live = is_live(&old.state);
    let enrolled = facts.enrollment.map(|detail| detail.users);
    let now = old.state == ExperimentState::EnrollmentComplete;
    due.extend(update.post_experiment_rule.as_ref().and_then(|rule| assigns(rule, now, enrolled)));
    let reweighs = update.conditions.as_ref().is_some_and(|conditions| changes_weights(conditions, old));
    due.extend((live && reweighs).then_some(Warning::WeightsOfRunning { enrolled }));
    due.extend(enrolments_dropped(update, old, facts));
    due.extend(default_payloads(update, old, facts));
    let context = update.context.as_deref().or_else(|| old.context.first().map(String::as_str));
    if let (Some(context), true) = (context, update.decision_points.is_some() || moved.is_some()) {
        shared_points(new_places(update, old, moved.is_some()).into_iter(), context, facts, due);
    }
}

fn of_status(to: &ExperimentState, facts: Facts<'_>, due: &mut Vec<Warning>) {
    let Some(experiment) = facts.experiment else { return };
    if *to == ExperimentState::Enrolling {
        return of_start(experiment, facts, due);
    }
    if *to == ExperimentState::Scheduled && experiment.start_on.is_none() {
        due.push(Warning::NoDate);
    }
    let rule = &experiment.post_rule;
    if *to == ExperimentState::EnrollmentComplete && rule.rule == PostExperimentRule::Assign {
        let enrolled = facts.enrollment.map(|detail| detail.users);
        let code = rule.condition_code.clone();
        due.push(Warning::AssignReachesNobodyNew { code, now: true, enrolled });
    } else if let Some((users, groups)) = enrolled(facts).filter(|_| is_live(&experiment.state)) {
        due.push(Warning::EnrolledMeanwhile { users, groups, to: to.clone() });
    }
}

fn of_start(experiment: &Experiment, facts: Facts<'_>, due: &mut Vec<Warning>) {
    let listed = !experiment.inclusion.is_empty() || !experiment.inclusion_segments.is_empty();
    if experiment.filter_mode == FilterMode::ExcludeAll && !listed {
        due.push(Warning::NobodyIncluded { new: false });
    }
    // Resuming after a pause excludes no one.
    if experiment.state != ExperimentState::EnrollmentComplete {
        due.extend(early_visitors(experiment, facts));
    }
    for context in &experiment.context {
        due.extend(global_groups(context, facts));
        let points = experiment.decision_points.iter().map(|point| (&*point.site, &*point.target));
        shared_points(points, context, facts, due);
    }
}

/// The effects on an experiment while students are simulated in it.
fn of_played(action: &Action, facts: Facts<'_>, due: &mut Vec<Warning>) {
    let Some(experiment) = facts.experiment else { return };
    let computed =
        matches!(action, Action::TestConditionBalance(test) if is_offline(test, &experiment.state));
    if experiment.state == ExperimentState::Enrolling && !computed {
        due.push(Warning::PlayedAmongReal { split: matches!(action, Action::TestConditionBalance(_)) });
    }
    if starts(action, experiment) {
        due.push(Warning::RealMeanwhile);
        of_start(experiment, facts, due);
    }
}

fn of_init(init: &InitExperimentUser, facts: Facts<'_>, due: &mut Vec<Warning>) {
    let named = init.group.iter().flat_map(|groups| groups.keys());
    let named = named.chain(init.working_group.iter().flat_map(|groups| groups.keys()));
    let mut kinds: Vec<&str> = named.map(String::as_str).collect();
    kinds.sort_unstable();
    kinds.dedup();
    due.extend(kinds.iter().filter_map(|kind| unknown_group_type(kind, facts)));
    let Some(groups) = &init.group else { return };
    for (kind, group) in init.working_group.iter().flatten() {
        if !groups.get(kind).is_some_and(|all| all.contains(group)) {
            due.push(Warning::WorkingGroupElsewhere { kind: kind.clone(), group: group.clone() });
        }
    }
}

fn of_mark(mark: &MarkDecisionPoint, facts: Facts<'_>, due: &mut Vec<Warning>) {
    let place = &mark.decision_point;
    match (facts.experiment, facts.contexts) {
        (Some(experiment), _) if experiment.state != ExperimentState::Enrolling => {
            due.push(Warning::MarkEnrolsNobody { state: experiment.state.clone() });
        }
        (None, Some(contexts)) => {
            let mut all = contexts.contexts.values();
            if !all.any(|known| known.sites.contains(&place.site) && known.targets.contains(&place.target)) {
                due.push(Warning::UnknownPlace { point: format!("{} / {}", place.site, place.target) });
            }
        }
        _ => {}
    }
}

fn near_name(name: &str, own_id: Option<&str>, names: &[ExperimentName]) -> Option<Warning> {
    let other = names.iter().find(|known| {
        known.name != name && Some(known.id.as_str()) != own_id && spelling(&known.name) == spelling(name)
    })?;
    Some(Warning::NearName { name: other.name.clone() })
}

/// A name without case, spaces and punctuation.
fn spelling(name: &str) -> String {
    let kept: String = name.chars().filter(|sign| sign.is_alphanumeric()).collect();
    if kept.is_empty() { name.to_owned() } else { kept.to_lowercase() }
}

fn assigns(rule: &PostRuleParam, now: bool, enrolled: Option<u64>) -> Option<Warning> {
    let code = rule.condition_code.clone();
    (rule.rule == PostExperimentRule::Assign).then_some(Warning::AssignReachesNobodyNew {
        code,
        now,
        enrolled,
    })
}

fn assigns_anything(rule: Option<&PostRuleParam>) -> bool {
    rule.is_some_and(|rule| rule.rule == PostExperimentRule::Assign)
}

/// The context that an update replaces, if any.
fn leaves_context<'e>(update: &UpdateExperiment, old: &'e Experiment) -> Option<&'e str> {
    let to = update.context.as_deref()?;
    let from = old.context.first()?;
    (to != from).then_some(from)
}

fn changes_weights(conditions: &[ConditionParam], old: &Experiment) -> bool {
    let weights = crate::actions::weights(conditions);
    let differs = |(condition, weight): (&ConditionParam, f64)| {
        old.condition(&condition.code).is_none_or(|known| known.weight != weight)
    };
    conditions.len() != old.conditions.len() || conditions.iter().zip(weights).any(differs)
}

fn global_groups(context: &str, facts: Facts<'_>) -> Option<Warning> {
    let groups = facts.globally_excluded?.members.groups.len();
    (groups > 0).then(|| Warning::GlobalGroupExclusion { context: context.to_owned(), groups })
}

fn unknown_group_type(kind: &str, facts: Facts<'_>) -> Option<Warning> {
    let contexts = &facts.contexts?.contexts;
    let mut known = contexts.values().flat_map(|context| &context.group_types).map(String::as_str);
    if known.clone().any(|one| one == kind) {
        return None;
    }
    let near = nearest(kind, known.by_ref()).map(str::to_owned);
    Some(Warning::UnknownGroupType { kind: kind.to_owned(), near })
}
