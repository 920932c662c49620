//! The shape of an answer that is JSON.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema that an answer has to follow, for models with
/// [structured output](crate::Capabilities::structured_output).
///
/// The schema is that of the Rust type; each wire transforms it to what its provider accepts.
///
/// ```
/// use agentgraph_llm::OutputSpec;
///
/// #[derive(schemars::JsonSchema)]
/// struct Verdict {
///     is_spam: bool,
/// }
///
/// let spec = OutputSpec::of::<Verdict>();
/// assert_eq!(spec.name, "Verdict");
/// assert_eq!(spec.schema["properties"]["is_spam"]["type"], "boolean");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutputSpec {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// The JSON Schema.
    pub schema: Value,
    /// The answer must follow the schema exactly. Without it the schema is a hint.
    pub strict: bool,
}

impl OutputSpec {
    /// A schema with a name.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        OutputSpec { name: name.into(), schema, strict: true }
    }

    /// The schema of a type, under the type's name.
    pub fn of<T: JsonSchema>() -> Self {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
        let name: String = T::schema_name().chars().map(allowed).take(64).collect();
        OutputSpec::new(if name.is_empty() { "answer".to_owned() } else { name }, schema.to_value())
    }

    /// Makes the schema a hint.
    pub fn lenient(mut self) -> Self {
        self.strict = false;
        self
    }
}

fn allowed(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') { letter } else { '_' }
}
