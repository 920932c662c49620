//! Routes of a student's application: initialization, assignment, visits.

mod aliases;
mod groups;
mod mark;
pub(crate) mod preview;
pub(crate) mod v5;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::assignment::{answer, assign};
use crate::core::{ApiRequest, Core};
use crate::flags;
use crate::metrics::logs;
use crate::wire::body::check_texts;
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::world::model::User;
use groups::WorkingGroups;
use mark::Report;

/// The groups of a student, by kind.
type Groups = BTreeMap<String, Vec<String>>;

/// `POST /v6/init`: omitted parts stay.
pub(crate) fn init(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = asked.student_id()?;
    validate::init(&asked.body)?;
    Ok(join(core, id, &asked.body, true))
}

/// Makes a student known, or sets the groups.
pub(crate) fn join(core: &mut Core, id: &str, body: &Value, stored: bool) -> Value {
    let old = core.world.user(id).cloned();
    let group = part(body, "group");
    let working = part(body, "workingGroup");
    let mut answer = json!({ "id": old.as_ref().map_or(id, |user| &user.id) });
    let mut user = old.clone().unwrap_or_else(|| new_user(id));
    let old = old.unwrap_or_default();
    if body.get("group").is_some() {
        user.group = group.map(|group| if old.group.is_some() { sorted(group) } else { group });
    }
    if body.get("workingGroup").is_some() {
        user.working_group = working;
    }
    // Fields that were never set are missing in the first response and null afterwards.
    for (field, part) in [("group", json!(user.group)), ("workingGroup", json!(user.working_group))] {
        if !old.id.is_empty() || body.get(field).is_some() {
            answer[field] = part;
        }
    }
    if stored {
        let is_same = |new: &Groups| old.group.clone().map(sorted).as_ref() == Some(new);
        if user.group.as_ref().is_some_and(is_same) {
            user.group = old.group;
        }
        if let (Some(old), Some(new)) = (&old.working_group, &user.working_group) {
            groups::change(&mut core.world, &user.id, old, new);
        }
        core.world.users.insert(user.id.clone(), user);
    }
    answer
}

/// The original sorts groups where it compares them.
fn sorted(mut groups: Groups) -> Groups {
    groups.values_mut().for_each(|ids| ids.sort());
    groups
}

/// `PATCH /v6/groupmembership`.
pub(crate) fn set_groups(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = core.student(asked)?;
    validate::group_membership(&asked.body)?;
    Ok(belong(core, user, asked.student_id()?, &asked.body))
}

/// Sets the groups of a student. By an alias it has no effect, as in the original.
pub(crate) fn belong(core: &mut Core, mut user: User, called: &str, body: &Value) -> Value {
    let mut answer = json!({ "id": user.id });
    if let Some(given) = body.get("group") {
        answer["group"] = given.clone();
        user.group = part(body, "group");
        if called == user.id {
            core.world.users.insert(user.id.clone(), user);
        }
    }
    answer
}

/// `PATCH /v6/workinggroup`.
pub(crate) fn set_working_group(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = core.student(asked)?;
    validate::working_group(&asked.body)?;
    Ok(work(core, user, asked.student_id()?, &asked.body))
}

/// Sets the working groups of a student. By an alias the groups stay, and old enrolments are dropped anyway,
/// as in the original.
pub(crate) fn work(core: &mut Core, mut user: User, called: &str, body: &Value) -> Value {
    let working: WorkingGroups = part(body, "workingGroup").unwrap_or_default();
    let answer = json!({ "id": user.id, "workingGroup": working });
    if let Some(old) = &user.working_group {
        groups::change(&mut core.world, &user.id, old, &working);
    }
    user.working_group = Some(working);
    if called == user.id {
        core.world.users.insert(user.id.clone(), user);
    }
    answer
}

/// `PATCH /v6/useraliases`.
pub(crate) fn set_aliases(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = core.student(asked)?;
    validate::aliases(&asked.body)?;
    aliases::add(core, &user, asked.student_id()?, &asked.body)
}

