//! `/previewusers`: students who see experiments in preview. Conditions chosen for them are stored and
//! returned; as in the original they do not affect assignments.

use serde_json::{Value, json};

use crate::core::{ApiRequest, Core};
use crate::wire::body::entries;
use crate::wire::fault::Fault;
use crate::wire::paging;
use crate::wire::row::{row, with};
use crate::wire::shape::{each, has, number, optional, text};
use crate::world::World;
use crate::world::model::{PreviewAssignment, PreviewUser, Stamp};
use crate::world::table::key;

/// `POST /previewusers/paginated`.
pub(crate) fn paginated(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    if !(has(body, "skip", number) && has(body, "take", number)) {
        return Err(Fault::body());
    }
    let world = &core.world;
    let mut all: Vec<&PreviewUser> = world.preview_users.values().collect();
    all.sort_by(|a, b| b.stamp.updated_at.cmp(&a.stamp.updated_at));
    let total = all.len();
    let nodes = paging::cut(all, body)?.into_iter().map(|user| shown(world, user)).collect();
    Ok(paging::page(total, nodes, body))
}

/// `GET /previewusers/:id`: an unknown id gives an empty response.
pub(crate) fn single(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    Ok(by_id(&core.world, &asked.id).map_or(Value::Null, |user| shown(&core.world, user)))
}

/// `POST /previewusers`.
pub(crate) fn create(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    check(&asked.body)?;
    let id = asked.body["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    let id = id.unwrap_or_else(|| core.new_id());
    Ok(save(core, id))
}

/// `PUT /previewusers/:id`: the id in the path counts.
pub(crate) fn update(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    check(&asked.body)?;
    Ok(save(core, asked.id.clone()))
}

/// An existing preview user has nothing to change, and only the id is returned.
fn save(core: &mut Core, id: String) -> Value {
    let at = key(&[&id]);
    if core.world.preview_users.contains(&at) {
        return json!({ "id": id });
    }
    let user = PreviewUser { stamp: Stamp::new(&core.now()), id, assignments: Vec::new() };
    let answer = columns(&user);
    core.world.preview_users.insert(at, user);
    answer
}

/// `DELETE /previewusers/:id`: returns the deleted rows.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let gone = core.world.preview_users.remove(&key(&[&asked.id]));
    Ok(gone.iter().map(columns).collect())
}

/// `POST /previewusers/assign`: replaces all assignments.
pub(crate) fn assign(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    check(&asked.body)?;
    let given: Vec<&Value> = entries(&asked.body, "assignments").collect();
    let mut assignments = Vec::new();
    for entry in given {
        assignments.push(assignment(core, entry)?);
    }
    let id = asked.body["id"].as_str().unwrap_or_default();
    let at = key(&[id]);
    match core.world.preview_users.get_mut(&at) {
        Some(user) => user.assignments = assignments,
        None if assignments.is_empty() => return Ok(Value::Null),
        None => return Err(Fault::unguarded_query(no_row("previewUserId"))),
    }
    Ok(by_id(&core.world, id).map_or(Value::Null, |user| shown(&core.world, user)))
}

fn assignment(core: &mut Core, entry: &Value) -> Result<PreviewAssignment, Fault> {
    let part = |field: &str| match entry.get(field) {
        None => Err(Fault::reads_nothing("undefined", "id")),
        Some(Value::Null) => Err(Fault::reads_nothing("null", "id")),
        Some(part) => Ok(part["id"].as_str().unwrap_or_default().to_lowercase()),
    };
    let condition_id = part("experimentCondition")?;
    let experiment_id = part("experiment")?;
    let experiment = core.world.experiments.get(&key(&[&experiment_id]));
    let experiment = experiment.ok_or_else(|| Fault::unguarded_query(no_row("experimentId")))?;
    if experiment.conditions.iter().all(|condition| condition.id != condition_id) {
        return Err(Fault::unguarded_query(no_row("experimentConditionId")));
    }
    let id = entry["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    let id = id.unwrap_or_else(|| core.new_id());
    Ok(PreviewAssignment { stamp: Stamp::new(&core.now()), id, experiment_id, condition_id })
}

fn no_row(column: &str) -> String {
    format!(
        "insert or update on table \"explicit_individual_assignment\" violates foreign key constraint on \
         \"{column}\""
    )
}

fn check(body: &Value) -> Result<(), Fault> {
    let is_assignment = |entry: &Value| entry.is_object() && has(entry, "id", optional(text));
    if has(body, "id", optional(text)) && has(body, "assignments", optional(each(is_assignment))) {
        return Ok(());
    }
    Err(Fault::body())
}

fn by_id<'w>(world: &'w World, id: &str) -> Option<&'w PreviewUser> {
    world.preview_users.get(&key(&[id]))
}

fn columns(user: &PreviewUser) -> Value {
    with(row(&user.stamp), [("id", json!(user.id))])
}

/// With the assignments, if there are any, by their names.
fn shown(world: &World, user: &PreviewUser) -> Value {
    let assignments: Vec<Value> = user.assignments.iter().filter_map(|one| assigned(world, one)).collect();
    if assignments.is_empty() {
        return columns(user);
    }
    with(columns(user), [("assignments", json!(assignments))])
}

/// Assignments of deleted conditions are left out.
fn assigned(world: &World, assignment: &PreviewAssignment) -> Option<Value> {
    let experiment = world.experiments.get(&key(&[&assignment.experiment_id]))?;
    let condition = experiment.conditions.iter().find(|c| c.id == assignment.condition_id)?;
    Some(with(
        row(&assignment.stamp),
        [
            ("id", json!(assignment.id)),
            ("experiment", json!({ "id": experiment.columns.id, "name": experiment.columns.name })),
            ("experimentCondition", json!({ "id": condition.id, "conditionCode": condition.condition_code })),
        ],
    ))
}
