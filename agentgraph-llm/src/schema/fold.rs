//! Two schemas as one that accepts the values that both accept, and schemas that share no value.

use serde_json::{Map, Value, json};

use super::rules::is_annotation;

type Fields = Map<String, Value>;

/// The largest union that arises from two unions.
const MAX_BRANCHES: usize = 64;

/// One schema for the values that both accept. `None` if it cannot be written without `allOf`. Annotations
/// of the first win.
pub(super) fn intersection(first: &Fields, second: &Fields) -> Option<Fields> {
    if is_closed_against(first, second) || is_closed_against(second, first) {
        return None;
    }
    let mut both = first.clone();
    for (keyword, value) in second {
        let merged = match first.get(keyword) {
            None => value.clone(),
            Some(known) if known == value || is_annotation(keyword) => known.clone(),
            Some(known) => keyword_intersection(keyword, known, value)?,
        };
        both.insert(keyword.clone(), merged);
    }
    Some(both)
}

/// Whether the first refuses a property of the second, or has rules for properties that it does not name.
fn is_closed_against(first: &Fields, second: &Fields) -> bool {
    match first.get("additionalProperties") {
        None | Some(Value::Bool(true)) => false,
        Some(_) => names(second).any(|name| first.get("properties").and_then(|all| all.get(name)).is_none()),
    }
}

fn names(schema: &Fields) -> impl Iterator<Item = &String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

fn keyword_intersection(keyword: &str, first: &Value, second: &Value) -> Option<Value> {
    match keyword {
        "type" => type_intersection(first, second),
        "properties" => {
            let mut both = first.as_object()?.clone();
            for (name, schema) in second.as_object()? {
                let merged = both.remove(name).map_or(schema.clone(), |known| all_of(&known, schema));
                both.insert(name.clone(), merged);
            }
            Some(Value::Object(both))
        }
        "required" => {
            let mut both = first.as_array()?.clone();
            both.extend(second.as_array()?.iter().filter(|name| !first_has(first, name)).cloned());
            Some(Value::Array(both))
        }
        "enum" => {
            let both: Vec<_> = second.as_array()?.iter().filter(|value| first_has(first, value)).collect();
            (!both.is_empty()).then(|| json!(both))
        }
        "items" => Some(all_of(first, second)),
        "allOf" => Some(Value::Array([&first.as_array()?[..], &second.as_array()?[..]].concat())),
        "anyOf" | "oneOf" => product(first.as_array()?, second.as_array()?),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => larger(first, second),
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            let larger = larger(first, second)?;
            Some(if larger == *first { second.clone() } else { first.clone() })
        }
        _ => None,
    }
}

fn first_has(list: &Value, item: &Value) -> bool {
    list.as_array().is_some_and(|list| list.contains(item))
}

fn all_of(first: &Value, second: &Value) -> Value {
    if first == second { first.clone() } else { json!({"allOf": [first, second]}) }
}

/// A value of both unions matches one branch of each.
fn product(first: &[Value], second: &[Value]) -> Option<Value> {
    if first.len() * second.len() > MAX_BRANCHES {
        return None;
    }
    Some(first.iter().flat_map(|one| second.iter().map(move |other| all_of(one, other))).collect())
}

fn larger(first: &Value, second: &Value) -> Option<Value> {
    Some(if first.as_f64()? >= second.as_f64()? { first.clone() } else { second.clone() })
}

/// The types in the value of `type`.
pub(super) fn types(value: &Value) -> Vec<&str> {
    match value {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn type_intersection(first: &Value, second: &Value) -> Option<Value> {
    let (first, second) = (types(first), types(second));
    let accepts =
        |all: &[&str], name: &str| all.contains(&name) || name == "integer" && all.contains(&"number");
    let mut both: Vec<_> = first.iter().filter(|name| accepts(&second, name)).copied().collect();
    both.extend(
        second
            .iter()
            .filter(|name| accepts(&first, name) && !both.contains(name))
            .copied()
            .collect::<Vec<_>>(),
    );
    match both[..] {
        [] => None,
        [name] => Some(json!(name)),
        _ => Some(json!(both)),
    }
}

/// A transformed schema beside an original one.
pub(super) struct Pair<'a> {
    /// The definitions of the first, by reference.
    pub(super) first: &'a dyn Fn(&str) -> Option<Value>,
    /// Those of the second.
    pub(super) second: &'a dyn Fn(&str) -> Option<Value>,
}

impl Pair<'_> {
    /// Whether no value matches both schemas, as far as that shows.
    pub(super) fn are_disjoint(&self, first: &Value, second: &Value) -> bool {
        self.disjoint(first, second, 0)
    }

    fn disjoint(&self, first: &Value, second: &Value, depth: usize) -> bool {
        // Deep enough for a tag within a branch within a union.
        if depth > 8 {
            return false;
        }
        let apart = |first: &Value, second: &Value| self.disjoint(first, second, depth + 1);
        if let Some(target) = first.get("$ref").and_then(Value::as_str) {
            return (self.first)(target).is_some_and(|first| apart(&first, second));
        }
        if let Some(branches) = branches(first, "anyOf") {
            return branches.iter().all(|branch| apart(branch, second));
        }
        let referred = second.get("$ref").and_then(Value::as_str).and_then(self.second);
        let unions = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| branches(second, keyword));
        referred.is_some_and(|second| apart(first, &second))
            || unions.into_iter().any(|union| union.iter().all(|branch| apart(first, branch)))
            || branches(second, "allOf").is_some_and(|parts| parts.iter().any(|part| apart(first, part)))
            || have_other_types(first, second)
            || have_other_literals(first, second)
            || lacks_a_required_property(first, second)
            || lacks_a_required_property(second, first)
            || have_disjoint_properties(first, second, &apart)
    }
}

fn branches<'a>(schema: &'a Value, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword)?.as_array()
}

fn have_other_types(first: &Value, second: &Value) -> bool {
    match (first.get("type"), second.get("type")) {
        (Some(first), Some(second)) => type_intersection(first, second).is_none(),
        _ => false,
    }
}

fn literals(schema: &Value) -> Option<Vec<&Value>> {
    let constant = schema.get("const").map(|value| vec![value]);
    constant.or_else(|| Some(schema.get("enum")?.as_array()?.iter().collect()))
}

fn have_other_literals(first: &Value, second: &Value) -> bool {
    match (literals(first), literals(second)) {
        (Some(first), Some(second)) => first.iter().all(|value| !second.contains(value)),
        _ => false,
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// The values are objects, and the first refuses a property that the second requires.
fn lacks_a_required_property(first: &Value, second: &Value) -> bool {
    first.get("additionalProperties") == Some(&Value::Bool(false))
        && share_only_objects(first, second)
        && required(second).any(|name| property(first, name).is_none())
}

fn have_disjoint_properties(first: &Value, second: &Value, apart: &dyn Fn(&Value, &Value) -> bool) -> bool {
    share_only_objects(first, second)
        && required(first).chain(required(second)).any(|name| {
            match (property(first, name), property(second, name)) {
                (Some(first), Some(second)) => apart(first, second),
                _ => false,
            }
        })
}

fn share_only_objects(first: &Value, second: &Value) -> bool {
    [first, second].iter().any(|schema| schema.get("type") == Some(&json!("object")))
}
