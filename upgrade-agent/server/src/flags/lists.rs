//! A flag's lists: routes that add, change and remove single lists.

use serde_json::{Value, json};

use crate::accounts::audit;
use crate::core::{ApiRequest, Core};
use crate::flags;
use crate::segments::side::{OneSide, Side};
use crate::segments::{self, segment};
use crate::wire::body::text;
use crate::wire::fault::Fault;
use crate::wire::row::{row, with};
use crate::wire::validate;
use crate::world::World;
use crate::world::model::{Flag, FlagTie, Stamp};
use crate::world::table::key;

fn of(flag: &Flag, side: Side) -> &[FlagTie] {
    match side {
        Side::Inclusion => &flag.inclusion,
        Side::Exclusion => &flag.exclusion,
    }
}

fn of_mut(flag: &mut Flag, side: Side) -> &mut Vec<FlagTie> {
    match side {
        Side::Inclusion => &mut flag.inclusion,
        Side::Exclusion => &mut flag.exclusion,
    }
}

/// The lists of a flag, with all of their data.
pub(super) fn shown(world: &World, flag: &str, ties: &[FlagTie]) -> Value {
    let list = |tie: &FlagTie| {
        let segment = world.segment(&tie.segment_id)?;
        Some(with(segments::view::flag_tie(tie, flag), [("segment", segments::view::whole(world, segment))]))
    };
    ties.iter().filter_map(list).collect()
}

/// A list is private, whatever the body has.
fn private(list: &Value) -> Value {
    let mut input = list.clone();
    if input.is_object() {
        input["type"] = json!("private");
    }
    input
}

/// `POST /flags/inclusionList` and `exclusionList`.
pub(crate) fn add<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let body = &asked.body;
    validate::flag_list(body)?;
    if body["segment"].is_null() {
        let nothing = if body.get("segment").is_some() { "null" } else { "undefined" };
        return Err(Fault::writes_nothing(nothing, "type"));
    }
    let input = private(&body["segment"]);
    check(&core.world, &input, side)?;
    let flag = body["id"].as_str().unwrap_or_default().to_lowercase();
    if flags::find(&core.world, &flag).is_none() {
        let table = format!("feature_flag_segment_{}", side.word());
        let failed = format!("Error in adding segment for feature flag {} list", side.word());
        return Err(Fault::database(segment::null_in("featureFlagId", &table)).within(&failed));
    }
    let list_type = text(body, "listType").unwrap_or_default();
    let tie = put(core, &flag, &input, (body["enabled"] == true, list_type), side);
    with_ends(&core.world, &flag, &tie).ok_or_else(|| Fault::internal("lost list"))
}

/// The reason for which a segment cannot be a list of a flag.
pub(super) fn check(world: &World, input: &Value, side: Side) -> Result<(), Fault> {
    let failed = format!("Error in creating private segment for feature flag {} list", side.word());
    segment::check(world, input).map_err(|why| why.within(&failed))
}

/// Creates a list of a flag.
pub(super) fn put(
    core: &mut Core,
    flag: &str,
    input: &Value,
    (enabled, list_type): (bool, String),
    side: Side,
) -> FlagTie {
    let segment_id = segment::write(core, input);
    let tie = FlagTie { segment_id, enabled, list_type, stamp: Stamp::new(&core.now()) };
    if let Some(flag) = core.world.flags.get_mut(&key(&[flag])) {
        let ties = of_mut(flag, side);
        ties.retain(|other| other.segment_id != tie.segment_id);
        ties.push(tie.clone());
    }
    note(core, flag, &tie.segment_id, side, "created", None);
    tie
}

/// A tie with the flag's columns and the whole segment.
fn with_ends(world: &World, flag: &str, tie: &FlagTie) -> Option<Value> {
    let columns = row(&flags::find(world, flag)?.columns);
    let segment = segments::view::whole(world, world.segment(&tie.segment_id)?);
    Some(with(segments::view::flag_tie(tie, flag), [("featureFlag", columns), ("segment", segment)]))
}

