//! The schema of a tool's arguments, built one by one.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::Access;
use crate::tool::ToolSpec;

/// The schema of a tool's arguments. It allows no others.
pub struct ArgumentsSchema {
    generator: SchemaGenerator,
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl Default for ArgumentsSchema {
    fn default() -> Self {
        ArgumentsSchema::new()
    }
}

impl ArgumentsSchema {
    /// A schema without arguments.
    pub fn new() -> Self {
        ArgumentsSchema {
            generator: SchemaSettings::draft2020_12().into_generator(),
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// Adds an argument, required unless its type has a value for nothing.
    pub fn argument<T>(mut self, access: Access<T>, name: &'static str, docs: &[&str]) -> Self {
        if !access.is_optional() {
            self.required.push(name);
        }
        self.add(access, name, docs, None);
        self
    }

    /// Adds an argument with a default.
    pub fn argument_or<T: Serialize>(
        mut self,
        access: Access<T>,
        name: &'static str,
        docs: &[&str],
        default: impl FnOnce() -> T,
    ) -> Self {
        self.add(access, name, docs, serde_json::to_value(default()).ok());
        self
    }

    fn add<T>(&mut self, access: Access<T>, name: &'static str, docs: &[&str], default: Option<Value>) {
        let mut schema = (access.schema)(&mut self.generator);
        let fields = schema.ensure_object();
        let docs = text(docs);
        if !docs.is_empty() {
            fields.insert("description".to_owned(), docs.into());
        }
        if let Some(default) = default {
            fields.insert("default".to_owned(), default);
        }
        self.properties.insert(name.to_owned(), schema.to_value());
    }

    /// The description of the tool.
    pub fn into_spec(mut self, name: &str, docs: &[&str], strict: bool) -> ToolSpec {
        let mut schema = json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": false,
        });
        let definitions = self.generator.take_definitions(true);
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        let spec = ToolSpec::new(name, text(docs), schema);
        if strict { spec.strict() } else { spec }
    }
}

/// The text of a doc comment: its lines without the space after the slashes.
fn text(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().flat_map(|line| line.split('\n')).collect();
    let lines = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
