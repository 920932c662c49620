//! JSON Schemas in the form that each provider accepts.
//!
//! `schemars` writes plain JSON Schema. Providers that enforce a schema while the model writes accept only a
//! part of it, and each another part. [`transform`] rewrites a schema for one [`SchemaProfile`] and reports
//! each difference: a rule that moved into a description is in [`Transformed::unenforced`], and a schema that
//! the profile cannot express is sent as it is, without strictness, with the reasons in
//! [`Transformed::obstacles`].
//!
//! | | [`OpenAi`](SchemaProfile::OpenAi) | [`Anthropic`](SchemaProfile::Anthropic) | [`Gemini`](SchemaProfile::Gemini) |
//! |---|---|---|---|
//! | objects without free keys | closed | closed | as they are |
//! | free keys (maps) | obstacle | obstacle | kept |
//! | optional properties | required; must be nullable or have a default | kept | kept |
//! | `oneOf` | `anyOf` | `anyOf` | `anyOf` |
//! | `allOf`, `$ref` with siblings, unions with siblings | folded | folded | folded |
//! | recursion | kept | obstacle | kept; a property that recurs is not required |
//! | any value (`{}`) | obstacle | obstacle | kept |
//! | tuples | arrays if all elements are alike, else obstacle | obstacle | kept |
//! | numeric bounds | kept | described | `minimum` and `maximum` kept |
//! | array bounds | kept | `minItems` 0 and 1 kept | kept |
//! | `pattern` | kept | described | described |
//! | lengths, `uniqueItems`, unknown formats, defaults | described | described | described |
//!
//! Strictness grows in three ways only: a closed object refuses unknown keys; for OpenAI each property has to
//! be written, also one that equals its default; and rules for properties or elements imply the type, which
//! plain JSON Schema lets open.

mod describe;
mod emit;
mod fold;
mod refs;
mod report;
mod rules;
mod wrap;

use serde_json::Value;

pub use report::{Obstacle, ObstacleKind, Unenforced};

use emit::Emitter;

/// The name of the property that holds a value which is not an object.
pub const WRAPPER: &str = "value";

/// A part of JSON Schema that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaProfile {
    /// Any JSON Schema: nothing is rewritten, except that the root becomes an object. Never strict.
    Plain,
    /// OpenAI's strict mode.
    OpenAi,
    /// Anthropic's `output_config.format` and strict tools.
    Anthropic,
    /// Gemini's `responseJsonSchema` and `parametersJsonSchema`.
    Gemini,
}

/// A schema for one provider, and how it differs from the original.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Transformed {
    /// The schema to send. Its root is an object.
    pub schema: Value,
    /// Whether the schema describes `{"value": ..}` because the value itself is not an object. See
    /// [`unwrap_value`](Self::unwrap_value).
    pub wraps_value: bool,
    /// Whether the provider can enforce the schema. If not, `schema` is the plain one, to be sent without
    /// strictness.
    pub is_strict: bool,
    /// The rules that the schema no longer holds. Each is in a description, and has to be checked by the
    /// reader.
    pub unenforced: Vec<Unenforced>,
    /// The reasons why the schema is not strict.
    pub obstacles: Vec<Obstacle>,
}

impl Transformed {
    /// The value in an answer that follows the schema: the content of `{"value": ..}` if the schema wraps it.
    ///
    /// ```
    /// use agentgraph_llm::schema::{self, SchemaProfile};
    /// use serde_json::json;
    ///
    /// let numbers = schema::transform(&json!({"type": "array", "items": {"type": "integer"}}), SchemaProfile::OpenAi);
    /// assert_eq!(numbers.schema["required"], json!(["value"]));
    /// assert_eq!(numbers.unwrap_value(json!({"value": [1, 2]})), json!([1, 2]));
    /// ```
    pub fn unwrap_value(&self, answer: Value) -> Value {
        match answer {
            Value::Object(mut fields) if self.wraps_value && fields.len() == 1 => {
                fields.remove(WRAPPER).unwrap_or(Value::Object(fields))
            }
            answer => answer,
        }
    }
}

/// Rewrites the schema of an answer. A root that is not an object is wrapped.
///
/// ```
/// use agentgraph_llm::schema::{self, SchemaProfile};
/// use schemars::JsonSchema;
/// use serde_json::json;
///
/// #[derive(JsonSchema)]
/// struct City {
///     name: String,
///     population: Option<u32>,
/// }
///
/// let city = schema::transform(&schemars::schema_for!(City).to_value(), SchemaProfile::OpenAi);
/// assert!(city.is_strict && !city.wraps_value);
/// assert_eq!(city.schema["required"], json!(["name", "population"]));
/// assert_eq!(city.schema["additionalProperties"], json!(false));
///
/// let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
/// let map = schema::transform(&map, SchemaProfile::OpenAi);
/// assert!(!map.is_strict);
/// assert_eq!(map.obstacles[0].to_string(), "at the root: an object with free keys");
/// ```
pub fn transform(schema: &Value, profile: SchemaProfile) -> Transformed {
    let plain = || plain(schema);
    if profile == SchemaProfile::Plain {
        return plain();
    }
    let mut emitter = Emitter::new(schema, profile);
    let strict = emitter.run();
    let (obstacles, unenforced) = emitter.into_report();
    if !obstacles.is_empty() {
        return Transformed { obstacles, ..plain() };
    }
    let wraps_value = !wrap::is_object(&strict);
    let schema = if wraps_value { wrap::wrapped(strict) } else { strict };
    Transformed { schema, wraps_value, is_strict: true, unenforced, obstacles }
}

/// Rewrites the schema of a tool's arguments. They are an object already, so nothing is wrapped; a union of
/// objects, which a strict provider refuses at the root, is an obstacle.
///
/// ```
/// use agentgraph_llm::schema::{self, SchemaProfile};
/// use serde_json::json;
///
/// let no_arguments = schema::transform_arguments(&json!({"type": "object"}), SchemaProfile::OpenAi);
/// assert!(no_arguments.is_strict);
/// assert_eq!(
///     no_arguments.schema,
///     json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
/// );
/// ```
pub fn transform_arguments(schema: &Value, profile: SchemaProfile) -> Transformed {
    let transformed = transform(schema, profile);
    if !transformed.wraps_value {
        return transformed;
    }
    let schema = wrap::without_dialect(schema);
    let mut obstacles = transformed.obstacles;
    obstacles.push(Obstacle::new("", ObstacleKind::NotAnObject));
    Transformed { schema, wraps_value: false, is_strict: false, unenforced: Vec::new(), obstacles }
}

/// The schema as that of an object which no profile wraps, and whether it was wrapped for that.
pub(crate) fn as_object(schema: &Value) -> (Value, bool) {
    let schema = wrap::without_dialect(schema);
    let is_union = ["anyOf", "oneOf", "allOf"].iter().any(|keyword| schema.get(keyword).is_some());
    match is_union || !wrap::is_object(&schema) {
        true => (wrap::wrapped(schema), true),
        false => (schema, false),
    }
}

fn plain(schema: &Value) -> Transformed {
    let schema = wrap::without_dialect(schema);
    let wraps_value = !wrap::is_object(&schema);
    let schema = if wraps_value { wrap::wrapped(schema) } else { schema };
    Transformed { schema, wraps_value, is_strict: false, unenforced: Vec::new(), obstacles: Vec::new() }
}
