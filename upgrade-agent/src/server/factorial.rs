//! Factorial designs: factors with their levels, and conditions that are made of one level each.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::body::{entries, text};
use super::core::Core;
use super::fault::Fault;
use super::model::{Condition, Element, Experiment, Factor, Level, Stamp};
use super::validate::is_uuid;
use super::view::{row, with};
use super::world::World;
use crate::client::ExperimentType;

pub(crate) fn is_factorial(experiment: &Experiment) -> bool {
    experiment.columns.design == ExperimentType::Factorial
}

/// What the original stumbles over, or leaves to its database to refuse. The ids of the experiment
/// that is rewritten are free.
pub(crate) fn check(world: &World, body: &Value, rewritten: Option<&str>) -> Result<(), Fault> {
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

/// Whether these are ids, each there once, and of no other experiment.
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

/// The factors of a body that passed its check; a design that is not factorial has none.
pub(crate) fn factors(core: &mut Core, body: &Value, now: &str) -> Vec<Factor> {
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

/// Which condition has which level. `ids` leads from the body's condition ids to the stored ones.
pub(crate) fn elements(
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

/// The factors as all calls show them.
pub(crate) fn shown_factors(factors: &[Factor]) -> Value {
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
    with(shown, [("payload", payload(level))])
}

fn payload(level: &Level) -> Value {
    json!({ "type": level.payload_type, "value": level.payload_value })
}

/// What a condition is made of, with the levels in the database's own columns.
pub(crate) fn shown_elements(experiment: &Experiment, condition: &str) -> Value {
    let own = experiment.elements.iter().filter(|element| element.condition_id == condition);
    let level = |id: &str| experiment.factors.iter().flat_map(|f| &f.levels).find(|level| level.id == id);
    own.map(|element| {
        let level = level(&element.level_id).map_or(Value::Null, row);
        with(row(&element.stamp), [("id", json!(element.id)), ("level", level)])
    })
    .collect()
}

/// The code under which a condition is assigned. It is spelt from the levels; the original gives a
/// lone level's payload in place of a code, and stumbles where there is none.
pub(crate) fn code(experiment: &Experiment, condition: &Condition) -> Result<Value, Fault> {
    match levels(experiment, condition).as_slice() {
        [] => Err(Fault::assignment_reads_nothing("payload")),
        [(_, only)] => Ok(payload(only)),
        more => {
            let words: Vec<String> =
                more.iter().map(|(factor, level)| format!("{}={}", factor.name, level.name)).collect();
            Ok(json!(words.join("; ")))
        }
    }
}

/// The levels that a condition assigns, by the names of their factors. Whatever the type of their
/// payloads, it is called a string.
pub(crate) fn assigned(experiment: &Experiment, condition: &Condition) -> Value {
    let entry = |(factor, level): (&Factor, &Level)| {
        let value = level.payload_value.as_deref().filter(|value| !value.is_empty());
        let payload = value.map(|value| json!({ "type": "string", "value": value }));
        (factor.name.clone(), json!({ "level": level.name, "payload": payload }))
    };
    Value::Object(levels(experiment, condition).into_iter().map(entry).collect::<Map<_, _>>())
}

/// The levels of a condition in the order of their factors.
fn levels<'e>(experiment: &'e Experiment, condition: &Condition) -> Vec<(&'e Factor, &'e Level)> {
    let is_own = |level: &Level| {
        experiment.elements.iter().any(|e| e.condition_id == condition.id && e.level_id == level.id)
    };
    let all = experiment.factors.iter().flat_map(|factor| factor.levels.iter().map(move |l| (factor, l)));
    let mut own: Vec<_> = all.filter(|(_, level)| is_own(level)).collect();
    own.sort_by_key(|(factor, _)| factor.order);
    own
}
