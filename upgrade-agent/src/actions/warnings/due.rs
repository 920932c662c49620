//! When a warning is due: an action held against what the server told.

use super::Warning;
use crate::actions::{
    Action, ConditionParam, CreateExperiment, DecisionPointParam, Facts, GroupParam, InitExperimentUser,
    MarkDecisionPoint, PostRuleParam, UpdateExperiment, decode::nearest,
};
use crate::client::{
    ConditionEnrollment, Experiment, ExperimentName, ExperimentState, FilterMode, GroupMember, Members,
    PostExperimentRule,
};

/// What is allowed and probably not meant.
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
    let moved = leaves_context(update, old).filter(|_| !facts.is_old());
    let lists = Lists::after(update, old, moved.is_some());
    if let Some(from) = moved {
        let entries = [&old.inclusion, &old.exclusion].map(|list| list.users.len() + list.groups.len());
        let segments = old.inclusion_segments.len() + old.exclusion_segments.len();
        let entries = entries.iter().sum::<usize>() + segments;
        due.push(Warning::ListsDropped { entries, from: from.to_owned(), closed: lists.take_nobody_in() });
    } else if lists.take_nobody_in() && lists.changed {
        due.push(Warning::NobodyIncluded { new: false });
    }
    due.extend(listed_twice(
        (&lists.inclusion.0, &lists.inclusion.1),
        (&lists.exclusion.0, &lists.exclusion.1),
    ));
    let live = is_live(&old.state);
    let enrolled = facts.enrollment.map(|detail| detail.users);
    let now = old.state == ExperimentState::EnrollmentComplete;
    due.extend(update.post_experiment_rule.as_ref().and_then(|rule| assigns(rule, now, enrolled)));
    let reweighs = update.conditions.as_ref().is_some_and(|conditions| changes_weights(conditions, old));
    due.extend((live && reweighs).then_some(Warning::WeightsOfRunning { enrolled }));
    due.extend(enrolments_dropped(update, old, facts));
    if old.state == ExperimentState::Enrolling && !is_of_lists_alone(update) {
        due.extend(early_visitors(old, true, facts));
    }
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
    // Going on after a pause leaves nobody out.
    if experiment.state != ExperimentState::EnrollmentComplete {
        due.extend(early_visitors(experiment, false, facts));
    }
    for context in &experiment.context {
        due.extend(global_groups(context, facts));
        let points = experiment.decision_points.iter().map(|point| (&*point.site, &*point.target));
        shared_points(points, context, facts, due);
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

/// What is left of a name without case, spaces and signs.
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

/// The lists as they will be.
struct Lists {
    filter: FilterMode,
    inclusion: (Vec<String>, Vec<GroupParam>),
    exclusion: (Vec<String>, Vec<GroupParam>),
    /// Whether a segment on the inclusion list stays, whose members nobody here knows.
    segments: bool,
    changed: bool,
}

impl Lists {
    fn after(update: &UpdateExperiment, old: &Experiment, moved: bool) -> Self {
        let filter = if moved { &FilterMode::ExcludeAll } else { &old.filter_mode };
        let dropped = Members::default();
        let kept = |list| if moved { &dropped } else { list };
        let list = |users: &Option<Vec<String>>, groups: &Option<Vec<GroupParam>>, old: &Members| {
            let old_groups = || old.groups.iter().map(group).collect();
            (users.clone().unwrap_or_else(|| old.users.clone()), groups.clone().unwrap_or_else(old_groups))
        };
        let given = [update.inclusion_users.is_some(), update.exclusion_users.is_some()];
        let given_groups = [update.inclusion_groups.is_some(), update.exclusion_groups.is_some()];
        let changed = given.contains(&true) || given_groups.contains(&true) || update.filter_mode.is_some();
        Lists {
            filter: update.filter_mode.clone().unwrap_or_else(|| filter.clone()),
            inclusion: list(&update.inclusion_users, &update.inclusion_groups, kept(&old.inclusion)),
            exclusion: list(&update.exclusion_users, &update.exclusion_groups, kept(&old.exclusion)),
            segments: !moved && !old.inclusion_segments.is_empty(),
            changed,
        }
    }

    fn take_nobody_in(&self) -> bool {
        let empty = self.inclusion.0.is_empty() && self.inclusion.1.is_empty() && !self.segments;
        self.filter == FilterMode::ExcludeAll && empty
    }
}

fn group(member: &GroupMember) -> GroupParam {
    GroupParam { group_type: member.group_type.clone(), group_id: member.group_id.clone() }
}

type List<'a> = (&'a [String], &'a [GroupParam]);

fn listed_twice(inclusion: List<'_>, exclusion: List<'_>) -> Option<Warning> {
    let users = inclusion.0.iter().filter(|user| exclusion.0.contains(user)).cloned();
    let groups = inclusion.1.iter().filter(|group| exclusion.1.contains(group));
    let groups = groups.map(|group| format!("{} {}", group.group_type, group.group_id));
    let who: Vec<String> = users.chain(groups).collect();
    (!who.is_empty()).then_some(Warning::ListedTwice { who })
}

/// The context that an update leaves, if it leaves one.
fn leaves_context<'e>(update: &UpdateExperiment, old: &'e Experiment) -> Option<&'e str> {
    let (to, from) = (update.context.as_deref()?, old.context.first()?);
    (to != from).then_some(from)
}

/// Whether students are in it, as far as the status tells.
fn is_live(state: &ExperimentState) -> bool {
    matches!(state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete)
}

/// How many students and groups are enrolled, if any are.
fn enrolled(facts: Facts<'_>) -> Option<(u64, u64)> {
    let detail = facts.enrollment?;
    let counts = (detail.users, detail.groups);
    (counts != (0, 0)).then_some(counts)
}