/// Records the change in the audit log, with the list's status if that changed.
fn note(core: &mut Core, flag: &str, list: &str, side: Side, deed: &str, enabled: Option<bool>) {
    let name = flags::find(&core.world, flag).map(|flag| flag.columns.name.clone());
    let list_name = core.world.segment(list).map(|segment| segment.name.clone());
    let mut list = json!({
        "listId": list,
        "listName": list_name,
        "filterType": side.word(),
        "operation": deed,
    });
    if let Some(enabled) = enabled {
        list["enabled"] = json!(enabled);
    }
    let data = json!({ "flagId": flag, "flagName": name, "list": list });
    audit::flagged(core, "featureFlagUpdated", data);
}

/// `PUT /flags/inclusionList/:id` and `exclusionList/:id`.
pub(crate) fn change<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let id = validate::path_id(&asked.id)?;
    let body = &asked.body;
    validate::flag_list(body)?;
    let list = &body["segment"];
    if list.is_null() {
        let nothing = if body.get("segment").is_some() { "null" } else { "undefined" };
        return Err(Fault::reads_nothing(nothing, "id"));
    }
    if list["id"].as_str() != Some(asked.id.as_str()) {
        let named = list["id"].as_str().unwrap_or("undefined");
        return Err(Fault::thrown(format!(
            "Parameter not in the correct format: The id in the URL ({}) does not match the list id in the \
             request body ({named}).",
            asked.id
        )));
    }
    let owner = body["id"].as_str().unwrap_or_default().to_lowercase();
    let tie = flags::find(&core.world, &owner)
        .and_then(|flag| of(flag, side).iter().find(|tie| tie.segment_id == id).cloned());
    let tie = tie.ok_or_else(|| {
        let side = side.word();
        let owner = body["id"].as_str().unwrap_or_default();
        let ends = format!("feature flag {owner} and segment {}", asked.id);
        Fault::thrown(format!("No existing {side} record found for {ends}"))
    })?;
    let failed = format!("Error in updating private segment for feature flag {} list", side.word());
    segment::check(&core.world, list).map_err(|why| why.within(&failed))?;
    segment::write(core, list);
    rewrite(core, &owner, &tie, side, body)
}

fn rewrite(core: &mut Core, flag: &str, old: &FlagTie, side: Side, body: &Value) -> Result<Value, Fault> {
    let now = core.now();
    let enabled = body["enabled"] == true;
    let mut tie = FlagTie { enabled, list_type: text(body, "listType").unwrap_or_default(), ..old.clone() };
    if (tie.enabled, &tie.list_type) != (old.enabled, &old.list_type) {
        tie.stamp.touch(&now);
    }
    let ties = core.world.flags.get_mut(&key(&[flag])).map(|flag| of_mut(flag, side));
    if let Some(stored) = ties.and_then(|ties| ties.iter_mut().find(|one| one.segment_id == tie.segment_id)) {
        *stored = tie.clone();
    }
    let (deed, changed) =
        if enabled == old.enabled { ("updated", None) } else { ("statusChanged", Some(enabled)) };
    note(core, flag, &tie.segment_id, side, deed, changed);
    with_ends(&core.world, flag, &tie).ok_or_else(|| Fault::internal("lost list"))
}

/// `DELETE /flags/inclusionList/:id` and `exclusionList/:id`.
pub(crate) fn remove<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let id = validate::path_id(&asked.id)?;
    let is_tied = |flag: &&Flag| of(flag, side).iter().any(|tie| tie.segment_id == id);
    let owner = core.world.flags.values().find(is_tied).map(|flag| flag.columns.id.clone());
    let owner = owner.ok_or_else(|| {
        Fault::thrown(format!("Segment with ID {} not found for {}", asked.id, side.word()))
    })?;
    note(core, &owner, &id, side, "deleted", None);
    let gone = segment::remove_with_lists(&mut core.world, &id);
    Ok(gone.map_or(Value::Null, |segment| segments::view::columns(&segment)))
}
