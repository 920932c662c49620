//! How the original fails where it does not expect to: its language and its database speak, and the answer
//! quotes them.

use axum::http::StatusCode;
use serde_json::json;

use super::{Fault, NO_USER, RawError};

impl Fault {
    /// The original reads a field of nothing.
    pub(crate) fn reads_nothing(nothing: &str, field: &str) -> Self {
        let message = format!("Cannot read properties of {nothing} (reading '{field}')");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original's database refuses a value.
    pub(crate) fn database(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "QueryFailedError", message).kind("Query Failed")
    }

    /// The original's database refuses to have nothing in a column of experiments.
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

    /// The original's database refuses a part of an experiment; the error names where that was.
    pub(crate) fn repository(class: &str, function: &str, message: &str) -> Self {
        let fields = json!({ "className": class, "functionName": function, "type": "Query Failed" });
        Self::database(message).raw(RawError::Fields(Box::new(fields)))
    }

    /// The original makes a list of what is none.
    pub(crate) fn no_list_to_add() -> Self {
        let details = "Error in adding segment in DB";
        let fields = json!({ "details": details, "type": "Query Failed" });
        Self::query(details).raw(RawError::Fields(Box::new(fields)))
    }

    /// An experiment up to 6.2 has no parts of a kind. The original gives nothing to its database, and
    /// says so.
    pub(crate) fn no_parts(class: &str, function: &str, parts: &str, message: &str) -> Self {
        let fields = json!({
            "className": class,
            "functionName": function,
            "parameters": { parts: false },
            "type": "Query Failed",
        });
        Self::database(message).raw(RawError::Fields(Box::new(fields)))
    }

    /// The original's database refuses a value of a statement that nobody watches.
    pub(crate) fn unwatched(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "QueryFailedError", message)
    }

    /// The original throws a bare error.
    pub(crate) fn thrown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message)
    }

    /// The original catches a failure and throws one of its own that quotes it.
    pub(crate) fn within(&self, what: &str) -> Self {
        let message = format!("{what}: {}: {}", self.name, self.message);
        Self::thrown(message).kind("Query Failed")
    }

    /// A group is excluded that is none.
    pub(crate) fn no_group_to_exclude() -> Self {
        let column = "null value in column \"groupId\" of relation \"group_exclusion\"";
        Self::database(format!("{column} violates not-null constraint"))
    }

    /// The original goes through what is nothing.
    pub(crate) fn no_object() -> Self {
        let message = "Cannot convert undefined or null to object";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original calls what is none.
    pub(crate) fn is_no_function(what: &str) -> Self {
        let message = format!("{what} is not a function");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original reads a field of nothing while it assigns.
    pub(crate) fn assignment_reads_nothing(field: &str) -> Self {
        Self::reads_nothing("undefined", field).kind("Error in the assignment algorithm")
    }

    /// A bare error that the original calls a failed query.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::thrown(message).kind("Query Failed")
    }

    /// The original catches whatever goes wrong and says that the student is unknown, with the reason in
    /// a text in a text.
    pub(crate) fn wrapped(&self) -> Self {
        let message = json!({ "type": NO_USER, "message": self.message }).to_string();
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind(NO_USER)
    }

    /// The original answers nothing at all, of which its framework makes an error.
    pub(crate) fn nothing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", "").kind("Query Failed").raw(RawError::Nameless)
    }

    /// The original takes nothing apart.
    pub(crate) fn takes_nothing_apart(field: &str) -> Self {
        let message =
            format!("Cannot destructure property '{field}' of '(intermediate value)' as it is null.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original writes a field of nothing.
    pub(crate) fn writes_nothing(nothing: &str, field: &str) -> Self {
        let message = format!("Cannot set properties of {nothing} (setting '{field}')");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// This server itself failed; the caller learns no more than that.
    pub(crate) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }
}
