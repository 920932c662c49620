//! The root of a schema: an object, or wrapped in one.

use serde_json::{Map, Value, json};

use super::WRAPPER;

/// Whether every value of the schema is an object, in a form that all providers accept at the root.
pub(super) fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object") && schema.get("anyOf").is_none()
}

/// The schema without `$schema`, which some providers refuse.
pub(super) fn without_dialect(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
    }
    schema
}

/// The schema of `{"value": ..}`. The definitions stay at the root, where references expect them. A schema
/// that refers to its own root becomes a definition.
pub(super) fn wrapped(mut schema: Value) -> Value {
    let mut definitions = Map::new();
    if let Some(fields) = schema.as_object_mut() {
        for keyword in ["$defs", "definitions"] {
            if let Some(Value::Object(kept)) = fields.remove(keyword) {
                definitions.insert(keyword.to_owned(), Value::Object(kept));
            }
        }
    }
    let mut root = definitions;
    let name = unused_name(&root);
    let mut moved = move_references(&mut schema, &name);
    for definition in root.values_mut() {
        moved |= move_references(definition, &name);
    }
    if moved {
        let own = root.entry("$defs").or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            own.insert(name.clone(), schema);
        }
        schema = json!({"$ref": format!("#/$defs/{name}")});
    }
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), json!({ WRAPPER: schema }));
    root.insert("required".to_owned(), json!([WRAPPER]));
    root.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(root)
}

fn unused_name(root: &Map<String, Value>) -> String {
    let mut name = "Value".to_owned();
    while root.values().any(|definitions| definitions.get(&name).is_some()) {
        name.push('_');
    }
    name
}

/// References to the root, and to places that are not definitions, follow the schema to its new place.
/// Returns whether there was one.
fn move_references(schema: &mut Value, name: &str) -> bool {
    match schema {
        Value::Object(fields) => {
            let mut moved = false;
            if let Some(Value::String(target)) = fields.get_mut("$ref")
                && let Some(path) = target.strip_prefix('#')
                && !path.starts_with("/$defs/")
                && !path.starts_with("/definitions/")
            {
                *target = format!("#/$defs/{name}{path}");
                moved = true;
            }
            fields.values_mut().fold(moved, |moved, value| move_references(value, name) | moved)
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |moved, item| move_references(item, name) | moved)
        }
        _ => false,
    }
}
