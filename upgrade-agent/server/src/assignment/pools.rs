//! Pools: experiments that share a decision point, directly or through others, compete for a student, who
//! gets one of them.

use std::collections::HashMap;

use super::random;
use crate::wire::words::ExperimentState;
use crate::world::World;
use crate::world::model::{Experiment, User};

/// One experiment per pool: the one that enrolled the student, otherwise one drawn by the student's id among
/// those that still enrol.
pub(super) fn choose<'w>(world: &World, experiments: &[&'w Experiment], user: &User) -> Vec<&'w Experiment> {
    let draw = random::first(&user.id);
    pools(experiments).iter().filter_map(|pool| of_pool(world, pool, user, draw)).collect()
}

fn of_pool<'w>(world: &World, pool: &[&'w Experiment], user: &User, draw: f64) -> Option<&'w Experiment> {
    let is_running = |e: &Experiment| e.columns.state == ExperimentState::Enrolling;
    let mut joined = pool.iter().filter(|experiment| takes_part(world, experiment, user));
    match (joined.next(), joined.next()) {
        (Some(only), None) => return Some(only),
        (Some(first), Some(second)) => {
            let all = [first, second].into_iter().chain(joined);
            return all.copied().find(|experiment| is_running(experiment));
        }
        (None, _) => {}
    }
    let is_shown = |e: &Experiment| is_running(e) || e.columns.state == ExperimentState::Preview;
    let open: Vec<_> = pool.iter().filter(|e| is_shown(e) && !is_left_out(world, e, user)).collect();
    open.get((draw * open.len() as f64) as usize).map(|experiment| **experiment)
}

fn takes_part(world: &World, experiment: &Experiment, user: &User) -> bool {
    let columns = &experiment.columns;
    let group = user.works_in(columns.group.as_deref());
    world.enrollment(&columns.id, &user.id).is_some() || world.group_enrollment(&columns.id, group).is_some()
}

fn is_left_out(world: &World, experiment: &Experiment, user: &User) -> bool {
    let columns = &experiment.columns;
    let group = user.works_in(columns.group.as_deref());
    world.is_excluded(&columns.id, &user.id) || world.is_group_excluded(&columns.id, group)
}

/// Groups the experiments into pools, each searched depth first from its first decision point. An experiment
/// without points is in no pool.
fn pools<'w>(experiments: &[&'w Experiment]) -> Vec<Vec<&'w Experiment>> {
    let mut at_place: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for partition in &experiment.partitions {
            at_place.entry(partition.place()).or_default().push(index);
        }
    }
    let mut seen = vec![false; experiments.len()];
    let mut pools = Vec::new();
    for start in 0..experiments.len() {
        let mut pool = Vec::new();
        let mut open = if experiments[start].partitions.is_empty() { vec![] } else { vec![start] };
        while let Some(index) = open.pop() {
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            pool.push(experiments[index]);
            let places = experiments[index].partitions.iter().rev();
            let neighbours = places.filter_map(|p| at_place.get(&p.place()));
            open.extend(neighbours.flat_map(|all| all.iter().rev()));
        }
        if !pool.is_empty() {
            pools.push(pool);
        }
    }
    pools
}
