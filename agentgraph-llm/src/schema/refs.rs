//! References within a schema.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// The schema at a reference such as `#/$defs/Node`.
pub(super) fn resolve<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(&decoded(target.strip_prefix('#')?))
}

/// The name that stands for the root among the definitions. No definition has it: in a reference, `#` is
/// encoded.
pub(super) const ROOT: &str = "#";

/// The name in a reference to a definition; `None` for a reference to any other place.
pub(super) fn definition_name(target: &str) -> Option<String> {
    let name = target.strip_prefix("#/$defs/").or_else(|| target.strip_prefix("#/definitions/"))?;
    (!name.contains('/')).then(|| decoded(name).replace("~1", "/").replace("~0", "~"))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// The names of the definitions that a schema refers to. A reference to another place counts as one to the
/// root.
pub(super) fn references(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(schema, false, &mut found);
    found
}

/// The same without properties that are not required.
pub(super) fn required_references(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(schema, true, &mut found);
    found
}

fn collect(schema: &Value, only_required: bool, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                found.insert(definition_name(target).unwrap_or_else(|| ROOT.to_owned()));
            }
            for (keyword, value) in fields {
                match value {
                    Value::Object(properties) if only_required && keyword == "properties" => {
                        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
                        let names = required.filter_map(Value::as_str);
                        names
                            .filter_map(|name| properties.get(name))
                            .for_each(|value| collect(value, true, found));
                    }
                    value => collect(value, only_required, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, only_required, found)),
        _ => {}
    }
}

/// The definitions that each definition, and the root, can reach.
pub(super) struct Reach(BTreeMap<String, BTreeSet<String>>);

impl Reach {
    pub(super) fn of(
        root: &Value,
        definitions: &Map<String, Value>,
        references: fn(&Value) -> BTreeSet<String>,
    ) -> Self {
        let mut direct = BTreeMap::from([(ROOT.to_owned(), references(root))]);
        for (name, schema) in definitions {
            direct.insert(name.clone(), references(schema));
        }
        let closure = |start: &str| {
            let mut reached = BTreeSet::new();
            let mut open = vec![start.to_owned()];
            while let Some(next) = open.pop() {
                for target in direct.get(&next).into_iter().flatten() {
                    if reached.insert(target.clone()) {
                        open.push(target.clone());
                    }
                }
            }
            reached
        };
        Reach(direct.keys().map(|name| (name.clone(), closure(name))).collect())
    }

    pub(super) fn reaches(&self, from: &str, to: &str) -> bool {
        self.0.get(from).is_some_and(|reached| reached.contains(to))
    }

    /// The definitions that contain themselves.
    pub(super) fn recursive(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(name, reached)| reached.contains(*name)).map(|(name, _)| name.as_str())
    }
}
