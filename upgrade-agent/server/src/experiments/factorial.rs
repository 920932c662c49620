//! Factorial designs: factors with levels, and conditions that combine one level of each factor.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::core::Core;
use crate::wire::body::{entries, text};
use crate::wire::fault::Fault;
use crate::wire::row::{row, with};
use crate::wire::validate::is_uuid;
use crate::world::World;
use crate::world::model::{Element, Experiment, Factor, Level, Stamp};

/// The values on which the original or its database fails. The ids of an experiment that is being rewritten
/// are free.
pub(super) fn check(world: &World, body: &Value, rewritten: Option<&str>) -> Result<(), Fault> {
    if body["type"] != "Factorial" {
        return Ok(());
    }
    let conditions = || entries(body, "conditions");
    let all_listed = conditions().all(|condition| condition["levelCombinationElements"].is_array());
    if !body["factors"].is_array() || !all_listed {
        return Err(Fault::reads_nothing("undefined", "map"));
    }
    let factors: Vec<&Value> = entries(body, "factors").collect();
    let levels: Vec<&Value> = factors.iter().flat_map(|factor| entries(factor, "levels")).collect();
    let elements: Vec<&Value> = conditions().flat_map(|c| entries(c, "levelCombinationElements")).collect();
    let given = factors.iter().chain(&levels).chain(&elements).map(|part| &part["id"]);
    let given: Vec<&Value> = given.filter(|id| id.as_str().is_some_and(|id| !id.is_empty())).collect();
    if factors.is_empty() || !are_free(world, &given, rewritten) || !are_tied(&levels, &elements) {
        return Err(Fault::database("Error in creating factors & levels"));
    }
    if levels.is_empty() || (elements.is_empty() && conditions().next().is_some()) {
        return Err(Fault::reads_nothing("undefined", "filter"));
    }
    Ok(())
}

/// Whether these are ids, without repetition, and not used by another experiment.
fn are_free(world: &World, given: &[&Value], rewritten: Option<&str>) -> bool {
    let others = world.experiments.values().filter(|other| Some(other.columns.id.as_str()) != rewritten);
    let mut known: HashSet<String> = others.flat_map(part_ids).map(str::to_lowercase).collect();
    given.iter().all(|id| is_uuid(id) && known.insert(id.as_str().unwrap_or_default().to_lowercase()))
}

fn part_ids(experiment: &Experiment) -> impl Iterator<Item = &str> {
    let factors = experiment.factors.iter();
    let factors = factors.flat_map(|f| f.levels.iter().map(|l| &l.id).chain([&f.id]));
    factors.chain(experiment.elements.iter().map(|element| &element.id)).map(String::as_str)
}

fn are_tied(levels: &[&Value], elements: &[&Value]) -> bool {
    let known: HashSet<&str> = levels.iter().filter_map(|level| level["id"].as_str()).collect();
    elements.iter().all(|element| element["level"]["id"].as_str().is_some_and(|id| known.contains(id)))
}

/// The factors of a checked body; empty if the design is not factorial.
pub(super) fn factors(core: &mut Core, body: &Value, now: &str) -> Vec<Factor> {
    if body["type"] != "Factorial" {
        return Vec::new();
    }
    let mut factor = |entry: &Value| Factor {
        stamp: Stamp::new(now),
        id: id_or_new(core, entry),
        name: text(entry, "name").unwrap_or_default(),
        description: text(entry, "description"),
        order: entry["order"].as_f64().unwrap_or(0.0) as i64,
        levels: entries(entry, "levels").map(|level| self::level(level, now)).collect(),
    };
    entries(body, "factors").map(&mut factor).collect()
}

fn level(entry: &Value, now: &str) -> Level {
    Level {
        stamp: Stamp::new(now),
        id: text(entry, "id").unwrap_or_default(),
        name: text(entry, "name").unwrap_or_default(),
        description: text(entry, "description"),
        order: entry["order"].as_f64().map(|order| order as i64),
        payload_type: text(&entry["payload"], "type").unwrap_or_else(|| "string".into()),
        payload_value: text(&entry["payload"], "value"),
    }
}

/// The levels of the conditions. `ids` maps the body's condition ids to the stored ones.
pub(super) fn elements(
    core: &mut Core,
    body: &Value,
    now: &str,
    ids: &HashMap<String, String>,
) -> Vec<Element> {
    if body["type"] != "Factorial" {
        return Vec::new();
    }
    let mut made = Vec::new();
    for condition in entries(body, "conditions") {
        let given = condition["id"].as_str().unwrap_or_default();
        for entry in entries(condition, "levelCombinationElements") {
            made.push(Element {
                stamp: Stamp::new(now),
                id: id_or_new(core, entry),
                condition_id: ids.get(given).cloned().unwrap_or_else(|| given.to_owned()),
                level_id: text(&entry["level"], "id").unwrap_or_default(),
            });
        }
    }
    made
}

fn id_or_new(core: &mut Core, entry: &Value) -> String {
    text(entry, "id").filter(|id| !id.is_empty()).unwrap_or_else(|| core.new_id())
}

/// The factors in the form of responses.
pub(super) fn shown_factors(factors: &[Factor]) -> Value {
    let shown = |factor: &Factor| {
        json!({
            "id": factor.id,
            "name": factor.name,
            "order": factor.order,
            "description": factor.description,
            "levels": factor.levels.iter().map(shown_level).collect::<Vec<_>>(),
        })
    };
    factors.iter().map(shown).collect()
}

fn shown_level(level: &Level) -> Value {
    let mut shown = row(level);
    if let Some(columns) = shown.as_object_mut() {
        columns.remove("payloadType");
        columns.remove("payloadValue");
    }
    with(shown, [("payload", level.payload())])
}

/// The levels of a condition, with the database's own columns.
pub(super) fn shown_elements(experiment: &Experiment, condition: &str) -> Value {
    let own = experiment.elements.iter().filter(|element| element.condition_id == condition);
    let level = |id: &str| experiment.factors.iter().flat_map(|f| &f.levels).find(|level| level.id == id);
    own.map(|element| {
        let level = level(&element.level_id).map_or(Value::Null, row);
        with(row(&element.stamp), [("id", json!(element.id)), ("level", level)])
    })
    .collect()
}
