//! The error responses, in the words of the original: up to 6.2 it sent errors as they were, from 6.3 on in
//! one form.

mod failures;
mod findings;
mod requests;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::dialect::Dialect;
use super::validate::Complaint;

const SHAPE: &str = "Parameter not in the correct format";
const INVALID_TOKEN: &str = "Invalid token";
const NO_USER: &str = "Experiment user not defined";

/// An error response, without the parts that all of them share.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    name: &'static str,
    message: String,
    kind: Option<&'static str>,
    /// The findings of the validator on a body.
    errors: Option<Value>,
    raw: RawError,
}

/// The fields of an error that was sent as it was.
#[derive(Debug)]
enum RawError {
    /// None: an error of the language or of the database.
    Nothing,
    /// An error of the web framework, with its name.
    Named,
    /// An error of the web framework without a name.
    Nameless,
    /// An error of the other framework in use.
    Nested,
    /// An error with the type that the original gave it.
    Typed(&'static str),
    /// An error of a library, with the type that the original gave it.
    Thrown(&'static str),
    /// These fields.
    Fields(Box<Value>),
}

impl Fault {
    fn new(status: StatusCode, name: &'static str, message: impl Into<String>) -> Self {
        Self { status, name, message: message.into(), kind: None, errors: None, raw: RawError::Nothing }
    }

    fn raw(self, raw: RawError) -> Self {
        Self { raw, ..self }
    }

    /// Adds the findings of the validator.
    pub(super) fn with(self, complaints: &[Complaint]) -> Self {
        Self { errors: Some(complaints.iter().map(Complaint::to_json).collect()), ..self }
    }

    fn kind(self, kind: &'static str) -> Self {
        Self { kind: Some(kind), ..self }
    }

    fn refused(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequestError", message).kind(SHAPE).raw(RawError::Named)
    }

    /// The body.
    pub(crate) fn answer(&self, dialect: Dialect, endpoint: &str, request: &Value) -> Value {
        if dialect == Dialect::V62 { self.as_it_is() } else { self.in_form(endpoint, request) }
    }

    /// The request is repeated in full; the findings are left out.
    fn in_form(&self, endpoint: &str, request: &Value) -> Value {
        let mut answer = json!({
            "message": self.message,
            "endPoint": endpoint,
            "errorCode": self.status.as_u16(),
        });
        if !request.is_null() {
            answer["request"] = request.clone();
        }
        if !self.name.is_empty() {
            answer["name"] = json!(self.name);
        }
        if let Some(kind) = self.kind {
            answer["type"] = json!(kind);
        }
        answer
    }

    fn as_it_is(&self) -> Value {
        let code = self.status.as_u16();
        match &self.raw {
            RawError::Nothing => json!({}),
            RawError::Named => {
                let mut answer = json!({ "httpCode": code, "name": self.name, "message": self.message });
                if let Some(errors) = &self.errors {
                    answer["errors"] = errors.clone();
                }
                answer
            }
            RawError::Nameless => json!({ "httpCode": code, "message": self.message }),
            RawError::Nested => json!({
                "response": { "message": self.message, "error": "Not Found", "statusCode": code },
                "status": code,
                "options": {},
                "message": self.message,
                "name": self.name,
            }),
            RawError::Typed(kind) if self.status.is_server_error() => json!({ "type": kind }),
            RawError::Typed(kind) => json!({ "type": kind, "httpCode": code }),
            RawError::Thrown(kind) => {
                json!({ "name": self.name, "message": self.message, "type": kind, "httpCode": code })
            }
            RawError::Fields(fields) => Value::clone(fields),
        }
    }
}
