//! Tolerant readers of tool results: fields in any of their spellings, lists at any place.

use serde_json::{Map, Value};

/// An experiment of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownName {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A context and its vocabulary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContextInfo {
    pub(crate) name: String,
    pub(crate) conditions: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) sites: Vec<String>,
    pub(crate) targets: Vec<String>,
}

/// The text of a field.
pub(crate) fn text<'v>(value: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| value.get(*name)?.as_str()).filter(|text| !text.is_empty())
}

/// The texts of a field, or of the value itself.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

pub(crate) fn field<'v>(value: &'v Value, names: &[&str]) -> &'v Value {
    names.iter().find_map(|name| value.get(*name)).unwrap_or(&Value::Null)
}

/// The contexts by name, at any depth.
pub(crate) fn contexts(value: &Value) -> Vec<ContextInfo> {
    let Some(map) = value.as_object() else { return Vec::new() };
    for inner in ["contexts", "contextMetadata", "context_metadata", "value"] {
        if let Some(Value::Object(map)) = map.get(inner) {
            return of_map(map);
        }
    }
    of_map(map)
}

fn of_map(map: &Map<String, Value>) -> Vec<ContextInfo> {
    let context = |(name, value): (&String, &Value)| {
        let list = |names: &[&str]| texts(field(value, names));
        value.is_object().then(|| ContextInfo {
            name: name.clone(),
            conditions: list(&["conditions", "CONDITIONS"]),
            groups: list(&["group_types", "GROUP_TYPES"]),
            sites: list(&["sites", "EXP_POINTS"]),
            targets: list(&["targets", "EXP_IDS"]),
        })
    };
    map.iter().filter_map(context).collect()
}

/// Ids and names of experiments: from a list, or from one inside an object.
pub(crate) fn names(value: &Value) -> Vec<KnownName> {
    experiments(value)
        .into_iter()
        .filter_map(|one| {
            Some(KnownName { id: text(one, &["id"])?.to_owned(), name: text(one, &["name"])?.to_owned() })
        })
        .collect()
}

/// The experiments of a list, at any place.
pub(crate) fn experiments(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(all) => all.iter().collect(),
        Value::Object(map) => {
            let inner = ["experiments", "experiment_names", "all_experiments", "names", "value"];
            inner.iter().find_map(|name| map.get(*name)).map(experiments).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The codes and weights of an experiment's conditions.
pub(crate) fn conditions(experiment: &Value) -> Vec<(String, f64)> {
    let all = field(experiment, &["conditions"]).as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter()
        .filter_map(|one| {
            let code = text(one, &["code", "condition_code", "conditionCode"])?;
            let weight = field(one, &["weight", "assignment_weight", "assignmentWeight"]).as_f64();
            Some((code.to_owned(), weight.unwrap_or_default()))
        })
        .collect()
}

/// The sites and targets of an experiment's decision points.
pub(crate) fn points(experiment: &Value) -> Vec<(String, String)> {
    let all = field(experiment, &["decision_points", "partitions"])
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    all.iter()
        .filter_map(|one| {
            Some((text(one, &["site"])?.to_owned(), text(one, &["target"]).unwrap_or_default().to_owned()))
        })
        .collect()
}

/// The status of an experiment.
pub(crate) fn status(experiment: &Value) -> &str {
    text(experiment, &["status", "state"]).unwrap_or("unknown")
}

/// The first context of an experiment.
pub(crate) fn context_of(experiment: &Value) -> Option<String> {
    let context = field(experiment, &["context"]);
    context.as_str().map(str::to_owned).or_else(|| texts(context).into_iter().next())
}

/// The name in a tool's result, for use in a sentence.
pub(crate) fn name(value: &Value) -> String {
    on_one_line(text(value, &["name"]).unwrap_or("?"))
}

/// A name on the server may contain anything, so it must not start a line that imitates the agent's own.
pub(crate) fn on_one_line(name: &str) -> String {
    name.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}
