//! Arrays and tuples.

use serde_json::{Value, json};

use super::{Emitter, Fields, Place};
use crate::schema::SchemaProfile;
use crate::schema::fold::types;
use crate::schema::report::ObstacleKind;

impl Emitter<'_> {
    pub(super) fn array(&mut self, fields: &Fields, place: &Place, out: &mut Fields) {
        if !fields.get("type").is_some_and(|kind| types(kind).contains(&"array")) {
            return;
        }
        let prefix = fields.get("prefixItems").and_then(Value::as_array);
        match (prefix, self.profile) {
            (Some(prefix), SchemaProfile::Gemini) => {
                let places = prefix.iter().enumerate();
                let prefix: Vec<_> = places
                    .map(|(at, item)| self.schema(item, &place.child(&format!("prefixItems/{at}"))))
                    .collect();
                out.insert("prefixItems".to_owned(), Value::Array(prefix));
                if let Some(items @ Value::Object(_)) = fields.get("items") {
                    let items = self.schema(items, &place.child("items"));
                    out.insert("items".to_owned(), items);
                }
            }
            (Some(prefix), SchemaProfile::OpenAi) if is_uniform(prefix, fields) => {
                let items = self.schema(&prefix[0], &place.child("prefixItems/0"));
                out.insert("items".to_owned(), items);
            }
            (Some(_), _) => self.obstacle(place, ObstacleKind::Tuple),
            (None, _) => self.items(fields, place, out),
        }
    }

    fn items(&mut self, fields: &Fields, place: &Place, out: &mut Fields) {
        match fields.get("items") {
            Some(items) => {
                let items = self.schema(items, &place.child("items"));
                out.insert("items".to_owned(), items);
            }
            None if self.profile == SchemaProfile::Gemini => {}
            None => self.obstacle(place, ObstacleKind::AnyValue),
        }
    }
}

/// A tuple of a fixed length whose elements all have the same schema.
fn is_uniform(prefix: &[Value], fields: &Fields) -> bool {
    let length = Some(&json!(prefix.len()));
    !prefix.is_empty()
        && prefix.iter().all(|item| *item == prefix[0])
        && fields.get("maxItems") == length
        && fields.get("minItems") == length
}
