//! Routes of older applications: as those of `students`, except that the body names the student, and is
//! validated before the student is looked up.

use serde_json::{Value, json};

use super::aliases;
use crate::core::{ApiRequest, Core};
use crate::metrics::logs;
use crate::students;
use crate::wire::body::check_texts;
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::world::model::User;

/// `POST /v5/init`. By an alias it returns the alias and changes nothing.
pub(crate) fn init(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_init(&asked.body)?;
    let id = word(asked, "id");
    let mut answer = students::join(core, id, &asked.body, !core.world.aliases.contains(id));
    answer["id"] = json!(id);
    Ok(answer)
}

/// `PATCH /v5/groupmembership`.
pub(crate) fn set_groups(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_init(&asked.body)?;
    let user = known(core, asked, "id")?;
    Ok(students::belong(core, user, word(asked, "id"), &asked.body))
}

/// `PATCH /v5/workinggroup`.
pub(crate) fn set_working_group(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_working_group(&asked.body)?;
    let user = known(core, asked, "id")?;
    Ok(students::work(core, user, word(asked, "id"), &asked.body))
}

/// `POST /v5/assign`.
pub(crate) fn assign(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_assign(&asked.body)?;
    let user = known(core, asked, "userId")?;
    students::conditions(core, &user, &asked.body)
}

/// `POST /v5/mark`.
pub(crate) fn mark(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_mark(&asked.body)?;
    let user = known(core, asked, "userId")?;
    students::visit(core, &user, &asked.body)
}

/// `POST /v5/log`.
pub(crate) fn log(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_log(&asked.body)?;
    let user = known(core, asked, "userId")?;
    logs::store_logs(core, &user, &asked.body)
}

/// `POST /v5/bloblog`: the same for browsers that send a text. All errors have one message of their own.
pub(crate) fn log_blob(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let user = known(core, asked, "userId").map_err(|why| why.wrapped())?;
    check_texts(&asked.body).map_err(|why| why.wrapped())?;
    logs::store_logs(core, &user, &asked.body).map_err(|why| why.wrapped())
}

/// `POST /v5/featureflag`.
pub(crate) fn flags(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_assign(&asked.body)?;
    let user = known(core, asked, "userId")?;
    students::flags_of(core, &user, &asked.body)
}

/// `PATCH /v5/useraliases`.
pub(crate) fn set_aliases(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::v5_aliases(&asked.body)?;
    let user = known(core, asked, "userId")?;
    aliases::add(core, &user, word(asked, "userId"), &asked.body)
}

fn word<'a>(asked: &'a ApiRequest, field: &str) -> &'a str {
    asked.body[field].as_str().unwrap_or_default()
}

fn known(core: &Core, asked: &ApiRequest, field: &str) -> Result<User, Fault> {
    let id = word(asked, field);
    core.world.user(id).cloned().ok_or_else(|| Fault::no_experiment_user(id))
}
