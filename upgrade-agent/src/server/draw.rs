//! The draw of a condition: a pure function of ids, weights and, where students are stratified, of
//! how many of a stratum are in each condition already.

use std::collections::HashMap;

use super::model::{Condition, Experiment, User};
use super::random;
use crate::client::{AssignmentAlgorithm, AssignmentUnit};

/// How many students of a stratum have which condition, by its id.
pub(crate) type Present<'w> = HashMap<&'w str, usize>;

/// The condition that a student (or his group) draws; none if the experiment has none, or if
/// another service would draw.
pub(crate) fn draw<'e>(
    experiment: &'e Experiment,
    user: &User,
    present: &Present<'_>,
) -> Option<&'e Condition> {
    let mut ordered: Vec<&Condition> = experiment.conditions.iter().collect();
    ordered.sort_by_key(|condition| condition.order);
    let mut weights: Vec<f64> = ordered.iter().map(|condition| condition.weight()).collect();
    match experiment.columns.assignment_algorithm {
        AssignmentAlgorithm::TsConfigurable => return None,
        AssignmentAlgorithm::Stratified => {
            let count = |condition: &&Condition| present.get(condition.id.as_str()).copied().unwrap_or(0);
            weights = stratified(&weights, &ordered.iter().map(count).collect::<Vec<_>>());
        }
        _ => {}
    }
    ordered.get(condition_at(&weights, random::first(&seed(experiment, user)) * 100.0)).copied()
}

fn seed(experiment: &Experiment, user: &User) -> String {
    let columns = &experiment.columns;
    let unit = match columns.assignment_unit {
        // A group that does not exist is spelt like this by the original, and drawn for.
        AssignmentUnit::Group => user.works_in(columns.group.as_deref()).unwrap_or("undefined"),
        _ => &user.id,
    };
    format!("{}_{unit}", columns.id)
}

/// The place at which the running sum of weights reaches the point. If the weights do not go so
/// far it is the very first one.
pub(crate) fn condition_at(weights: &[f64], point: f64) -> usize {
    let mut sum = 0.0;
    let reached = weights.iter().position(|weight| {
        sum += weight;
        point <= sum
    });
    reached.unwrap_or(0)
}

/// The weights, each moved away from the share that is present by as much as the two differ, and
/// all of them scaled to 100 again.
fn stratified(weights: &[f64], present: &[usize]) -> Vec<f64> {
    let total: usize = present.iter().sum();
    let share = |count: usize| if total == 0 { 0.0 } else { (count as f64 * 100.0) / total as f64 };
    let moved = |(weight, count): (&f64, &usize)| {
        let moved = weight + (weight - share(*count));
        if *weight > share(*count) { moved.min(100.0) } else { moved.max(0.0) }
    };
    let moved: Vec<f64> = weights.iter().zip(present).map(moved).collect();
    let sum: f64 = moved.iter().sum();
    moved.iter().map(|weight| (weight / sum) * 100.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stratum_that_is_all_in_one_condition_draws_the_other() {
        assert_eq!(stratified(&[50.0, 50.0], &[3, 0]), [0.0, 100.0]);
        assert_eq!(stratified(&[50.0, 50.0], &[3, 1]), [25.0, 75.0]);
    }

    #[test]
    fn an_empty_stratum_doubles_the_weights_up_to_100() {
        assert_eq!(stratified(&[50.0, 50.0], &[0, 0]), [50.0, 50.0]);
        assert_eq!(stratified(&[80.0, 20.0], &[0, 0]), [100.0 / 140.0 * 100.0, 40.0 / 140.0 * 100.0]);
    }

    #[test]
    fn a_share_that_is_met_leaves_the_weights() {
        assert_eq!(stratified(&[75.0, 25.0], &[3, 1]), [75.0, 25.0]);
    }
}
