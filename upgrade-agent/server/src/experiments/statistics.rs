//! The numbers of students and groups, enrolled and excluded.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::core::{ApiRequest, Core};
use crate::wire::body::entries;
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::wire::words::AssignmentUnit;
use crate::world::World;
use crate::world::model::{Experiment, UserEnrollment};
use crate::world::table::key;

/// `POST /stats/enrollment`: one row for each id, even an unknown one.
pub(crate) fn enrollment(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::counted(&asked.body)?;
    let ids = entries(&asked.body, "experimentIds").filter_map(Value::as_str).map(str::to_lowercase);
    let row = |id: String| {
        let experiment = core.world.experiments.get(&key(&[&id]));
        let (users, groups) =
            experiment.map_or((0, 0), |experiment| counts(&core.world, experiment, |_, _| true));
        json!({ "id": id, "users": users, "groups": groups })
    };
    Ok(ids.map(row).collect())
}

/// `POST /stats/enrollment/detail`.
pub(crate) fn detail(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::detailed(&asked.body)?;
    let given = asked.body["experimentId"].as_str().unwrap_or_default();
    if !validate::is_uuid(&asked.body["experimentId"]) {
        return Err(Fault::unguarded_query(format!("invalid input syntax for type uuid: \"{given}\"")));
    }
    let world = &core.world;
    let id = given.to_lowercase();
    let id = id.as_str();
    let experiment = world.experiments.get(&key(&[id]));
    let experiment = experiment.ok_or_else(|| Fault::reads_nothing("null", "conditions"))?;
    let (users, groups) = counts(world, experiment, |_, _| true);
    let by_group = experiment.columns.assignment_unit == AssignmentUnit::Group;
    Ok(json!({
        "id": id,
        "users": users,
        "groups": groups,
        "usersExcluded": world.excluded.under(&[id]).count(),
        "groupsExcluded": if by_group { world.excluded_groups.under(&[id]).count() } else { 0 },
        "conditions": conditions(world, experiment),
    }))
}

/// `GET /stats/csv`: the original sends the data by mail, which fails without a mail service.
pub(crate) fn csv(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = asked.values_of("experimentId").first().map(|id| id.to_lowercase()).unwrap_or_default();
    if asked.values_of("email").is_empty() || id.is_empty() {
        return Err(Fault::queries());
    }
    if !core.world.experiments.contains(&key(&[&id])) {
        return Err(Fault::not_found(format!("Experiment not found for id: {id}")));
    }
    Err(Fault::no_mail())
}

fn conditions(world: &World, experiment: &Experiment) -> Vec<Value> {
    let of_condition = |condition: &str| {
        let (users, groups) = counts(world, experiment, |at, _| at == Some(condition));
        let of_point = |point: &str| {
            let test = |at: Option<&str>, place: &str| at == Some(condition) && place == point;
            let (users, groups) = counts(world, experiment, test);
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

/// The students and groups whose enrolment has the given condition and decision point. If groups are
/// assigned, only students with an enrolled group count, even one enrolled elsewhere.
fn counts(
    world: &World,
    experiment: &Experiment,
    test: impl Fn(Option<&str>, &str) -> bool,
) -> (usize, usize) {
    let by_group = experiment.columns.assignment_unit == AssignmentUnit::Group;
    let rows = world.enrolled.under(&[&experiment.columns.id]).map(|(_, row)| row);
    let rows = rows.filter(|row| {
        conditions_at_point(world, experiment, row).iter().any(|at| test(*at, &row.partition_id))
    });
    let rows: Vec<&UserEnrollment> = rows.filter(|row| !by_group || comes_with_group(world, row)).collect();
    let users: BTreeSet<&str> = rows.iter().map(|row| row.user_id.as_str()).collect();
    let groups: BTreeSet<&str> = rows.iter().filter_map(|row| row.group_id.as_deref()).collect();
    (users.len(), groups.len())
}

/// The conditions of a student at a point: one, or within subjects those of all visits.
fn conditions_at_point<'w>(
    world: &'w World,
    experiment: &Experiment,
    row: &'w UserEnrollment,
) -> Vec<Option<&'w str>> {
    let columns = &experiment.columns;
    let mut had = vec![row.condition_id.as_deref()];
    if columns.assignment_unit == AssignmentUnit::WithinSubjects {
        let visits = world.repeated.under(&[&columns.id, &row.user_id, &row.partition_id]);
        had.extend(visits.map(|(_, visit)| visit.condition_id.as_deref()));
    }
    had
}

fn comes_with_group(world: &World, row: &UserEnrollment) -> bool {
    let Some(group) = &row.group_id else { return false };
    world.experiments.values().any(|e| world.group_enrollment(&e.columns.id, Some(group)).is_some())
}

/// The number of groups with at least that many enrolled students.
pub(crate) fn full_groups(world: &World, id: &str, users: u64) -> u64 {
    let mut members: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, row) in world.enrolled.under(&[id]) {
        if let Some(group) = &row.group_id {
            members.entry(group).or_default().insert(&row.user_id);
        }
    }
    members.values().filter(|students| students.len() as u64 >= users).count() as u64
}
