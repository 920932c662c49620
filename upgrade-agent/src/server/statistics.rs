//! How many take part: students and groups, enrolled and excluded.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::body::entries;
use super::core::{Asked, Core};
use super::fault::Fault;
use super::model::Experiment;
use super::table::key;
use super::validate;
use super::world::World;

/// `POST /stats/enrollment`: experiments that do not exist are left out.
pub(super) fn enrollment(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    validate::counted(&asked.body)?;
    let ids = entries(&asked.body, "experimentIds").filter_map(Value::as_str).map(str::to_lowercase);
    let known = ids.filter(|id| core.world.experiments.contains(&key(&[id])));
    Ok(known
        .map(|id| {
            let (users, groups) = counts(&core.world, &id, |_, _| true);
            json!({ "id": id, "users": users, "groups": groups })
        })
        .collect())
}

/// `POST /stats/enrollment/detail`.
pub(super) fn detail(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    validate::detailed(&asked.body)?;
    let given = asked.body["experimentId"].as_str().unwrap_or_default();
    if !validate::is_uuid(&asked.body["experimentId"]) {
        return Err(Fault::unwatched(format!("invalid input syntax for type uuid: \"{given}\"")));
    }
    let (world, id) = (&core.world, given.to_lowercase());
    let id = id.as_str();
    let experiment = world.experiments.get(&key(&[id]));
    let experiment = experiment.ok_or_else(|| Fault::reads_nothing("null", "conditions"))?;
    let (users, groups) = counts(world, id, |_, _| true);
    Ok(json!({
        "id": id,
        "users": users,
        "groups": groups,
        "usersExcluded": world.excluded.under(&[id]).count(),
        "groupsExcluded": world.excluded_groups.under(&[id]).count(),
        "conditions": conditions(world, experiment),
    }))
}

fn conditions(world: &World, experiment: &Experiment) -> Vec<Value> {
    let id = &experiment.columns.id;
    let of_condition = |condition: &str| {
        let (users, groups) = counts(world, id, |at, _| at == condition);
        let of_point = |point: &str| {
            let (users, groups) = counts(world, id, |at, place| at == condition && place == point);
            json!({ "id": point, "users": users, "groups": groups })
        };
        let points = experiment.partitions.iter().map(|point| of_point(&point.id));
        json!({
            "id": condition,
            "users": users,
            "groups": groups,
            "partitions": points.collect::<Vec<_>>(),
        })
    };
    experiment.conditions.iter().map(|condition| of_condition(&condition.id)).collect()
}

/// Students and groups whose enrolment passes a test of condition and decision point.
fn counts(world: &World, id: &str, test: impl Fn(&str, &str) -> bool) -> (usize, usize) {
    let users = world.enrolled.under(&[id]).map(|(_, row)| row);
    let users = users.filter(|row| test(&row.condition_id, &row.partition_id));
    let users: BTreeSet<&str> = users.map(|row| row.user_id.as_str()).collect();
    let groups = world.enrolled_groups.under(&[id]).map(|(_, row)| row);
    let groups = groups.filter(|row| test(&row.condition_id, &row.partition_id));
    (users.len(), groups.count())
}