/// `POST /v6/assign`: stores nothing.
pub(crate) fn assign(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = core.student(asked)?;
    validate::assign(&asked.body)?;
    conditions(core, &user, &asked.body)
}

/// The assignments of a student in a context.
pub(crate) fn conditions(core: &mut Core, user: &User, body: &Value) -> Result<Value, Fault> {
    let context = context(core, body)?;
    let world = &core.world;
    let assigned = assign::assignments(world, context, user).into_iter();
    let told = assigned.map(|(experiment, condition)| answer::assigned(world, experiment, condition, user));
    let told: Vec<Vec<Value>> = told.collect::<Result<_, _>>()?;
    Ok(told.into_iter().flatten().collect())
}

fn context<'b>(core: &Core, body: &'b Value) -> Result<&'b str, Fault> {
    let context = body["context"].as_str().unwrap_or_default();
    core.contexts.get(context).map(|_| context).ok_or_else(|| Fault::invalid_context(context))
}

/// `POST /v6/featureflag`. Groups in the body apply to this request only: they make a student known, or are
/// added to the stored ones.
pub(crate) fn flags(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = asked.student_id()?;
    let told = part::<Groups>(&asked.body, "groupsForSession");
    let is_alone =
        asked.body["groupsForSession"].is_object() && asked.body["includeStoredUserGroups"] == false;
    let mut user = if is_alone { new_user(id) } else { core.student(asked)? };
    validate::flags(&asked.body)?;
    if let Some(told) = told {
        let groups = user.group.get_or_insert_default();
        for (kind, ids) in told {
            groups.entry(kind).or_default().extend(ids);
        }
    }
    flags_of(core, &user, &asked.body)
}

/// The keys of a student's flags in a context.
pub(crate) fn flags_of(core: &mut Core, user: &User, body: &Value) -> Result<Value, Fault> {
    let context = context(core, body)?.to_owned();
    Ok(flags::keys(core, &context, user))
}

/// `POST /v6/reward`: has no effect here.
pub(crate) fn reward(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    core.student(asked)?;
    validate::reward(&asked.body)?;
    Err(Fault::no_rewards())
}

/// `POST /batch-assign`: the assignments of many students at one place; stores nothing.
pub(crate) fn assign_many(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    if !validate::is_batch(body) {
        return Err(Fault::body());
    }
    check_texts(body)?;
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
pub(crate) fn mark(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = core.student(asked)?;
    validate::mark(&asked.body)?;
    visit(core, &user, &asked.body)
}

/// Records a visit.
pub(crate) fn visit(core: &mut Core, user: &User, body: &Value) -> Result<Value, Fault> {
    let data = &body["data"];
    let condition = &data["assignedCondition"];
    let now = core.now();
    let report = Report {
        site: data["site"].as_str().unwrap_or_default(),
        target: data["target"].as_str().unwrap_or_default(),
        condition: condition["conditionCode"].as_str(),
        experiment_id: condition["experimentId"].as_str().filter(|id| !id.is_empty()),
        uniquifier: body["uniquifier"].as_str().filter(|text| !text.is_empty()),
        failed: body["status"] == "condition not applied",
        now: &now,
    };
    let (world, mut ids) = core.world_and_ids();
    let visit = mark::mark(world, user, &report, &mut ids)?;
    Ok(json!({
        "id": visit.id,
        "condition": visit.condition,
        "userId": visit.user_id,
        "site": report.site,
        "target": report.target,
        "experimentId": visit.experiment_id,
    }))
}

/// `POST /v6/log`.
pub(crate) fn log(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = core.student(asked)?;
    validate::log(&asked.body)?;
    logs::store_logs(core, &user, &asked.body)
}

fn new_user(id: &str) -> User {
    User { id: id.to_owned(), ..User::default() }
}

fn part<T: DeserializeOwned>(body: &Value, field: &str) -> Option<T> {
    T::deserialize(body.get(field)?).ok()
}
