//! Routes that read experiments, set their states and delete them.

pub(crate) mod by_date;
pub(crate) mod create;
mod factorial;
pub(crate) mod files;
pub(crate) mod lists;
pub(crate) mod page;
mod revision;
mod rows;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod update;
mod view;

use serde_json::{Value, json};

use crate::accounts::audit;
use crate::core::{ApiRequest, Core};
use crate::segments::segment;
use crate::wire::body::time;
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::wire::words::{AssignmentUnit, ExperimentState};
use crate::world::model::Experiment;
use crate::world::table::key;

/// `GET /experiments/contextMetaData`.
pub(crate) fn contexts(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let contexts = core.contexts.iter();
    let contexts = contexts.map(|(name, context)| {
        let words = json!({
            "CONDITIONS": context.conditions,
            "GROUP_TYPES": context.group_types,
            "EXP_IDS": context.targets,
            "EXP_POINTS": context.sites,
        });
        (name.to_owned(), words)
    });
    Ok(json!({ "contextMetadata": contexts.collect::<serde_json::Map<_, _>>() }))
}

/// `GET /experiments/names`.
pub(crate) fn names(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let all = core.world.experiments_in_order().into_iter();
    Ok(all.map(|e| json!({ "id": e.columns.id, "name": e.columns.name })).collect())
}

/// `GET /experiments`.
pub(crate) fn all(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    Ok(world.experiments_in_order().into_iter().map(|e| view::listed(world, e)).collect())
}

/// `GET /experiments/partitions`: the points of all experiments, with repetitions.
pub(crate) fn partitions(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let all = core.world.experiments_in_order().into_iter();
    let points = all.flat_map(|experiment| &experiment.partitions);
    Ok(points.map(|point| json!({ "site": point.site, "target": point.target })).collect())
}

/// `GET /experiments/single/:id`.
pub(crate) fn single(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    requested_experiment(core, asked).map(|experiment| view::single(&core.world, experiment))
}

/// `GET /experiments/conditions/:id`.
pub(crate) fn conditions(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    requested_experiment(core, asked).map(view::conditions)
}

/// `GET /experiments/getGroupAssignmentStatus/:id`: the number of groups with enough students for the end of
/// the experiment; empty if the experiment does not end by groups.
pub(crate) fn full_groups(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let columns = &requested_experiment(core, asked)?.columns;
    let wanted = |field| columns.enrollment_complete_condition.as_ref()?.get(field)?.as_u64();
    let (Some(users), Some(_)) =
        (wanted("userCount").filter(|n| *n > 0), wanted("groupCount").filter(|n| *n > 0))
    else {
        return Ok(Value::Null);
    };
    if columns.assignment_unit != AssignmentUnit::Group {
        return Ok(Value::Null);
    }
    Ok(json!(statistics::full_groups(&core.world, &columns.id, users)))
}

/// `POST /experiments/state`.
pub(crate) fn set_state(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let dialect = core.world.dialect;
    validate::state_change(dialect, &asked.body)?;
    let id = asked.body["experimentId"].as_str().unwrap_or_default().to_lowercase();
    let to = ExperimentState::from(asked.body["state"].as_str().unwrap_or_default());
    let before = core.world.experiments.get(&key(&[&id])).cloned();
    let before = before.ok_or_else(|| Fault::reads_nothing("null", "context"))?;
    audit::moved(core, &before.columns, &to, &asked.body["scheduleDate"]);
    let now = core.now();
    let log_id = core.new_id();
    state::exclude_early_visitors(&mut core.world, &id, &to);
    state::enter(&mut core.world, &id, &to, &now, log_id);
    let lost = || Fault::internal("lost experiment");
    if let Some(date) = time(&asked.body, "scheduleDate") {
        let after = core.world.experiments.get_mut(&key(&[&id])).ok_or_else(lost)?;
        after.columns.start_on = Some(date);
    }
    let after = core.world.experiments.get(&key(&[&id])).ok_or_else(lost)?;
    Ok(view::state_changed(&core.world, &before, after))
}

/// `DELETE /experiments/:id`: deletes all dependent rows except visits, which belong to a place and not to an
/// experiment.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = path_id(asked)?;
    let world = &mut core.world;
    let gone = world.experiments.remove(&key(&[&id])).ok_or_else(Fault::nothing_to_delete)?;
    for list in gone.inclusion.iter().chain(&gone.exclusion) {
        segment::remove(world, &list.segment_id);
    }
    world.enrolled.remove_under(&[&id], |_| true);
    world.repeated.remove_under(&[&id], |_| true);
    world.enrolled_groups.remove_under(&[&id], |_| true);
    world.excluded.remove_under(&[&id], |_| true);
    world.excluded_groups.remove_under(&[&id], |_| true);
    audit::deleted(core, &gone.columns);
    Ok(view::deleted(&gone))
}

/// The id in the path, in its stored form.
pub(crate) fn path_id(asked: &ApiRequest) -> Result<String, Fault> {
    validate::path_id(&asked.id)
}

fn requested_experiment<'c>(core: &'c Core, asked: &ApiRequest) -> Result<&'c Experiment, Fault> {
    let id = path_id(asked)?;
    core.world.experiments.get(&key(&[&id])).ok_or_else(Fault::no_experiment)
}
