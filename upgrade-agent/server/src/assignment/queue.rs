//! The conditions of a student's visits within subjects: a queue, drawn from ids like in the original. Pure.

use super::random;

/// The length of a random queue, rounded up to a multiple of the number of conditions.
const LENGTH: usize = 100;

/// The indices of the conditions in order, starting after the given number of visits.
pub(super) fn queue(
    order: Option<&str>,
    conditions: usize,
    experiment: &str,
    user: &str,
    visits: usize,
) -> Vec<usize> {
    let in_order: Vec<usize> = (0..conditions).collect();
    if conditions < 2 {
        return in_order;
    }
    let seed = format!("{experiment}{user}");
    let mut queue = match order {
        Some("random") => (0..LENGTH).map(|at| place(&format!("{seed}{at}"), conditions)).collect(),
        Some("random round robin") => {
            let rounds = LENGTH.div_ceil(conditions);
            (0..rounds).flat_map(|round| shuffled(&in_order, &format!("{seed}{round}"))).collect()
        }
        Some("ordered round robin") => in_order,
        _ => return in_order,
    };
    let turned = visits % queue.len();
    queue.rotate_left(turned);
    queue
}

fn shuffled(places: &[usize], seed: &str) -> Vec<usize> {
    let mut left = places.to_vec();
    (0..places.len()).map(|at| left.remove(place(&format!("{seed}{at}"), left.len()))).collect()
}

fn place(seed: &str, places: usize) -> usize {
    (random::first(seed) * places as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = "49ca0665-a2e4-4e9b-aa4d-8e3aa0780f19";

    #[test]
    fn each_round_of_a_round_robin_has_every_condition_once() {
        let queue = queue(Some("random round robin"), 3, EXPERIMENT, "w1", 0);
        assert_eq!(queue.len(), 102);
        for round in queue.chunks(3) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2]);
        }
    }

    #[test]
    fn each_visit_advances_the_queue_by_one_condition() {
        for order in ["random", "random round robin", "ordered round robin"] {
            let first = queue(Some(order), 3, EXPERIMENT, "w1", 0);
            let second = queue(Some(order), 3, EXPERIMENT, "w1", 1);
            assert_eq!(second[..second.len() - 1], first[1..], "{order}");
            assert_eq!(queue(Some(order), 3, EXPERIMENT, "w1", first.len()), first, "{order}");
        }
        assert_eq!(queue(Some("ordered round robin"), 3, EXPERIMENT, "w1", 4), [1, 2, 0]);
        assert_eq!(queue(None, 3, EXPERIMENT, "w1", 4), [0, 1, 2]);
        assert_eq!(queue(Some("random"), 1, EXPERIMENT, "w1", 4), [0]);
    }
}
