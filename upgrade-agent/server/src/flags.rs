//! `/flags`: features that applications show to some students only, selected by lists.

pub(crate) mod lists;

use serde_json::{Value, json};

use crate::accounts::audit;
use crate::core::{ApiRequest, Core};
use crate::segments::{self, segment};
use crate::wire::body::{entries, text};
use crate::wire::fault::Fault;
use crate::wire::row::{row, with};
use crate::wire::validate;
use crate::wire::words::FilterMode;
use crate::world::World;
use crate::world::model::{Flag, FlagColumns, FlagTie, Stamp, User};
use crate::world::table::key;

/// `GET /flags`.
pub(crate) fn all(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(core.world.flags_in_order().into_iter().map(|flag| row(&flag.columns)).collect())
}

/// `GET /flags/:id`.
pub(crate) fn single(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = validate::path_id(&asked.id)?;
    Ok(find(&core.world, &id).map_or(Value::Null, |flag| whole(&core.world, flag)))
}

pub(crate) fn find<'w>(world: &'w World, id: &str) -> Option<&'w Flag> {
    world.flags.get(&key(&[&id.to_lowercase()]))
}

/// A flag with its lists.
fn whole(world: &World, flag: &Flag) -> Value {
    let lists = |ties: &[FlagTie]| lists::shown(world, &flag.columns.id, ties);
    with(
        row(&flag.columns),
        [
            ("featureFlagSegmentInclusion", lists(&flag.inclusion)),
            ("featureFlagSegmentExclusion", lists(&flag.exclusion)),
        ],
    )
}

/// `POST /flags`: always with a new id; lists in the body are ignored.
pub(crate) fn create(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    check(core, body, body["id"].as_str())?;
    let description = described(body)?;
    Ok(row(&insert(core, body, description)))
}

/// The description of a new flag, which the original's database requires.
pub(crate) fn described(body: &Value) -> Result<String, Fault> {
    let doing = "Error in creating feature flag document \"addFeatureFlagInDB\"";
    text(body, "description").ok_or_else(|| no_description(doing))
}

/// Creates a flag without lists.
pub(crate) fn insert(core: &mut Core, body: &Value, description: String) -> FlagColumns {
    let stamp = Stamp::new(&core.now());
    let columns = FlagColumns { description, ..columns(body, core.new_id(), stamp) };
    let sequence = core.world.flags.values().map(|flag| flag.sequence + 1).max().unwrap_or(0);
    let data = json!({ "flagId": columns.id, "flagName": columns.name });
    let flag = Flag { sequence, inclusion: Vec::new(), exclusion: Vec::new(), columns: columns.clone() };
    core.world.flags.insert(key(&[&columns.id]), flag);
    audit::flagged(core, "featureFlagCreated", data);
    columns
}

/// Checks the shape, the context, and that the key is free.
fn check(core: &Core, body: &Value, own: Option<&str>) -> Result<(), Fault> {
    validate::flag(body)?;
    let context = body["context"][0].as_str().unwrap_or_default();
    if core.contexts.get(context).is_none() {
        return Err(Fault::unknown_context(context));
    }
    let is_other = |flag: &Flag| own.is_none_or(|own| !own.eq_ignore_ascii_case(&flag.columns.id));
    let is_same =
        |flag: &Flag| flag.columns.key == body["key"] && json!(flag.columns.context) == body["context"];
    if core.world.flags.values().any(|flag| is_other(flag) && is_same(flag)) {
        Err(Fault::flag_key_is_taken())
    } else {
        Ok(())
    }
}

fn no_description(doing: &str) -> Fault {
    let why = segment::null_in("description", "feature_flag");
    Fault::query(format!("{doing} QueryFailedError: {why}"))
}

fn columns(body: &Value, id: String, stamp: Stamp) -> FlagColumns {
    let texts = |field: &str| entries(body, field).filter_map(Value::as_str).map(str::to_owned).collect();
    let word = |field: &str| text(body, field).unwrap_or_default();
    FlagColumns {
        stamp,
        id,
        name: word("name"),
        key: word("key"),
        description: word("description"),
        context: texts("context"),
        tags: texts("tags"),
        status: word("status"),
        filter_mode: FilterMode::from(word("filterMode").as_str()),
    }
}

