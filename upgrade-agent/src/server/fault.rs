//! The bad answers, in the words of the original: up to 6.2 it sent its errors as they were, from 6.3
//! on a form that is the same for all of them.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::token::Refused;
use super::validate::Complaint;
use crate::client::Dialect;

const SHAPE: &str = "Parameter not in the correct format";
const NOBODY: &str = "User ID not found";
const NO_TOKEN: &str = "Token is not present in request";
const NOT_VALID: &str = "JWT Token validation failed";
const INVALID_TOKEN: &str = "Invalid token";
const NO_USER: &str = "Experiment user not defined";
const NO_CONDITION: &str = "Condition not found";
const SHARED: &str = "Experiment ID not provided for shared Decision Point";

/// A bad answer, without what is the same in all of them.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    name: &'static str,
    message: String,
    kind: Option<&'static str>,
    /// What is wrong with a body, as the validator tells it.
    errors: Option<Value>,
    raw: Raw,
}

/// What an error showed of itself where it was sent as it was.
#[derive(Debug)]
enum Raw {
    /// Nothing: an error of the language or of the database.
    Nothing,
    /// An error of the web framework, with its name.
    Named,
    /// One without.
    Nameless,
    /// One of the other framework that is in use there.
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
        Self { status, name, message: message.into(), kind: None, errors: None, raw: Raw::Nothing }
    }

    fn raw(self, raw: Raw) -> Self {
        Self { raw, ..self }
    }

    /// With what is wrong.
    pub(super) fn with(self, complaints: &[Complaint]) -> Self {
        Self { errors: Some(complaints.iter().map(Complaint::told).collect()), ..self }
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
        Self::new(StatusCode::BAD_REQUEST, "BadRequestError", message).kind(SHAPE).raw(Raw::Named)
    }

    /// An administrator shows no token that stands for an account.
    pub(super) fn unauthorized(method: &str, endpoint: &str) -> Self {
        let message = format!("Authorization is required for request on {method} {endpoint}");
        let fault = Self::new(StatusCode::UNAUTHORIZED, "AuthorizationRequiredError", message);
        fault.kind(NOBODY).raw(Raw::Named)
    }

    /// An application shows no token.
    pub(super) fn no_token() -> Self {
        let message = "Token is not present in request header from client";
        let fault = Self::new(StatusCode::UNAUTHORIZED, "Error", message);
        fault.kind(NO_TOKEN).raw(Raw::Typed(NO_TOKEN))
    }

    /// An application shows a token that is not taken.
    pub(super) fn token(why: &Refused) -> Self {
        let (name, message, kind, raw) = match why {
            Refused::Malformed(what) => ("JsonWebTokenError", *what, NOBODY, Raw::Thrown(NOT_VALID)),
            Refused::Forged => {
                ("JsonWebTokenError", "invalid signature", INVALID_TOKEN, Raw::Thrown(INVALID_TOKEN))
            }
            Refused::Expired => {
                ("TokenExpiredError", "jwt expired", INVALID_TOKEN, Raw::Thrown(INVALID_TOKEN))
            }
            Refused::Early => ("NotBeforeError", "jwt not active", NOBODY, Raw::Thrown(NOT_VALID)),
            Refused::Foreign => {
                ("Error", "Provided token is invalid", INVALID_TOKEN, Raw::Typed(INVALID_TOKEN))
            }
        };
        Self::new(StatusCode::UNAUTHORIZED, name, message).kind(kind).raw(raw)
    }

    /// The body is no JSON.
    pub(super) fn syntax(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SyntaxError", message)
    }

    /// The same, with the body.
    pub(super) fn unparsed(message: impl Into<String>, text: &str) -> Self {
        Self::syntax(message).exposed(json!({ "body": text, "type": "entity.parse.failed" }))
    }

    /// With what the web framework says of itself where it may be known.
    fn exposed(self, mut fields: Value) -> Self {
        let code = self.status.as_u16();
        fields["expose"] = json!(true);
        fields["statusCode"] = json!(code);
        fields["status"] = json!(code);
        self.raw(Raw::Fields(Box::new(fields)))
    }

    /// The body has more bytes than are taken.
    pub(super) fn too_large(limit: usize, length: Option<u64>) -> Self {
        let message = "request entity too large";
        let mut fields = json!({ "limit": limit, "type": "entity.too.large" });
        if let Some(length) = length {
            fields["expected"] = json!(length);
            fields["length"] = json!(length);
        }
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeError", message).exposed(fields)
    }

    /// The body is in letters that nobody reads here.
    pub(super) fn unknown_charset(name: &str) -> Self {
        let message = format!("unsupported charset \"{}\"", name.to_uppercase());
        Self::unsupported(message).exposed(json!({ "charset": name, "type": "charset.unsupported" }))
    }

    /// The body is packed.
    pub(super) fn unknown_encoding(name: &str) -> Self {
        let message = format!("unsupported content encoding \"{name}\"");
        Self::unsupported(message).exposed(json!({ "encoding": name, "type": "encoding.unsupported" }))
    }

    fn unsupported(message: String) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeError", message)
    }

    /// A part of the path is escaped badly.
    pub(super) fn garbled(part: &str) -> Self {
        let message = format!("Failed to decode param '{part}'");
        let code = StatusCode::BAD_REQUEST.as_u16();
        let fields = json!({ "statusCode": code, "status": code });
        Self::new(StatusCode::BAD_REQUEST, "URIError", message).raw(Raw::Fields(Box::new(fields)))
    }

    /// A page of another site calls.
    pub(super) fn stranger(page: &str) -> Self {
        Self::thrown(format!("Request from unauthorized origin: {page}"))
    }

    pub(super) fn no_user_header() -> Self {
        let fault = Self::new(StatusCode::BAD_REQUEST, "Error", "User-Id header not found.").kind(SHAPE);
        fault.raw(Raw::Typed("Missing `User-Id` header"))
    }

    pub(super) fn invalid_context(name: &str) -> Self {
        let message = format!("Invalid app context: {name}");
        Self::new(StatusCode::BAD_REQUEST, "Error", message)
            .kind(SHAPE)
            .raw(Raw::Typed("Invalid app context"))
    }

    pub(super) fn unknown_user(id: &str) -> Self {
        let message = format!("User not found: {id}");
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind(NO_USER).raw(Raw::Typed(NO_USER))
    }

    pub(super) fn shared_point(user: &str) -> Self {
        let message =
            format!("Experiment ID not provided for shared Decision Point in markExperimentPoint: {user}");
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed").raw(Raw::Typed(SHARED))
    }

    pub(super) fn condition_not_found(code: &str) -> Self {
        let message = format!("Condition not found: {code}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message)
            .kind(NO_CONDITION)
            .raw(Raw::Typed(NO_CONDITION))
    }

    pub(super) fn no_experiment() -> Self {
        let message = "Experiment not found!";
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed").raw(Raw::Nameless)
    }

    pub(super) fn nothing_to_delete() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", "Experiment not found.").raw(Raw::Nested)
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

    /// A group is excluded that is none.
    pub(super) fn no_group_to_exclude() -> Self {
        let column = "null value in column \"groupId\" of relation \"group_exclusion\"";
        Self::database(format!("{column} violates not-null constraint"))
    }

    /// The original goes through what is nothing.
    pub(super) fn no_object() -> Self {
        let message = "Cannot convert undefined or null to object";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original calls what is none.
    pub(super) fn is_no_function(what: &str) -> Self {
        let message = format!("{what} is not a function");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    pub(super) fn no_lists(side: &str) -> Self {
        let message = format!("{side} lists not found.");
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", message).raw(Raw::Nested)
    }

    pub(super) fn no_segment() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", "Segment not found.").raw(Raw::Nested)
    }

    /// The original throws this one without a name.
    pub(super) fn segment_name_is_taken(name: &str, context: &str) -> Self {
        let message = format!("Segment name {name} already exists in context {context}");
        Self::new(StatusCode::BAD_REQUEST, "", message).kind(SHAPE)
    }

    /// The original reads a field of nothing while it assigns.
    pub(super) fn assignment_reads_nothing(field: &str) -> Self {
        Self::reads_nothing("undefined", field).kind("Error in the assignment algorithm")
    }

    /// A bare error that the original calls a failed query.
    pub(super) fn query(message: impl Into<String>) -> Self {
        Self::thrown(message).kind("Query Failed")
    }

    /// Metrics are declared only where others are refused.
    pub(super) fn metrics_are_free() -> Self {
        Self::thrown("Metrics filter not enabled").kind(INVALID_TOKEN)
    }

    /// A reward is for adaptive experiments.
    pub(super) fn no_rewards() -> Self {
        Self::refused("Failed to send reward: mooclet is not currently enabled on backend.")
    }

    /// The original catches whatever goes wrong and says that the student is unknown, with the reason in
    /// a text in a text.
    pub(super) fn wrapped(&self) -> Self {
        let message = json!({ "type": NO_USER, "message": self.message }).to_string();
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind(NO_USER)
    }

    /// Nothing can be sent by mail. The original throws this one without a name.
    pub(super) fn no_mail() -> Self {
        let message = "Email send error";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message).kind("Email send error")
    }

    /// Two flags of a context would have the same key.
    pub(super) fn flag_key_is_taken() -> Self {
        let message = "A flag with this key already exists for this app-context";
        Self::new(StatusCode::CONFLICT, "Error", message)
            .kind("Feature Flag with same key already exists for this app-context")
    }

    /// The original answers nothing at all, of which its framework makes an error.
    pub(super) fn nothing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", "").kind("Query Failed").raw(Raw::Nameless)
    }

    pub(super) fn no_flag(id: &str) -> Self {
        let message = format!("Feature flag with id {id} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", message).raw(Raw::Nested)
    }

    /// The original takes nothing apart.
    pub(super) fn takes_nothing_apart(field: &str) -> Self {
        let message =
            format!("Cannot destructure property '{field}' of '(intermediate value)' as it is null.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// The original writes a field of nothing.
    pub(super) fn writes_nothing(nothing: &str, field: &str) -> Self {
        let message = format!("Cannot set properties of {nothing} (setting '{field}')");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "TypeError", message)
    }

    /// An adaptive experiment needs another service, which is not there.
    pub(super) fn no_mooclets(deed: &str) -> Self {
        Self::refused(format!(
            "Failed to {deed} Experiment: moocletPolicyParameters was provided but mooclets are not enabled \
             on backend."
        ))
    }

    /// There is no such factor to make a table of.
    pub(super) fn no_table() -> Self {
        Self::thrown("Failed to generate CSV")
    }

    /// This server itself failed; the caller learns no more than that.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }

    /// The body.
    pub(super) fn answer(&self, dialect: Dialect, endpoint: &str, request: &Value) -> Value {
        if dialect == Dialect::V62 { self.as_it_is() } else { self.in_form(endpoint, request) }
    }

    /// The request is echoed whole; what is wrong with it is not told.
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
            Raw::Nothing => json!({}),
            Raw::Named => {
                let mut answer = json!({ "httpCode": code, "name": self.name, "message": self.message });
                if let Some(errors) = &self.errors {
                    answer["errors"] = errors.clone();
                }
                answer
            }
            Raw::Nameless => json!({ "httpCode": code, "message": self.message }),
            Raw::Nested => json!({
                "response": { "message": self.message, "error": "Not Found", "statusCode": code },
                "status": code,
                "options": {},
                "message": self.message,
                "name": self.name,
            }),
            Raw::Typed(kind) if self.status.is_server_error() => json!({ "type": kind }),
            Raw::Typed(kind) => json!({ "type": kind, "httpCode": code }),
            Raw::Thrown(kind) => {
                json!({ "name": self.name, "message": self.message, "type": kind, "httpCode": code })
            }
            Raw::Fields(fields) => Value::clone(fields),
        }
    }
}
