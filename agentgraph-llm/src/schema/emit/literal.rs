//! `enum` and `const`.

use serde_json::{Value, json};

use super::node::type_of;
use super::{Emitter, Fields, Place};
use crate::schema::SchemaProfile;
use crate::schema::fold::types;
use crate::schema::report::ObstacleKind;

impl Emitter<'_> {
    pub(super) fn literals(
        &mut self,
        fields: &Fields,
        place: &Place,
        out: &mut Fields,
        told: &mut Vec<String>,
    ) {
        for keyword in ["const", "enum"] {
            let value = fields.get(keyword).map(|value| of_type(value, keyword, fields.get("type")));
            match &value {
                None => {}
                Some(Value::Array(values)) if values.is_empty() => {
                    self.obstacle(place, ObstacleKind::NoValue);
                }
                Some(value) if self.profile == SchemaProfile::Gemini => {
                    self.gemini_literal(keyword, value, place, out, told);
                }
                Some(value) if is_simple(value) => {
                    out.insert(keyword.to_owned(), value.clone());
                }
                Some(_) => self.obstacle(place, ObstacleKind::Keyword(keyword.to_owned())),
            }
        }
    }

    /// Gemini has no `const`, and an `enum` of strings and numbers only.
    fn gemini_literal(
        &mut self,
        keyword: &str,
        value: &Value,
        place: &Place,
        out: &mut Fields,
        told: &mut Vec<String>,
    ) {
        let values = match (keyword, value) {
            ("enum", Value::Array(values)) => values.clone(),
            (_, value) => vec![value.clone()],
        };
        match &values[..] {
            // The type says it all.
            [Value::Null] => {}
            values if values.iter().all(|value| value.is_string() || value.is_number()) => {
                out.insert("enum".to_owned(), json!(values));
            }
            _ => self.describe(keyword, value, place, told),
        }
    }
}

/// The values of an `enum` that the type allows. A dialect may leave out a type beside literals.
fn of_type(value: &Value, keyword: &str, kind: Option<&Value>) -> Value {
    match (keyword, value, kind) {
        ("enum", Value::Array(values), Some(kind)) => {
            let kinds = types(kind);
            values.iter().filter(|value| is_one_of(value, &kinds)).cloned().collect()
        }
        ("const", value, Some(kind)) if !is_one_of(value, &types(kind)) => Value::Array(Vec::new()),
        _ => value.clone(),
    }
}

fn is_one_of(value: &Value, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| match *kind {
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        kind => kind == type_of(value),
    })
}

fn is_simple(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(|value| !value.is_array() && !value.is_object()),
        Value::Object(_) => false,
        _ => true,
    }
}
