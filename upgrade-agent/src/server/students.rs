//! The calls of a student's application: become known, get conditions, report visits.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer;
use super::assign;
use super::core::{Asked, Core};
use super::fault::Fault;
use super::mark::{self, Report};
use super::model::User;
use super::validate;
use super::view;

/// `POST /v6/init`: parts that are not given stay as they are.
pub(super) fn init(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let id = header(asked)?;
    validate::init(&asked.body)?;
    let mut user = core.world.user(id).cloned().unwrap_or_else(|| new_user(id));
    if let Some(group) = part(&asked.body, "group") {
        user.group = Some(group);
    }
    if let Some(working) = part(&asked.body, "workingGroup") {
        user.working_group = Some(working);
    }
    let answer = view::user(&user);
    core.world.users.insert(user.id.clone(), user);
    Ok(answer)
}

/// `PATCH /v6/groupmembership`.
pub(super) fn set_groups(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let mut user = known(core, asked)?;
    validate::group_membership(&asked.body)?;
    let group: Option<BTreeMap<String, Vec<String>>> = part(&asked.body, "group");
    let Some(group) = group else { return Ok(json!({ "id": user.id })) };
    let answer = json!({ "id": user.id, "group": group });
    user.group = Some(group);
    core.world.users.insert(user.id.clone(), user);
    Ok(answer)
}

/// `PATCH /v6/workinggroup`.
pub(super) fn set_working_group(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let mut user = known(core, asked)?;
    validate::working_group(&asked.body)?;
    let working: BTreeMap<String, String> = part(&asked.body, "workingGroup").ok_or_else(Fault::body)?;
    let answer = json!({ "id": user.id, "workingGroup": working });
    user.working_group = Some(working);
    core.world.users.insert(user.id.clone(), user);
    Ok(answer)
}

/// `POST /v6/assign`: stores nothing.
pub(super) fn assign(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let user = known(core, asked)?;
    validate::assign(&asked.body)?;
    let context = asked.body["context"].as_str().unwrap_or_default();
    if core.contexts.get(context).is_none() {
        return Err(Fault::invalid_context(context));
    }
    let assigned = assign::assignments(&core.world, context, &user).into_iter();
    let told =
        assigned.map(|(experiment, condition)| answer::assigned(&core.world, experiment, condition, &user));
    let told: Vec<Vec<Value>> = told.collect::<Result<_, _>>()?;
    Ok(told.into_iter().flatten().collect())
}

/// `POST /batch-assign`: what many students get at one place; stores nothing.
pub(super) fn assign_many(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let body = &asked.body;
    if !validate::is_batch(body) {
        return Err(Fault::body());
    }
    let word = |field: &str| body[field].as_str().unwrap_or_default();
    let world = &core.world;
    let answer = |id: &str| {
        let Some(user) = world.user(id) else { return Ok(json!("NOT_FOUND")) };
        let found = assign::assignment_at(world, word("context"), (word("site"), word("target")), user);
        found.map_or(Ok(Value::Null), |(experiment, condition)| answer::first(experiment, condition, user))
    };
    let ids = body["userIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let told = ids.map(|id| Ok((id.to_owned(), answer(id)?)));
    Ok(Value::Object(told.collect::<Result<_, Fault>>()?))
}

/// `POST /v6/mark`.
pub(super) fn mark(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let user = known(core, asked)?;
    validate::mark(&asked.body)?;
    let data = &asked.body["data"];
    let condition = &data["assignedCondition"];
    let now = core.now();
    let report = Report {
        site: data["site"].as_str().unwrap_or_default(),
        target: data["target"].as_str().unwrap_or_default(),
        condition: condition["conditionCode"].as_str(),
        experiment_id: condition["experimentId"].as_str().filter(|id| !id.is_empty()),
        uniquifier: asked.body["uniquifier"].as_str().filter(|text| !text.is_empty()),
        failed: asked.body["status"] == "condition not applied",
        now: &now,
    };
    let (world, mut ids) = core.world_and_ids();
    let visit = mark::mark(world, &user, &report, &mut ids)?;
    Ok(json!({
        "id": visit.id,
        "condition": visit.condition,
        "userId": visit.user_id,
        "site": report.site,
        "target": report.target,
        "experimentId": visit.experiment_id,
    }))
}

/// `POST /v6/log`: no experiment asks for a metric here, so nothing is kept, as the original does.
pub(super) fn log(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    known(core, asked)?;
    validate::log(&asked.body)?;
    Ok(json!([]))
}

fn new_user(id: &str) -> User {
    User { id: id.to_owned(), ..User::default() }
}

fn part<T: DeserializeOwned>(body: &Value, field: &str) -> Option<T> {
    T::deserialize(body.get(field)?).ok()
}

fn header(asked: &Asked) -> Result<&str, Fault> {
    asked.user.as_deref().filter(|id| !id.is_empty()).ok_or_else(Fault::no_user_header)
}

/// Sees that the caller names a student, and one who is known if he needs to be. The original asks
/// that before it asks the application for its token.
pub(super) fn present(core: &Core, asked: &Asked) -> Result<(), Fault> {
    let path = asked.endpoint.split('?').next().unwrap_or_default();
    match path.strip_prefix("/api/v6/") {
        None => Ok(()),
        Some("init" | "featureflag") => header(asked).map(drop),
        Some(_) => known(core, asked).map(drop),
    }
}

fn known(core: &Core, asked: &Asked) -> Result<User, Fault> {
    let id = header(asked)?;
    core.world.user(id).cloned().ok_or_else(|| Fault::unknown_user(id))
}
