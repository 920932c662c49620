//! Anthropic's errors as [`Error`]s with a code.

use reqwest::header::HeaderMap;

use crate::error::{Code, Error};
use crate::http::refusal;
use crate::json::Object;

/// Values of `error.details.error_code` that identify a billing error, whatever the status. Billing errors
/// are not retryable.
const MONEY_CODES: [&str; 4] = [
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable",
];

/// Phrases that identify a billing error without such a code.
const MONEY: [&str; 4] = ["credit balance", "spend limit", "spending limit", "api usage limits"];

/// Phrases of an error for too many tokens, which has the status of any wrong request.
const TOO_LARGE: [&str; 2] = ["prompt is too long", "exceed context limit"];

/// The error of an unsuccessful HTTP response.
pub(crate) fn from_status(status: u16, _headers: &HeaderMap, body: &[u8]) -> Error {
    let fields = refusal::fields(body).unwrap_or_default();
    error(&fields, |detail| code_of_status(status, detail)).with_status(status)
}

/// The error of an `error` event in a stream, or of an error body with a success status.
pub(crate) fn from_event(fields: &Object) -> Error {
    error(fields, code_of_kind)
}

#[derive(Default)]
struct Detail {
    kind: String,
    /// The stable name of the cause, if the server gives one.
    cause: String,
    message: String,
}

impl Detail {
    fn of(fields: &Object) -> Self {
        let Some(error) = fields.get_as::<Object>("error") else {
            return Detail::default();
        };
        let text = |name| error.get_as::<String>(name).unwrap_or_default();
        let details = error.get_as::<Object>("details").unwrap_or_default();
        Detail {
            kind: text("type"),
            cause: details.get_as("error_code").unwrap_or_default(),
            message: refusal::cut(text("message")),
        }
    }

    fn is_about_money(&self) -> bool {
        match self.cause.as_str() {
            "" => self.kind == "billing_error" || self.says(&MONEY),
            cause => self.kind == "billing_error" || MONEY_CODES.contains(&cause),
        }
    }

    fn says(&self, phrases: &[&str]) -> bool {
        refusal::says(&self.message, phrases)
    }
}

fn code_of_status(status: u16, detail: &Detail) -> Code {
    match status {
        400 if detail.says(&TOO_LARGE) => Code::TooLarge,
        500.. if detail.kind == "overloaded_error" => Code::Overloaded,
        503 => Code::Server,
        _ => refusal::code_of_status(status),
    }
}

fn code_of_kind(detail: &Detail) -> Code {
    match detail.kind.as_str() {
        "invalid_request_error" if detail.says(&TOO_LARGE) => Code::TooLarge,
        "invalid_request_error" => Code::BadRequest,
        "authentication_error" => Code::Auth,
        "permission_error" => Code::Permission,
        "not_found_error" => Code::NotFound,
        "request_too_large" => Code::TooLarge,
        "rate_limit_error" => Code::RateLimited,
        "timeout_error" => Code::Timeout,
        "overloaded_error" => Code::Overloaded,
        _ => Code::Server,
    }
}

fn error(fields: &Object, code: impl FnOnce(&Detail) -> Code) -> Error {
    let detail = Detail::of(fields);
    let code = if detail.is_about_money() { Code::Billing } else { code(&detail) };
    let Detail { kind, cause, message } = &detail;
    let error = refusal::error(code, "ANTHROPIC_API_KEY", [kind, cause, message].map(String::as_str));
    match fields.get_as::<String>("request_id") {
        Some(id) => error.with_request_id(id),
        None => error,
    }
}
