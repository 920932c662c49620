//! The arguments of a call: an object, and with the feature `validate` one that fits the tool's schema.
//!
//! Only what the model wrote is judged. Values that a tool gets from the graph are not in its schema.

use crate::error::Result;
use crate::json::RawJson;
use crate::message::{ToolInput, ToolUse};
use crate::tool::{ToolError, ToolSpec};

/// Checks that the arguments of a call are a JSON object.
pub(super) fn check_object(call: &ToolUse) -> Result<(), ToolError> {
    match &call.input {
        ToolInput::Json(json) if json.is_object() => Ok(()),
        ToolInput::Json(_) => Err(ToolError::invalid_arguments("they must be a JSON object")),
        ToolInput::Malformed(text) => {
            let why =
                RawJson::parse_text(text.as_str()).err().map(|error| error.to_string()).unwrap_or_default();
            Err(ToolError::invalid_arguments(format!("they are not JSON: {why}")))
        }
    }
}

/// A tool's schema, ready to check arguments.
#[cfg(feature = "validate")]
pub(super) struct SchemaCheck(jsonschema::Validator);

#[cfg(feature = "validate")]
impl SchemaCheck {
    pub(super) fn new(spec: &ToolSpec) -> Result<Self> {
        jsonschema::validator_for(&spec.input_schema).map(SchemaCheck).map_err(|error| {
            let message =
                format!("the schema of tool `{}` cannot be used to check arguments: {error}", spec.name);
            crate::error::Error::new(crate::error::Code::BadTool, message)
        })
    }

    pub(super) fn check(&self, input: &RawJson) -> Result<(), ToolError> {
        /// A model repairs all faults at once, if there are not too many to read.
        const SHOWN: usize = 8;
        let value: serde_json::Value = input.parse().map_err(ToolError::invalid_arguments)?;
        let faults: Vec<_> = self.0.iter_errors(&value).take(SHOWN).map(|fault| fault_text(&fault)).collect();
        if faults.is_empty() { Ok(()) } else { Err(ToolError::invalid_arguments(faults.join("; "))) }
    }
}

#[cfg(feature = "validate")]
fn fault_text(fault: &jsonschema::ValidationError<'_>) -> String {
    let place = fault.instance_path().to_string();
    if place.is_empty() { fault.to_string() } else { format!("at `{place}`: {fault}") }
}

/// Without the feature, a tool reads its arguments unchecked.
#[cfg(not(feature = "validate"))]
pub(super) struct SchemaCheck;

#[cfg(not(feature = "validate"))]
#[allow(clippy::unused_self, clippy::unnecessary_wraps)]
impl SchemaCheck {
    pub(super) fn new(_: &ToolSpec) -> Result<Self> {
        Ok(SchemaCheck)
    }

    pub(super) fn check(&self, _: &RawJson) -> Result<(), ToolError> {
        Ok(())
    }
}
