//! Objects: closed and, for OpenAI, with every property required.

use serde_json::{Value, json};

use super::{Check, Emitter, Fields, Place};
use crate::schema::SchemaProfile;
use crate::schema::fold::types;
use crate::schema::report::ObstacleKind;

impl Emitter<'_> {
    pub(super) fn object(&mut self, fields: &Fields, place: &Place, out: &mut Fields) {
        if !fields.get("type").is_some_and(|kind| types(kind).contains(&"object")) {
            return;
        }
        let properties = self.properties(fields, place);
        if self.profile == SchemaProfile::Gemini {
            return self.open_object(fields, properties, place, out);
        }
        if self.has_free_keys(fields, place) {
            self.obstacle(place, ObstacleKind::FreeKeys);
        }
        out.insert("required".to_owned(), self.required(fields, &properties, place));
        out.insert("properties".to_owned(), Value::Object(properties));
        out.insert("additionalProperties".to_owned(), json!(false));
    }

    fn properties(&mut self, fields: &Fields, place: &Place) -> Fields {
        let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties
            .map(|(name, schema)| (name.clone(), self.schema(schema, &place.named("properties", name))))
            .collect()
    }

    fn open_object(&mut self, fields: &Fields, properties: Fields, place: &Place, out: &mut Fields) {
        if !properties.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        if let Some(required) = fields.get("required") {
            out.insert("required".to_owned(), required.clone());
        }
        let rest = fields.get("additionalProperties").or_else(|| fields.get("unevaluatedProperties"));
        match rest {
            Some(Value::Bool(allowed)) => {
                out.insert("additionalProperties".to_owned(), json!(allowed));
            }
            Some(schema) => {
                let schema = self.schema(schema, &place.child("additionalProperties"));
                out.insert("additionalProperties".to_owned(), schema);
            }
            None => {}
        }
    }

    /// An object without any rule for its keys is free, except at the root, where it has no keys: the form of
    /// a struct without fields. So is one that requires a key which it does not describe.
    fn has_free_keys(&self, fields: &Fields, place: &Place) -> bool {
        match fields.get("additionalProperties").or_else(|| fields.get("unevaluatedProperties")) {
            Some(rest) => *rest != json!(false),
            None => {
                let properties = fields.get("properties");
                let is_known = |name: &Value| {
                    name.as_str().is_some_and(|name| properties.is_some_and(|all| all.get(name).is_some()))
                };
                let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
                (properties.is_none() && !place.at.is_empty()) || !required.into_iter().all(is_known)
            }
        }
    }

    fn required(&mut self, fields: &Fields, properties: &Fields, place: &Place) -> Value {
        let known = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        if self.profile != SchemaProfile::OpenAi {
            return Value::Array(known);
        }
        for (name, schema) in properties {
            if !known.iter().any(|required| required == name) && !has_default(fields, name) {
                let at = place.named("properties", name).at;
                self.checks.push(Check::Nullable { at, schema: schema.clone() });
            }
        }
        // The known ones first: their order is that of the type.
        let rest = properties.keys().map(|name| json!(name)).filter(|name| !known.contains(name));
        Value::Array(known.iter().cloned().chain(rest).collect())
    }
}

/// Whether the reader may as well be given the default.
fn has_default(fields: &Fields, name: &str) -> bool {
    let property = fields.get("properties").and_then(|properties| properties.get(name));
    property.is_some_and(|schema| schema.get("default").is_some_and(|default| !default.is_null()))
}
