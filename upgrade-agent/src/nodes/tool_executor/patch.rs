//! The requested change of an experiment's design, and the part of it that is still missing.

use std::collections::BTreeSet;

use crate::actions::{self, GroupParam, PostRuleParam, UpdateExperiment};
use crate::client::{
    Condition, DecisionPoint, Experiment, ExperimentPatch, GroupMember, Members, NewCondition,
    NewDecisionPoint, PostRule,
};

/// The change in the client's types.
pub(super) fn patch(update: &UpdateExperiment, now: &Experiment) -> ExperimentPatch {
    ExperimentPatch {
        name: update.name.clone(),
        description: update.description.clone(),
        context: update.context.clone(),
        tags: update.tags.clone(),
        assignment_unit: update.assignment_unit.clone(),
        group_type: update.group_type.clone(),
        consistency_rule: update.consistency_rule.clone(),
        post_rule: update.post_experiment_rule.as_ref().map(post_rule),
        filter_mode: update.filter_mode.clone(),
        conditions: update.conditions.as_deref().map(conditions),
        decision_points: update.decision_points.as_deref().map(points),
        inclusion: list(&update.inclusion_users, &update.inclusion_groups, &now.inclusion),
        exclusion: list(&update.exclusion_users, &update.exclusion_groups, &now.exclusion),
    }
}

/// The part of a change that the experiment does not have yet; empty if it was made already.
pub(super) fn missing_changes(patch: &ExperimentPatch, now: &Experiment) -> ExperimentPatch {
    ExperimentPatch {
        name: lacks(&patch.name, |name| *name == now.name),
        description: lacks(&patch.description, |text| *text == now.description),
        context: lacks(&patch.context, |context| now.context == [context.as_str()]),
        tags: lacks(&patch.tags, |tags| *tags == now.tags),
        assignment_unit: lacks(&patch.assignment_unit, |unit| *unit == now.assignment_unit),
        group_type: lacks(&patch.group_type, |kind| now.group_type.as_ref() == Some(kind)),
        consistency_rule: lacks(&patch.consistency_rule, |rule| now.consistency_rule.as_ref() == Some(rule)),
        post_rule: lacks(&patch.post_rule, |rule| *rule == now.post_rule),
        filter_mode: lacks(&patch.filter_mode, |mode| *mode == now.filter_mode),
        inclusion: lacks(&patch.inclusion, |members| are_same(members, &now.inclusion)),
        exclusion: lacks(&patch.exclusion, |members| are_same(members, &now.exclusion)),
        conditions: lacks(&patch.conditions, |conditions| have_conditions(now, conditions)),
        decision_points: lacks(&patch.decision_points, |points| have_points(now, points)),
    }
}

/// Whether the missing part is the one that servers from 6.3 on accept only in later calls, and the first
/// call was made.
pub(super) fn was_begun(patch: &ExperimentPatch, rest: &ExperimentPatch) -> bool {
    let later = ExperimentPatch {
        filter_mode: rest.filter_mode.clone(),
        inclusion: rest.inclusion.clone(),
        exclusion: rest.exclusion.clone(),
        ..ExperimentPatch::default()
    };
    rest != patch && *rest == later
}

fn lacks<T: Clone>(wanted: &Option<T>, is_there: impl FnOnce(&T) -> bool) -> Option<T> {
    wanted.as_ref().filter(|wanted| !is_there(wanted)).cloned()
}

fn are_same(one: &Members, other: &Members) -> bool {
    let all = |members: &Members| {
        let groups = members.groups.iter().map(|group| (group.group_type.clone(), group.group_id.clone()));
        (members.users.iter().cloned().collect::<BTreeSet<_>>(), groups.collect::<BTreeSet<_>>())
    };
    all(one) == all(other)
}

fn have_conditions(now: &Experiment, wanted: &[NewCondition]) -> bool {
    let mut stored: Vec<&Condition> = now.conditions.iter().collect();
    stored.sort_by_key(|condition| condition.order);
    let is_same = |(stored, wanted): (&&Condition, &NewCondition)| {
        stored.code == wanted.code && (stored.weight - wanted.weight).abs() < f64::EPSILON * 100.0
    };
    stored.len() == wanted.len() && stored.iter().zip(wanted).all(is_same)
}

fn have_points(now: &Experiment, wanted: &[NewDecisionPoint]) -> bool {
    let mut stored: Vec<&DecisionPoint> = now.decision_points.iter().collect();
    stored.sort_by_key(|point| point.order);
    let is_same = |(stored, wanted): (&&DecisionPoint, &NewDecisionPoint)| {
        (&stored.site, &stored.target, stored.exclude_if_reached)
            == (&wanted.site, &wanted.target, wanted.exclude_if_reached)
    };
    stored.len() == wanted.len() && stored.iter().zip(wanted).all(is_same)
}

/// The new list; the half that is not given stays.
fn list(users: &Option<Vec<String>>, groups: &Option<Vec<GroupParam>>, now: &Members) -> Option<Members> {
    if users.is_none() && groups.is_none() {
        return None;
    }
    let given = members(users.as_deref().unwrap_or_default(), groups.as_deref().unwrap_or_default());
    Some(Members {
        users: if users.is_some() { given.users } else { now.users.clone() },
        groups: if groups.is_some() { given.groups } else { now.groups.clone() },
    })
}

pub(super) fn post_rule(rule: &PostRuleParam) -> PostRule {
    PostRule { rule: rule.rule.clone(), condition_code: rule.condition_code.clone() }
}

pub(super) fn conditions(given: &[actions::ConditionParam]) -> Vec<NewCondition> {
    let weights = actions::weights(given);
    given.iter().zip(weights).map(|(condition, weight)| NewCondition::new(&condition.code, weight)).collect()
}

pub(super) fn points(given: &[actions::DecisionPointParam]) -> Vec<NewDecisionPoint> {
    let point = |point: &actions::DecisionPointParam| NewDecisionPoint {
        exclude_if_reached: point.exclude_if_reached,
        ..NewDecisionPoint::new(&point.site, &point.target)
    };
    given.iter().map(point).collect()
}

pub(super) fn members(users: &[String], groups: &[GroupParam]) -> Members {
    let group = |group: &GroupParam| GroupMember {
        group_type: group.group_type.clone(),
        group_id: group.group_id.clone(),
    };
    Members { users: users.to_vec(), groups: groups.iter().map(group).collect() }
}
