//! The bad answers, in the words of the original.

use axum::http::StatusCode;
use serde_json::{Value, json};

const SHAPE: &str = "Parameter not in the correct format";

/// A bad answer, without what is the same in all of them.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    name: &'static str,
    message: String,
    kind: Option<&'static str>,
}

impl Fault {
    fn new(status: StatusCode, name: &'static str, message: impl Into<String>) -> Self {
        Self { status, name, message: message.into(), kind: None }
    }

    fn kind(self, kind: &'static str) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// The body is not one that the route takes. The original says so, and does not send the
    /// `errors` that it points at.
    pub(super) fn body() -> Self {
        Self::refused("Invalid body, check 'errors' property for more info.")
    }

    /// The path is not one that the route takes.
    pub(super) fn params() -> Self {
        Self::refused("Invalid params, check 'errors' property for more info.")
    }

    /// What follows the question mark is not what the route takes.
    pub(super) fn queries() -> Self {
        Self::refused("Invalid queries, check 'errors' property for more info.")
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed")
    }

    pub(super) fn unknown_context(name: &str) -> Self {
        Self::refused(format!("The app context \"{name}\" is not defined in CONTEXT_METADATA."))
    }

    pub(super) fn default_code() -> Self {
        Self::refused("'default' as ConditionCode is not allowed.")
    }

    fn refused(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequestError", message).kind(SHAPE)
    }

    /// The body is no JSON.
    pub(super) fn syntax(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SyntaxError", message)
    }

    pub(super) fn too_large() -> Self {
        let message = "request entity too large";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeError", message)
    }

    pub(super) fn no_user_header() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Error", "User-Id header not found.").kind(SHAPE)
    }

    pub(super) fn invalid_context(name: &str) -> Self {
        let message = format!("Invalid app context: {name}");
        Self::new(StatusCode::BAD_REQUEST, "Error", message).kind(SHAPE)
    }

    pub(super) fn unknown_user(id: &str) -> Self {
        let message = format!("User not found: {id}");
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Experiment user not defined")
    }

    pub(super) fn shared_point(user: &str) -> Self {
        let message =
            format!("Experiment ID not provided for shared Decision Point in markExperimentPoint: {user}");
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed")
    }

    pub(super) fn condition_not_found(code: &str) -> Self {
        let message = format!("Condition not found: {code}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message).kind("Condition not found")
    }

    pub(super) fn no_experiment() -> Self {
        let message = "Experiment not found!";
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed")
    }

    pub(super) fn nothing_to_delete() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", "Experiment not found.")
    }

    /// The original reads a field of nothing.
    pub(super) fn reads_nothing(nothing: &str, field: &str) -> Self {
        let message = format!("Cannot read properties of {nothing} (reading '{field}')");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original's database refuses a value.
    pub(super) fn database(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "QueryFailedError", message).kind("Query Failed")
    }

    /// The original's database refuses a value of a statement that nobody watches.
    pub(super) fn unwatched(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "QueryFailedError", message)
    }

    /// The original throws a bare error.
    pub(super) fn thrown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message)
    }

    /// The original catches a failure and throws one of its own that quotes it.
    pub(super) fn within(&self, what: &str) -> Self {
        let message = format!("{what}: {}: {}", self.name, self.message);
        Self::thrown(message).kind("Query Failed")
    }

    /// The original calls what is none.
    pub(super) fn is_no_function(what: &str) -> Self {
        let message = format!("{what} is not a function");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    pub(super) fn no_lists(side: &str) -> Self {
        let message = format!("{side} lists not found.");
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", message)
    }

    pub(super) fn no_segment() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", "Segment not found.")
    }

    /// The original throws this one without a name.
    pub(super) fn segment_name_is_taken(name: &str, context: &str) -> Self {
        let message = format!("Segment name {name} already exists in context {context}");
        Self::new(StatusCode::BAD_REQUEST, "", message).kind(SHAPE)
    }

    /// A design that the original serves and this server does not.
    pub(super) fn not_served(what: &str) -> Self {
        let message = format!("the embedded server does not serve {what}");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplementedError", message)
    }

    /// This server itself failed; the caller learns no more than that.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }

    /// The body: the request is echoed whole.
    pub(super) fn answer(&self, endpoint: &str, request: &Value) -> Value {
        let mut answer = json!({
            "message": self.message,
            "endPoint": endpoint,
            "errorCode": self.status.as_u16(),
            "request": request,
        });
        if !self.name.is_empty() {
            answer["name"] = json!(self.name);
        }
        if let Some(kind) = self.kind {
            answer["type"] = json!(kind);
        }
        answer
    }
}
