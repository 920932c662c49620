//! Errors about the form of a request: its shape, its encoding, its token.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Fault, INVALID_TOKEN, RawError, SHAPE};
use crate::wire::token::TokenFault;

const NOBODY: &str = "User ID not found";
const NO_TOKEN: &str = "Token is not present in request";
const NOT_VALID: &str = "JWT Token validation failed";

impl Fault {
    /// The route rejects the body. The original's message refers to `errors`, which it does not send.
    pub(crate) fn body() -> Self {
        Self::refused("Invalid body, check 'errors' property for more info.")
    }

    /// The route rejects the path.
    pub(crate) fn params() -> Self {
        Self::refused("Invalid params, check 'errors' property for more info.")
    }

    /// The route rejects the query.
    pub(crate) fn queries() -> Self {
        Self::refused("Invalid queries, check 'errors' property for more info.")
    }

    /// An administrator's token is missing or belongs to no account.
    pub(crate) fn unauthorized(method: &str, endpoint: &str) -> Self {
        let message = format!("Authorization is required for request on {method} {endpoint}");
        let fault = Self::new(StatusCode::UNAUTHORIZED, "AuthorizationRequiredError", message);
        fault.kind(NOBODY).raw(RawError::Named)
    }

    /// An application's token is missing.
    pub(crate) fn no_token() -> Self {
        let message = "Token is not present in request header from client";
        let fault = Self::new(StatusCode::UNAUTHORIZED, "Error", message);
        fault.kind(NO_TOKEN).raw(RawError::Typed(NO_TOKEN))
    }

    /// An application's token is rejected.
    pub(crate) fn token(why: &TokenFault) -> Self {
        let (name, message, kind, raw) = match why {
            TokenFault::Malformed(what) => ("JsonWebTokenError", *what, NOBODY, RawError::Thrown(NOT_VALID)),
            TokenFault::Forged => {
                ("JsonWebTokenError", "invalid signature", INVALID_TOKEN, RawError::Thrown(INVALID_TOKEN))
            }
            TokenFault::Expired => {
                ("TokenExpiredError", "jwt expired", INVALID_TOKEN, RawError::Thrown(INVALID_TOKEN))
            }
            TokenFault::Early => ("NotBeforeError", "jwt not active", NOBODY, RawError::Thrown(NOT_VALID)),
            TokenFault::Foreign => {
                ("Error", "Provided token is invalid", INVALID_TOKEN, RawError::Typed(INVALID_TOKEN))
            }
        };
        Self::new(StatusCode::UNAUTHORIZED, name, message).kind(kind).raw(raw)
    }

    /// The body is not JSON.
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SyntaxError", message)
    }

    /// The same, with the body.
    pub(crate) fn unparsed(message: impl Into<String>, text: &str) -> Self {
        Self::syntax(message).exposed(json!({ "body": text, "type": "entity.parse.failed" }))
    }

    /// With the description of the web framework where it is stable.
    fn exposed(self, mut fields: Value) -> Self {
        let code = self.status.as_u16();
        fields["expose"] = json!(true);
        fields["statusCode"] = json!(code);
        fields["status"] = json!(code);
        self.raw(RawError::Fields(Box::new(fields)))
    }

    /// The body is too large.
    pub(crate) fn too_large(limit: usize, length: Option<u64>) -> Self {
        let message = "request entity too large";
        let mut fields = json!({ "limit": limit, "type": "entity.too.large" });
        if let Some(length) = length {
            fields["expected"] = json!(length);
            fields["length"] = json!(length);
        }
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeError", message).exposed(fields)
    }

    /// The charset of the body is unknown.
    pub(crate) fn unknown_charset(name: &str) -> Self {
        let message = format!("unsupported charset \"{}\"", name.to_uppercase());
        Self::unsupported(message).exposed(json!({ "charset": name, "type": "charset.unsupported" }))
    }

    /// The body is compressed.
    pub(crate) fn unknown_encoding(name: &str) -> Self {
        let message = format!("unsupported content encoding \"{name}\"");
        Self::unsupported(message).exposed(json!({ "encoding": name, "type": "encoding.unsupported" }))
    }

    fn unsupported(message: String) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeError", message)
    }

    /// A part of the path has an invalid escape.
    pub(crate) fn garbled(part: &str) -> Self {
        let message = format!("Failed to decode param '{part}'");
        let code = StatusCode::BAD_REQUEST.as_u16();
        let fields = json!({ "statusCode": code, "status": code });
        Self::new(StatusCode::BAD_REQUEST, "URIError", message).raw(RawError::Fields(Box::new(fields)))
    }

    /// A page of another site calls.
    pub(crate) fn unauthorized_origin(page: &str) -> Self {
        Self::thrown(format!("Request from unauthorized origin: {page}"))
    }

    pub(crate) fn no_user_header() -> Self {
        let fault = Self::new(StatusCode::BAD_REQUEST, "Error", "User-Id header not found.").kind(SHAPE);
        fault.raw(RawError::Typed("Missing `User-Id` header"))
    }
}
