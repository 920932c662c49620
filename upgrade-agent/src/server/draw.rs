//! The draw of a condition: a pure function of ids and weights.

use super::model::{Condition, Experiment, User};
use super::random;
use crate::client::AssignmentUnit;

/// The condition that a student (or his group) draws; none if the experiment has none.
pub(super) fn draw<'e>(experiment: &'e Experiment, user: &User) -> Option<&'e Condition> {
    by_weight(&experiment.conditions, random::first(&seed(experiment, user)) * 100.0)
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

/// The first condition, by their order, at which the running sum of weights reaches the point. If
/// the weights do not go so far it is the very first one.
fn by_weight(conditions: &[Condition], point: f64) -> Option<&Condition> {
    let mut ordered: Vec<&Condition> = conditions.iter().collect();
    ordered.sort_by_key(|condition| condition.order);
    let mut sum = 0.0;
    let reached = ordered.iter().find(|condition| {
        sum += condition.weight();
        point <= sum
    });
    reached.or(ordered.first()).copied()
}
