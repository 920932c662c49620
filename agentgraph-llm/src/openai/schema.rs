//! Schemas as OpenAI's strict mode takes them.

use serde_json::Value;

use crate::json::RawJson;
use crate::model::OutputSpec;

/// A schema to send, and whether the server has to enforce it.
pub(super) struct Sent {
    pub(super) schema: RawJson,
    pub(super) strict: Option<bool>,
}

/// The schema of an answer.
pub(super) fn answer(output: &OutputSpec, _strict_subset: bool) -> Sent {
    Sent { schema: output.schema.clone().into(), strict: Some(output.strict) }
}

/// The schema of a tool's arguments.
pub(super) fn arguments(schema: &Value, strict: Option<bool>, _strict_subset: bool) -> Sent {
    Sent { schema: schema.clone().into(), strict }
}
