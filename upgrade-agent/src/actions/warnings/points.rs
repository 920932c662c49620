//! The decision points of an experiment: shared points, early visitors, default payloads.

use super::Warning;
use super::lists::is_of_lists_alone;
use crate::actions::{DecisionPointParam, Facts, UpdateExperiment};
use crate::client::{Experiment, ExperimentState};

/// The points that the update adds to the experiment, or all of them in a new context.
pub(super) fn new_places<'a>(
    update: &'a UpdateExperiment,
    old: &'a Experiment,
    all: bool,
) -> Vec<(&'a str, &'a str)> {
    let before: Vec<(&str, &str)> =
        old.decision_points.iter().map(|point| (&*point.site, &*point.target)).collect();
    match &update.decision_points {
        Some(points) => points.iter().map(place).filter(|place| all || !before.contains(place)).collect(),
        None => before,
    }
}

pub(super) fn place(point: &DecisionPointParam) -> (&str, &str) {
    (&point.site, &point.target)
}

/// Finished experiments do not share points.
pub(super) fn shared_points<'a>(
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

/// The start excludes earlier visitors of the marked points.
pub(super) fn early_visitors(experiment: &Experiment, facts: Facts<'_>) -> Option<Warning> {
    let marked = experiment.decision_points.iter().filter(|point| point.exclude_if_reached);
    let points: Vec<String> = marked.map(|point| format!("{} / {}", point.site, point.target)).collect();
    let known = facts.seen_before.unwrap_or(0);
    (!points.is_empty()).then_some(Warning::EarlierVisitors { points, known })
}

/// The pairs of condition and decision point that get a default payload from the update.
pub(super) fn default_payloads(
    update: &UpdateExperiment,
    old: &Experiment,
    facts: Facts<'_>,
) -> Option<Warning> {
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
