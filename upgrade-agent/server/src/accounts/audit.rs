//! `/audit`: the audit log of experiments and flags, and `/error`, which stays empty, because the original
//! writes its errors elsewhere.

use serde_json::{Value, json};

use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::paging;
use crate::wire::row::{row, with};
use crate::wire::shape::{has, number, one_of, optional};
use crate::wire::words::{ExperimentState, outward};
use crate::world::model::{AuditEntry, Columns, Stamp};
use crate::world::table::key;

const CREATED: &str = "experimentCreated";
const UPDATED: &str = "experimentUpdated";
const MOVED: &str = "experimentStateChanged";
const DELETED: &str = "experimentDeleted";
const EXPORTED: &str = "experimentDesignExported";
const KINDS: [&str; 12] = [
    CREATED,
    UPDATED,
    MOVED,
    DELETED,
    "experimentDataExported",
    EXPORTED,
    "featureFlagCreated",
    "featureFlagUpdated",
    "featureFlagStatusChanged",
    "featureFlagDeleted",
    "featureFlagDataExported",
    "featureFlagDesignExported",
];

/// `POST /audit`: newest first.
pub(crate) fn paginated(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    if !(is_page(body) && has(body, "filter", optional(one_of(&KINDS)))) {
        return Err(Fault::body());
    }
    let is_meant = |deed: &&AuditEntry| {
        let of = |field: &str| body[field].is_null() || deed.data[field] == body[field];
        (body["filter"].is_null() || body["filter"] == deed.kind) && of("experimentId") && of("flagId")
    };
    let found: Vec<&AuditEntry> = core.world.deeds.values().filter(is_meant).collect();
    let page = paging::cut(found.iter().rev(), body)?.into_iter();
    let nodes = page.map(|deed| with(row(*deed), [("user", Value::Null)])).collect();
    Ok(paging::page(found.len(), nodes, body))
}

/// `POST /error`.
pub(crate) fn errors(_: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    if !is_page(&asked.body) {
        return Err(Fault::body());
    }
    let nodes = paging::cut::<Value>([], &asked.body)?.into();
    Ok(paging::page(0, nodes, &asked.body))
}

fn is_page(body: &Value) -> bool {
    has(body, "skip", number) && has(body, "take", number)
}

pub(crate) fn created(core: &mut Core, columns: &Columns) {
    note(core, CREATED, of(columns));
}

pub(crate) fn updated(core: &mut Core, columns: &Columns) {
    note(core, UPDATED, of(columns));
}

pub(crate) fn deleted(core: &mut Core, columns: &Columns) {
    note(core, DELETED, of(columns));
}

pub(crate) fn exported(core: &mut Core, columns: &Columns) {
    note(core, EXPORTED, of(columns));
}

pub(crate) fn moved(core: &mut Core, columns: &Columns, to: &ExperimentState, date: &Value) {
    let name = |state| json!(outward(core.world.dialect, state));
    let mut data = with(of(columns), [("previousState", name(&columns.state)), ("newState", name(to))]);
    if !date.is_null() {
        data["startOn"] = date.clone();
    }
    note(core, MOVED, data);
}

/// A list was `created`, `updated` or `deleted`.
pub(crate) fn listed(core: &mut Core, columns: &Columns, (id, name): (&str, &str), side: &str, deed: &str) {
    let list = json!({ "listId": id, "listName": name, "filterType": side, "operation": deed });
    note(core, UPDATED, with(of(columns), [("list", list)]));
}

/// Records a change of a flag.
pub(crate) fn flagged(core: &mut Core, deed: &str, data: Value) {
    note(core, deed, data);
}

fn of(columns: &Columns) -> Value {
    json!({ "experimentId": columns.id, "experimentName": columns.name })
}

fn note(core: &mut Core, kind: &str, data: Value) {
    let deed = AuditEntry { stamp: Stamp::new(&core.now()), id: core.new_id(), kind: kind.to_owned(), data };
    let number = core.world.deeds.last_key().and_then(number_in).map_or(0, |number| number + 1);
    // Leading zeros keep the keys in the order of the numbers.
    core.world.deeds.insert(key(&[&format!("{number:020}")]), deed);
}

fn number_in(at: &str) -> Option<u64> {
    at.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}
