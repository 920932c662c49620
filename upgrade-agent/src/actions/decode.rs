//! Decodes the untyped JSON of a model into a typed action.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::display::{display, display_up_to};
use super::half_place;
use super::{Action, ActionKind};
use crate::state::Params;

/// The limit of characters of a decoding error, which quotes the parameters.
const LONGEST_REASON: usize = 300;

/// The limit of bytes of a text that may be a misspelling.
const LONGEST_WORD: usize = 400;

/// The reason for which parameters are not an action yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Required parameters are missing.
    #[error("still needed: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// Parameters are invalid; each entry says what would be valid.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
}

/// Decodes parameters into an action. A parameter that is `null` counts as missing, and so does a decision
/// point with only a site or only a target.
///
/// # Errors
/// Invalid parameters are reported before missing ones.
///
/// ```
/// use serde_json::json;
/// use upgrade_agent::actions::{ActionKind, DecodeError, decode};
///
/// let params = json!({ "experiment_id": "d6a003ca-be46-417b-9c13-8dac554f511c" });
/// let kind = ActionKind::UpdateExperimentStatus;
/// let needed = decode(kind, params.as_object().unwrap()).unwrap_err();
/// assert_eq!(needed, DecodeError::Missing(vec!["status".into()]));
/// ```
pub fn decode(kind: ActionKind, params: &Params) -> Result<Action, DecodeError> {
    let given: Params = params.iter().filter(|(_, value)| !value.is_null()).map(owned).collect();
    let mut problems = unknown_parameters(kind, &given);
    let halves = half_place::places(&given);
    let lacks = |name: &String| is_absent(&given, name) || halves.contains(name);
    let mut missing: Vec<String> = required(kind).into_iter().filter(lacks).collect();
    missing.extend(halves.iter().filter(|name| !missing.contains(name)).cloned().collect::<Vec<_>>());
    let whole: Params = given.iter().filter(|(name, _)| !halves.contains(name)).map(owned).collect();
    match kind.with_params(Value::Object(whole)) {
        Ok(action) if missing.is_empty() => return Ok(action),
        Err(error) if problems.is_empty() && !is_about(&error, &missing) => {
            problems.push(misfit(kind, &given, &error));
        }
        _ => {}
    }
    if problems.is_empty() { Err(DecodeError::Missing(missing)) } else { Err(DecodeError::Invalid(problems)) }
}

/// The required parameters, in the order of the questions for them.
pub fn required(kind: ActionKind) -> Vec<String> {
    let schema = kind.schema();
    let names = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The parameters without those that the action does not have, and without fields that their values do not
/// have; a sentence for each. A field that is `null` is not set.
pub(crate) fn pruned(kind: ActionKind, params: &Params) -> (Params, Vec<String>) {
    let schema = kind.schema();
    let mut dropped = unknown_parameters(kind, params);
    let known = known_parameters(kind);
    let mut params = params.clone();
    params.retain(|name, value| !value.is_null() && known.contains(name));
    for (name, value) in &mut params {
        prune(value, &schema["properties"][name.as_str()], &schema, name, &mut dropped);
    }
    (params, dropped)
}

fn prune(value: &mut Value, schema: &Value, root: &Value, path: &str, dropped: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        Some(defined) => defined,
        None => schema,
    };
    if let Some(kinds) = schema["anyOf"].as_array() {
        // An optional value: its schema or null.
        return kinds.iter().for_each(|kind| prune(value, kind, root, path, dropped));
    }
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| prune(item, &schema["items"], root, path, dropped));
        }
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            let Some(known) = schema["properties"].as_object() else { return };
            fields.retain(|name, _| {
                let stays = known.contains_key(name);
                if !stays {
                    dropped.push(format!("`{path}` has no field `{}`", display(name)));
                }
                stays
            });
        }
        _ => {}
    }
}

/// A sentence for each parameter that the action does not have.
pub fn unknown_parameters(kind: ActionKind, params: &Params) -> Vec<String> {
    let known = known_parameters(kind);
    let unknown = params.keys().filter(|name| !known.contains(name));
    let sentence = |name: &String| match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("`{kind}` has no parameter `{}`; did you mean `{near}`?", display(name)),
        None => format!("`{kind}` has no parameter `{}`; it has {}", display(name), known.join(", ")),
    };
    unknown.map(sentence).collect()
}

pub(super) fn known_parameters(kind: ActionKind) -> Vec<String> {
    let schema = kind.schema();
    schema["properties"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
    }
    schema
}

/// The most similar known word, ignoring case, if one is similar enough. The time is the product of the
/// lengths, so long texts are not compared.
pub(super) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.len() > LONGEST_WORD {
        return None;
    }
    let folded = wrong.to_lowercase();
    let allowed = (wrong.chars().count() / 3).max(1);
    known
        .filter(|word| word.len() <= LONGEST_WORD)
        .map(|word| (strsim::damerau_levenshtein(&folded, &word.to_lowercase()), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Models write an empty text or list for an unknown value.
fn is_absent(params: &Params, name: &str) -> bool {
    match params.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}

fn is_about(error: &serde_json::Error, missing: &[String]) -> bool {
    let said = error.to_string();
    missing.iter().any(|name| said.starts_with(&format!("missing field `{name}`")))
}

/// Serde does not report the invalid parameter, so it is found by leaving out one at a time.
fn misfit(kind: ActionKind, params: &Params, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let shown = display_up_to(&said, LONGEST_REASON);
    let fails_alike = |without: &str| {
        let mut rest = params.clone();
        rest.remove(without);
        kind.with_params(Value::Object(rest)).is_err_and(|other| other.to_string() == said)
    };
    match params.keys().find(|name| !fails_alike(name)) {
        Some(name) => format!("the parameter `{name}` of `{kind}` does not fit: {shown}"),
        None => format!("the parameters of `{kind}` do not fit: {shown}"),
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}
