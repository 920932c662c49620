//! Unexpected failures of the original: errors of its language and its database, which the responses quote.

use axum::http::StatusCode;
use serde_json::json;

use super::{Fault, NO_USER, RawError};

impl Fault {
    /// The original reads a field of `undefined` or `null`.
    pub(crate) fn reads_nothing(nothing: &str, field: &str) -> Self {
        let message = format!("Cannot read properties of {nothing} (reading '{field}')");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original's database refuses a value.
    pub(crate) fn database(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "QueryFailedError", message).kind("Query Failed")
    }

    /// The original's database refuses a null in a column of experiments.
    pub(crate) fn null_column(column: &str) -> Self {
        let fault = Self::database(format!(
            "null value in column \"{column}\" of relation \"experiment\" violates not-null constraint"
        ));
        fault.raw(RawError::Fields(Box::new(json!({
            "code": "23502",
            "column": column,
            "details": "Error in updating experiment document \"updateExperimentInDB\"",
            "table": "experiment",
            "type": "Query Failed",
        }))))
    }

    /// The original's database refuses a part of an experiment; the error names the place.
    pub(crate) fn repository(class: &str, function: &str, message: &str) -> Self {
        let fields = json!({ "className": class, "functionName": function, "type": "Query Failed" });
        Self::database(message).raw(RawError::Fields(Box::new(fields)))
    }

    /// The original iterates over a value that is not a list.
    pub(crate) fn no_list_to_add() -> Self {
        let details = "Error in adding segment in DB";
        let fields = json!({ "details": details, "type": "Query Failed" });
        Self::query(details).raw(RawError::Fields(Box::new(fields)))
    }

    /// An experiment up to 6.2 lacks parts of a kind. The original passes an empty list to its database, and
    /// reports that.
    pub(crate) fn no_parts(class: &str, function: &str, parts: &str, message: &str) -> Self {
        let fields = json!({
            "className": class,
            "functionName": function,
            "parameters": { parts: false },
            "type": "Query Failed",
        });
        Self::database(message).raw(RawError::Fields(Box::new(fields)))
    }

    /// The original's database refuses a value in an unguarded statement.
    pub(crate) fn unguarded_query(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "QueryFailedError", message)
    }

    /// The original throws a plain error.
    pub(crate) fn thrown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message)
    }

    /// The original catches an error and throws its own, which quotes it.
    pub(crate) fn within(&self, what: &str) -> Self {
        let message = format!("{what}: {}: {}", self.name, self.message);
        Self::thrown(message).kind("Query Failed")
    }

    /// A group that does not exist is excluded.
    pub(crate) fn no_group_to_exclude() -> Self {
        let column = "null value in column \"groupId\" of relation \"group_exclusion\"";
        Self::database(format!("{column} violates not-null constraint"))
    }

    /// The original iterates over `undefined`.
    pub(crate) fn no_object() -> Self {
        let message = "Cannot convert undefined or null to object";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original calls a value that is not a function.
    pub(crate) fn is_no_function(what: &str) -> Self {
        let message = format!("{what} is not a function");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original reads a field of `undefined` during an assignment.
    pub(crate) fn assignment_reads_nothing(field: &str) -> Self {
        Self::reads_nothing("undefined", field).kind("Error in the assignment algorithm")
    }

    /// A plain error that the original reports as a failed query.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::thrown(message).kind("Query Failed")
    }

    /// The original catches any error and reports an unknown student, with the reason as a text within a
    /// text.
    pub(crate) fn wrapped(&self) -> Self {
        let message = json!({ "type": NO_USER, "message": self.message }).to_string();
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind(NO_USER)
    }

    /// The original returns no response, which its framework turns into an error.
    pub(crate) fn nothing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", "").kind("Query Failed").raw(RawError::Nameless)
    }

    /// The original destructures `undefined`.
    pub(crate) fn destructures_nothing(field: &str) -> Self {
        let message =
            format!("Cannot destructure property '{field}' of '(intermediate value)' as it is null.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original writes a field of `undefined`.
    pub(crate) fn writes_nothing(nothing: &str, field: &str) -> Self {
        let message = format!("Cannot set properties of {nothing} (setting '{field}')");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// This server itself failed; the response says no more.
    pub(crate) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }
}