/// `PUT /flags/:id`. A flag with a new context loses its lists.
pub(crate) fn update(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = validate::path_id(&asked.id)?;
    let body = &asked.body;
    check(core, body, Some(&id))?;
    let now = core.now();
    let old = find(&core.world, &id).cloned();
    let old = old.ok_or_else(|| Fault::destructures_nothing("featureFlagSegmentExclusion"))?;
    let mut columns = columns(body, id.clone(), old.columns.stamp.clone());
    columns.stamp.touch(&now);
    match body.get("description") {
        None => columns.description = old.columns.description.clone(),
        Some(Value::Null) => {
            return Err(no_description("Error in updating feature flag document \"updateFeatureFlagInDB\""));
        }
        Some(_) => {}
    }
    if columns.context.first() != old.columns.context.first() {
        for tie in old.inclusion.iter().chain(&old.exclusion) {
            segment::remove_with_lists(&mut core.world, &tie.segment_id);
        }
    }
    let data = json!({ "flagId": id, "flagName": columns.name });
    let flag = core.world.flags.get_mut(&key(&[&id])).ok_or_else(|| Fault::internal("lost flag"))?;
    flag.columns = columns;
    let flag = flag.clone();
    audit::flagged(core, "featureFlagUpdated", data);
    Ok(whole(&core.world, &flag))
}

/// `PATCH /flags/status`.
pub(crate) fn set_status(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::flag_status(&asked.body)?;
    let status = text(&asked.body, "status").unwrap_or_default();
    let (old, new) = change(core, &asked.body, |columns| status.clone_into(&mut columns.status))
        .ok_or_else(|| Fault::reads_nothing("null", "context"))?;
    let data = json!({
        "flagId": asked.body["flagId"],
        "flagName": old.name,
        "previousState": old.status,
        "newState": status,
    });
    audit::flagged(core, "featureFlagStatusChanged", data);
    Ok(row(&new))
}

/// `PATCH /flags/filterMode`.
pub(crate) fn set_filter(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::flag_filter(&asked.body)?;
    let filter = FilterMode::from(asked.body["filterMode"].as_str().unwrap_or_default());
    let (old, new) = change(core, &asked.body, |columns| columns.filter_mode = filter)
        .ok_or_else(|| Fault::reads_nothing("undefined", "name"))?;
    let data = json!({
        "flagId": asked.body["flagId"],
        "flagName": old.name,
        "filterMode": asked.body["filterMode"],
    });
    audit::flagged(core, "featureFlagUpdated", data);
    Ok(row(&new))
}

/// The columns of the flag in a body, before and after.
fn change(
    core: &mut Core,
    body: &Value,
    write: impl FnOnce(&mut FlagColumns),
) -> Option<(FlagColumns, FlagColumns)> {
    let now = core.now();
    let id = body["flagId"].as_str().unwrap_or_default().to_lowercase();
    let flag = core.world.flags.get_mut(&key(&[&id]))?;
    let old = flag.columns.clone();
    write(&mut flag.columns);
    flag.columns.stamp.touch(&now);
    Some((old, flag.columns.clone()))
}

/// `DELETE /flags/:id`: with its lists.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = validate::path_id(&asked.id)?;
    let flag = core.world.flags.remove(&key(&[&id])).ok_or_else(Fault::nothing)?;
    for tie in flag.inclusion.iter().chain(&flag.exclusion) {
        segment::remove_with_lists(&mut core.world, &tie.segment_id);
    }
    audit::flagged(core, "featureFlagDeleted", json!({ "flagName": flag.columns.name }));
    Ok(json!([row(&flag.columns)]))
}

/// The keys of a student's flags, those for all students first.
pub(crate) fn keys(core: &mut Core, context: &str, user: &User) -> Value {
    let world = &core.world;
    let (mut of_all, of_some): (Vec<&Flag>, Vec<&Flag>) = world
        .flags_in_order()
        .into_iter()
        .filter(|flag| {
            flag.columns.status == "enabled" && flag.columns.context.iter().any(|own| own == context)
        })
        .filter(|flag| is_shown(world, flag, user))
        .partition(|flag| flag.columns.filter_mode == FilterMode::IncludeAll);
    of_all.extend(of_some);
    of_all.into_iter().map(|flag| flag.columns.key.clone()).collect()
}

/// Disabled lists do not count, nor does an inclusion list if all students are included.
fn is_shown(world: &World, flag: &Flag, user: &User) -> bool {
    let enabled = |ties: &'_ [FlagTie]| -> Vec<String> {
        ties.iter().filter(|tie| tie.enabled).map(|tie| tie.segment_id.clone()).collect()
    };
    let filter = &flag.columns.filter_mode;
    let mut inclusion = enabled(&flag.inclusion);
    if *filter == FilterMode::IncludeAll {
        inclusion.clear();
    }
    let exclusion = enabled(&flag.exclusion);
    let inclusion: Vec<&str> = inclusion.iter().map(String::as_str).collect();
    let exclusion: Vec<&str> = exclusion.iter().map(String::as_str).collect();
    segments::lists::includes_student(world, (&inclusion, &exclusion), filter, user)
}
