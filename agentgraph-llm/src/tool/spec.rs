//! The description of a tool for the model.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::error::{Code, Error, Result};
use crate::json::{Extra, RawJson};
use crate::shared::shared;

/// The description of a tool for the model. A clone shares its [fields](ToolFields) until one of the two is
/// changed.
#[derive(Clone, PartialEq)]
pub struct ToolSpec(Arc<ToolFields>);

/// The fields of a [`ToolSpec`], which dereferences to them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolFields {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// The purpose of the tool, and when to use it.
    pub description: String,
    /// The JSON Schema of the arguments, which are an object.
    pub input_schema: Value,
    /// Whether the arguments must follow the schema exactly; `None` for the provider's default.
    pub strict: Option<bool>,
    /// Further fields of the provider's form of a tool, such as Anthropic's `cache_control`.
    pub extra: Extra,
    /// A tool of the provider's own, sent as it is instead of all else. The provider runs it.
    pub raw: Option<RawJson>,
}

shared!(ToolSpec, ToolFields);

impl ToolSpec {
    /// A tool with an explicit schema.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Self {
        ToolFields {
            name: name.into(),
            description: description.into(),
            input_schema,
            strict: None,
            extra: Extra::new(),
            raw: None,
        }
        .into()
    }

    /// A tool that the provider runs itself, such as a web search, in the provider's own words.
    ///
    /// ```
    /// use agentgraph_llm::ToolSpec;
    /// use serde_json::json;
    ///
    /// let search = ToolSpec::server("web_search", json!({"type": "web_search_20250305", "name": "web_search"}));
    /// assert!(search.raw.is_some());
    /// ```
    pub fn server(name: impl Into<String>, raw: impl Into<RawJson>) -> Self {
        let mut spec = ToolSpec::new(name, "", Value::Null);
        spec.raw = Some(raw.into());
        spec
    }

    /// Requires arguments that follow the schema exactly.
    pub fn strict(mut self) -> Self {
        self.strict = Some(true);
        self
    }

    /// Sets a further field of the provider's form of a tool.
    pub fn with_extra(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.extra.insert(name, value);
        self
    }

    /// A tool with arguments of type `Args`. Doc comments become descriptions.
    ///
    /// ```
    /// use agentgraph_llm::ToolSpec;
    ///
    /// #[derive(schemars::JsonSchema)]
    /// struct Weather {
    ///     /// A town, in English.
    ///     city: String,
    /// }
    ///
    /// let spec = ToolSpec::of::<Weather>("weather", "The weather of today.");
    /// assert_eq!(spec.input_schema["properties"]["city"]["description"], "A town, in English.");
    /// assert_eq!(spec.input_schema["required"][0], "city");
    /// ```
    pub fn of<Args: JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Args>();
        ToolSpec::new(name, description, arguments_schema(schema.to_value()))
    }

    /// Checks the name and the schema against the rules of providers.
    pub(crate) fn check(&self) -> Result<()> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(allowed) {
            let message = format!(
                "the tool name `{}` cannot be sent: use 1 to 64 letters, digits, `_` or `-`",
                self.name
            );
            return Err(Error::new(Code::BadTool, message));
        }
        if self.raw.is_none() && self.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            let message = format!(
                "the arguments of tool `{}` are not an object: make them a struct with named fields, or set \
                 `\"type\": \"object\"` in the schema",
                self.name
            );
            return Err(Error::new(Code::BadTool, message));
        }
        Ok(())
    }
}

/// Removes the parts of a schema that describe the Rust type. Adds empty `properties` to a type without
/// fields, because some servers require them.
fn arguments_schema(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        if object.get("type").and_then(Value::as_str) == Some("object") {
            object.entry("properties").or_insert_with(|| json!({}));
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    struct NoArguments {}

    #[test]
    fn the_schema_of_no_arguments_is_an_object_without_properties() {
        let spec = ToolSpec::of::<NoArguments>("now", "The time.");
        assert_eq!(spec.input_schema, json!({"type": "object", "properties": {}}));
        assert!(spec.check().is_ok());
    }

    #[test]
    fn invalid_tool_names_and_schemas_are_errors() {
        let object = json!({"type": "object"});
        for name in ["", "with space", "naïve", &"x".repeat(65)] {
            assert!(ToolSpec::new(name, "", object.clone()).check().is_err(), "{name}");
        }
        let error = ToolSpec::of::<u8>("count", "").check().unwrap_err();
        assert_eq!(error.code(), Code::BadTool);
        assert!(error.message().contains("struct with named fields"), "{error}");
    }
}
