//! The draw of a condition: a pure function of ids, weights and, in stratified experiments, of the number of
//! students of the stratum in each condition.

use std::collections::HashMap;

use super::random;
use crate::wire::words::{AssignmentAlgorithm, AssignmentUnit};
use crate::world::model::{Condition, Experiment, User};

/// The number of students of a stratum by condition id.
pub(super) type ConditionCounts<'w> = HashMap<&'w str, usize>;

/// The condition that a student (or group) draws; none if the experiment has none, or if an external service
/// draws.
pub(super) fn draw<'e>(
    experiment: &'e Experiment,
    user: &User,
    present: &ConditionCounts<'_>,
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
    let drawn = draw_condition(&experiment.columns.id, unit(experiment, user), &weights)?;
    ordered.get(drawn).copied()
}

/// The id that is drawn for. A missing group is drawn for under the original's spelling of `undefined`.
fn unit<'u>(experiment: &Experiment, user: &'u User) -> &'u str {
    let columns = &experiment.columns;
    match columns.assignment_unit {
        AssignmentUnit::Group => user.works_in(columns.group.as_deref()).unwrap_or("undefined"),
        _ => &user.id,
    }
}

/// The condition that a student or a group draws in an experiment: its index in `weights`, or `None` if there
/// are none.
///
/// The rule is UpGrade's, and depends on nothing but the arguments:
///
/// 1. The seed is the text `{experiment}_{unit}`. `unit` is the id of the student or, if the experiment
///    assigns groups, the id of the student's working group.
/// 2. The point is the first number of the JavaScript package `seedrandom` 3.0.5 for that seed (at least 0,
///    below 1), times 100.
/// 3. The result is the first condition at which the running sum of the weights reaches the point. If the sum
///    of all weights does not reach it, the result is the first condition.
///
/// `weights` are in per cent, in the order of the conditions. They need not add up to 100.
///
/// The source is UpGrade itself: 400 draws of a real server and 57 seeds with the numbers of the real package
/// are recorded, and tests replay all of them. Whether a student is drawn for at all (states, lists, earlier
/// enrolments, other experiments at the same decision point) and how strata move the weights is not part of
/// the draw.
///
/// ```
/// use upgrade_simulator::draw_condition;
///
/// // As recorded: weights that stop at 40 leave most students in the first condition.
/// let draw = |student| draw_condition("83e19ed7-f011-4684-8221-bbb22cd9794c", student, &[20.0, 20.0]);
/// assert_eq!(["hash-user-0", "hash-user-3", "hash-user-6"].map(draw), [Some(1), Some(0), Some(1)]);
/// assert_eq!(draw_condition("an experiment", "a student", &[]), None);
/// ```
pub fn draw_condition(experiment: &str, unit: &str, weights: &[f64]) -> Option<usize> {
    let point = random::first(&format!("{experiment}_{unit}")) * 100.0;
    let mut sum = 0.0;
    let reached = weights.iter().position(|weight| {
        sum += weight;
        point <= sum
    });
    if weights.is_empty() { None } else { Some(reached.unwrap_or(0)) }
}

/// The weights, each corrected by its difference to the present share, and scaled to a sum of 100.
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
    fn the_condition_with_fewer_students_of_a_stratum_gets_more_weight() {
        assert_eq!(stratified(&[50.0, 50.0], &[3, 0]), [0.0, 100.0]);
        assert_eq!(stratified(&[50.0, 50.0], &[3, 1]), [25.0, 75.0]);
    }

    #[test]
    fn weights_of_an_empty_stratum_are_doubled_up_to_100_and_scaled() {
        assert_eq!(stratified(&[50.0, 50.0], &[0, 0]), [50.0, 50.0]);
        assert_eq!(stratified(&[80.0, 20.0], &[0, 0]), [100.0 / 140.0 * 100.0, 40.0 / 140.0 * 100.0]);
    }

    #[test]
    fn weights_do_not_change_if_the_shares_equal_them() {
        assert_eq!(stratified(&[75.0, 25.0], &[3, 1]), [75.0, 25.0]);
    }
}
