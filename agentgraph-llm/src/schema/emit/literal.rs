//! `enum` and `const`.

use serde_json::{Value, json};

use super::{Emitter, Fields, Place};
use crate::schema::SchemaProfile;
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
            match fields.get(keyword) {
                None => {}
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

fn is_simple(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(|value| !value.is_array() && !value.is_object()),
        Value::Object(_) => false,
        _ => true,
    }
}
