//! The parts of a design: name, context, unit, conditions, points, rule and lists. Each is compared with the
//! context and with the other parts.

use super::Problems;
use super::students::wrong_id;
use super::words::{check_known, check_twice, in_context, not_a_word};
use crate::actions::display::{display, display_list};
use crate::actions::params::weights;
use crate::actions::{ConditionParam, DecisionPointParam, Facts, GroupParam, PostRuleParam};
use crate::client::{
    AssignmentUnit, ConsistencyRule, Context, ExperimentName, FilterMode, PostExperimentRule,
};

/// A context with its name.
pub(super) type NamedContext<'a> = (&'a str, &'a Context);

/// The rounding error that the sum of the weights may have.
pub(super) const TOLERANCE: f64 = 1e-6;

pub(super) fn check_name(name: &str, own_id: Option<&str>, facts: &Facts<'_>, found: &mut Problems) {
    if name.trim().is_empty() {
        found.push("an experiment needs a name".to_owned());
    }
    let taken = |known: &&ExperimentName| known.name == name && Some(known.id.as_str()) != own_id;
    if let Some(other) = facts.names.iter().find(taken) {
        found.push(format!("there is an experiment '{name}' already ({}); choose another name", other.id));
    }
}

/// The context with that name, if the contexts are known and this is one.
pub(super) fn check_context<'a>(
    name: &'a str,
    facts: &Facts<'a>,
    found: &mut Problems,
) -> Option<NamedContext<'a>> {
    let contexts = facts.contexts?;
    let Some(context) = contexts.get(name) else {
        let known: Vec<&str> = contexts.names().collect();
        check_known("context", name, &known, "this server", found);
        return None;
    };
    Some((name, context))
}

pub(super) fn check_unit(
    unit: &AssignmentUnit,
    group_type: Option<&str>,
    rule: Option<&ConsistencyRule>,
    context: Option<NamedContext<'_>>,
    found: &mut Problems,
) {
    match (unit, group_type) {
        (AssignmentUnit::Individual, Some(_)) => {
            found.of("group_type").push("a group type goes with the assignment unit group only".to_owned());
        }
        (AssignmentUnit::Group, None) => {
            found.of("group_type").push("the assignment unit group needs a group_type".to_owned());
        }
        (AssignmentUnit::Group, Some(group_type)) => {
            if let Some((name, context)) = context {
                check_known(
                    "group type",
                    group_type,
                    &context.group_types,
                    &in_context(name),
                    found.of("group_type"),
                );
            }
        }
        (AssignmentUnit::Individual, None) => {}
        (other, _) => found.of("assignment_unit").push(not_a_word(
            "assignment unit",
            other.as_str(),
            &["individual", "group"],
        )),
    }
    match rule {
        None | Some(ConsistencyRule::Individual) => {}
        Some(ConsistencyRule::Group) if *unit == AssignmentUnit::Group => {}
        Some(ConsistencyRule::Group) => {
            found
                .of("consistency_rule")
                .push("the consistency rule group goes with the assignment unit group only".to_owned());
        }
        Some(other) => found.of("consistency_rule").push(not_a_word(
            "consistency rule",
            other.as_str(),
            &["individual", "group"],
        )),
    }
}

pub(super) fn check_conditions(
    conditions: &[ConditionParam],
    context: Option<NamedContext<'_>>,
    found: &mut Problems,
) {
    let codes: Vec<&str> = conditions.iter().map(|condition| condition.code.as_str()).collect();
    check_twice("condition", &codes, found);
    for code in &codes {
        if code.trim().is_empty() {
            found.push("a condition needs a code: name it".to_owned());
        } else if code.eq_ignore_ascii_case("default") {
            found.push("UpGrade keeps the code `default` for itself; choose another".to_owned());
        } else if let Some((name, context)) = context {
            check_known("condition", code, &context.conditions, &in_context(name), found);
        }
    }
    let weights = weights(conditions);
    if let Some(bad) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
        found.push(format!("a weight is a percentage, and {bad} is none: give numbers from 0 to 100"));
        return;
    }
    if conditions.is_empty() {
        found.push("an experiment needs at least one condition".to_owned());
    } else {
        check_sum(conditions, weights.iter().sum(), found);
    }
}

fn check_sum(conditions: &[ConditionParam], sum: f64, found: &mut Problems) {
    if (sum - 100.0).abs() <= TOLERANCE {
        return;
    }
    let without = conditions.iter().filter(|condition| condition.weight.is_none());
    let without: Vec<&str> = without.map(|condition| condition.code.as_str()).collect();
    let hint = match without.as_slice() {
        [] => String::new(),
        codes => {
            format!(
                "; {} has none: give all weights, or none for equal ones",
                display_list(codes.iter().copied())
            )
        }
    };
    found.push(format!("the weights must sum to 100, and they sum to {}{hint}", rounded(sum)));
}

/// A sum without rounding errors.
pub(super) fn rounded(sum: f64) -> f64 {
    (sum * 1e6).round() / 1e6
}

pub(super) fn check_points(
    points: &[DecisionPointParam],
    context: Option<NamedContext<'_>>,
    found: &mut Problems,
) {
    if points.is_empty() {
        found.push("an experiment needs at least one decision point".to_owned());
    }
    let places: Vec<String> =
        points.iter().map(|point| format!("{} / {}", point.site, point.target)).collect();
    check_twice("decision point", &places, found);
    let Some((name, context)) = context else { return };
    for point in points {
        check_known("site", &point.site, &context.sites, &in_context(name), found);
        check_known("target", &point.target, &context.targets, &in_context(name), found);
    }
}

pub(super) fn check_filter(mode: Option<&FilterMode>, found: &mut Problems) {
    if let Some(FilterMode::Unknown(word)) = mode {
        found.push(not_a_word("filter mode", word, FilterMode::WORDS));
    }
}

pub(super) fn check_rule(rule: Option<&PostRuleParam>, codes: &[&str], found: &mut Problems) {
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

/// One of the two lists.
pub(super) fn check_list(
    which: &'static str,
    users: &[String],
    groups: &[GroupParam],
    context: Option<NamedContext<'_>>,
    found: &mut Problems,
) {
    let (of_users, of_groups) = match which {
        "inclusion" => ("inclusion_users", "inclusion_groups"),
        _ => ("exclusion_users", "exclusion_groups"),
    };
    let found = found.of(of_users);
    check_twice(&format!("student of the {which} list"), users, found);
    for (id, why) in users.iter().filter_map(|id| Some((id, wrong_id(id)?))) {
        found.push(format!("`{}` on the {which} list is no id of a student: {why}", display(id)));
    }
    let found = found.of(of_groups);
    let names: Vec<String> =
        groups.iter().map(|group| format!("{} {}", group.group_type, group.group_id)).collect();
    check_twice(&format!("group of the {which} list"), &names, found);
    if groups.iter().any(|group| group.group_id.trim().is_empty()) {
        found.push(format!("a group on the {which} list has no group_id: name it"));
    }
    let Some((name, context)) = context else { return };
    for group in groups {
        check_known("group type", &group.group_type, &context.group_types, &in_context(name), found);
    }
}

pub(super) fn check_tags(tags: &[String], found: &mut Problems) {
    if tags.iter().any(|tag| tag.trim().is_empty()) {
        found.push("a tag must not be empty: name it, or leave it out".to_owned());
    }
    check_twice("tag", tags, found);
}