fn enrolments_deleted(facts: Facts<'_>) -> Option<Warning> {
    enrolled(facts).map(|(users, groups)| Warning::EnrolmentsDeleted { users, groups })
}

fn changes_weights(conditions: &[ConditionParam], old: &Experiment) -> bool {
    let weights = crate::actions::weights(conditions);
    let differs = |(condition, weight): (&ConditionParam, f64)| {
        old.condition(&condition.code).is_none_or(|known| known.weight != weight)
    };
    conditions.len() != old.conditions.len() || conditions.iter().zip(weights).any(differs)
}

/// Enrolments in conditions and at points that an update removes.
fn enrolments_dropped(update: &UpdateExperiment, old: &Experiment, facts: Facts<'_>) -> Option<Warning> {
    let detail = facts.enrollment?;
    let stays = |code: &str| {
        update.conditions.as_ref().is_none_or(|all| all.iter().any(|condition| condition.code == code))
    };
    let is_at = |site: &str, target: &str| {
        let is_it = |point: &DecisionPointParam| point.site == site && point.target == target;
        update.decision_points.as_ref().is_none_or(|all| all.iter().any(is_it))
    };
    let (mut removed, mut users) = (Vec::new(), 0);
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
    // One student may be enrolled at several points.
    (users > 0).then(|| Warning::EnrolmentsDropped { removed, users: users.min(detail.users) })
}

fn enrolled_at(conditions: &[ConditionEnrollment], point: &str) -> u64 {
    let points = conditions.iter().flat_map(|condition| &condition.decision_points);
    points.filter(|one| one.id == point).map(|one| one.users).sum()
}

fn early_visitors(experiment: &Experiment, running: bool, facts: Facts<'_>) -> Option<Warning> {
    let marked = experiment.decision_points.iter().filter(|point| point.exclude_if_reached);
    let points: Vec<String> = marked.map(|point| format!("{} / {}", point.site, point.target)).collect();
    let known = facts.seen_before.unwrap_or(0);
    (!points.is_empty()).then_some(Warning::EarlierVisitors { points, known, running })
}

/// The pairs of condition and decision point that the update's PUT fills, as the experiment will be then.
fn default_payloads(update: &UpdateExperiment, old: &Experiment, facts: Facts<'_>) -> Option<Warning> {
    if facts.is_old() || is_of_lists_alone(update) {
        return None;
    }
    let id_of = |code: &str| old.condition(code).map(|condition| condition.id.as_str());
    let conditions: Vec<Option<&str>> = match &update.conditions {
        Some(given) => given.iter().map(|condition| id_of(&condition.code)).collect(),
        None => old.conditions.iter().map(|condition| Some(condition.id.as_str())).collect(),
    };
    let is_at = |point: &DecisionPointParam| {
        let known =
            old.decision_points.iter().find(|known| known.site == point.site && known.target == point.target);
        known.map(|known| known.id.as_str())
    };
    let points: Vec<Option<&str>> = match &update.decision_points {
        Some(given) => given.iter().map(is_at).collect(),
        None => old.decision_points.iter().map(|point| Some(point.id.as_str())).collect(),
    };
    let has = |condition: &str, point: &str| {
        old.payloads
            .iter()
            .any(|payload| payload.condition_id == condition && payload.decision_point_id == point)
    };
    let all = conditions.iter().flat_map(|&condition| points.iter().map(move |&point| (condition, point)));
    let pairs =
        all.filter(|pair| !matches!(pair, (Some(condition), Some(point)) if has(condition, point))).count();
    (pairs > 0).then_some(Warning::DefaultPayloads { pairs })
}

/// Lists are written in calls of their own, which leave the rest alone.
fn is_of_lists_alone(update: &UpdateExperiment) -> bool {
    let lists = UpdateExperiment {
        experiment_id: update.experiment_id.clone(),
        force: update.force,
        inclusion_users: update.inclusion_users.clone(),
        inclusion_groups: update.inclusion_groups.clone(),
        exclusion_users: update.exclusion_users.clone(),
        exclusion_groups: update.exclusion_groups.clone(),
        ..UpdateExperiment::default()
    };
    *update == lists
}

/// The points of the experiment as it will be that it shares with nobody by this update's doing yet: the new ones, or all
/// of them in a new context.
fn new_places<'a>(update: &'a UpdateExperiment, old: &'a Experiment, all: bool) -> Vec<(&'a str, &'a str)> {
    let before: Vec<(&str, &str)> =
        old.decision_points.iter().map(|point| (&*point.site, &*point.target)).collect();
    match &update.decision_points {
        Some(points) => points.iter().map(place).filter(|place| all || !before.contains(place)).collect(),
        None => before,
    }
}

fn place(point: &DecisionPointParam) -> (&str, &str) {
    (&point.site, &point.target)
}

/// Experiments that are over share nothing any more.
fn shared_points<'a>(
    places: impl Iterator<Item = (&'a str, &'a str)>,
    context: &str,
    facts: Facts<'_>,
    due: &mut Vec<Warning>,
) {
    let is_over =
        |state: &ExperimentState| matches!(state, ExperimentState::Cancelled | ExperimentState::Archived);
    for (site, target) in places {
        let others = facts.others(context).filter(|other| !is_over(&other.state));
        let here = others.filter(|other| {
            other.decision_points.iter().any(|point| point.site == site && point.target == target)
        });
        let experiments: Vec<String> =
            here.map(|other| format!("'{}' ({})", other.name, other.state)).collect();
        if !experiments.is_empty() {
            due.push(Warning::SharedPoint { point: format!("{site} / {target}"), experiments });
        }
    }
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
