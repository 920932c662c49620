//! Schemas as OpenAI's strict mode takes them.

use serde_json::Value;

use crate::json::RawJson;
use crate::model::OutputSpec;
use crate::schema::{self, SchemaProfile};

/// A schema to send, and whether the server has to enforce it.
pub(super) struct Sent {
    pub(super) schema: RawJson,
    pub(super) strict: Option<bool>,
}

/// The schema of an answer. A strict one that OpenAI's subset cannot express is sent as a hint.
pub(super) fn answer(output: &OutputSpec, strict_subset: bool) -> Sent {
    if !output.strict || !strict_subset {
        return Sent { schema: output.schema.clone().into(), strict: Some(output.strict) };
    }
    let transformed = schema::transform(&output.schema, SchemaProfile::OpenAi);
    Sent { schema: transformed.schema.into(), strict: Some(transformed.is_strict) }
}

/// The schema of a tool's arguments.
pub(super) fn arguments(schema: &Value, strict: Option<bool>, strict_subset: bool) -> Sent {
    if strict != Some(true) || !strict_subset {
        return Sent { schema: schema.clone().into(), strict };
    }
    let transformed = schema::transform_arguments(schema, SchemaProfile::OpenAi);
    Sent { schema: transformed.schema.into(), strict: Some(transformed.is_strict) }
}
