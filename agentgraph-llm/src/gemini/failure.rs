//! Gemini's errors as [`Error`]s with a code.

use std::time::Duration;

use reqwest::header::HeaderMap;

use crate::error::{Code, Error};
use crate::http::refusal;
use crate::json::{Object, RawJson, WireValue};

/// Phrases that identify a billing error. The message of every used-up quota mentions "billing details", so
/// that word alone says nothing.
const MONEY: [&str; 4] = ["prepayment credits", "spending cap", "spend cap", "enable billing"];

/// The error of an unsuccessful HTTP response.
pub(crate) fn from_status(status: u16, _headers: &HeaderMap, body: &[u8]) -> Error {
    let detail = refusal::fields(body).map(|fields| Detail::of(&fields)).unwrap_or_default();
    detail.error(Some(status)).with_status(status)
}

/// The error in a body or a stream with a success status.
pub(super) fn from_body(fields: &Object) -> Error {
    Detail::of(fields).error(None)
}

#[derive(Default)]
struct Detail {
    code: Option<u16>,
    status: String,
    message: String,
    /// The `reason` of an `ErrorInfo`, such as `API_KEY_INVALID`.
    reason: String,
    retry_delay: Option<Duration>,
    /// The quota is one of the day, or the account has none.
    is_quota_of_the_day: bool,
}

impl Detail {
    fn of(fields: &Object) -> Self {
        let Some(error) = fields.get_as::<Object>("error") else {
            return Detail::default();
        };
        let text = |name| error.get_as::<String>(name).unwrap_or_default();
        let mut detail = Detail {
            code: error.get_as("code"),
            status: text("status"),
            message: refusal::cut(text("message")),
            ..Detail::default()
        };
        for more in error.get_as::<Vec<WireValue>>("details").unwrap_or_default() {
            detail.add(&more.0);
        }
        detail
    }

    fn add(&mut self, more: &RawJson) {
        let Ok(more) = Object::parse(more.get()) else { return };
        let kind = more.get_as::<String>("@type").unwrap_or_default();
        match kind.rsplit('.').next().unwrap_or_default() {
            "RetryInfo" => {
                self.retry_delay = more.get_as("retryDelay").and_then(|text: String| seconds(&text))
            }
            "ErrorInfo" => self.reason = more.get_as("reason").unwrap_or_default(),
            "QuotaFailure" => {
                let violations = more.get_as::<Vec<WireValue>>("violations").unwrap_or_default();
                self.is_quota_of_the_day |= violations.iter().any(|violation| is_of_the_day(&violation.0));
            }
            _ => {}
        }
    }

    fn error(&self, status: Option<u16>) -> Error {
        let code = self.kind(status);
        let error = refusal::error(code, "GEMINI_API_KEY", [&*self.status, &*self.message]);
        match self.retry_delay {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }

    fn kind(&self, status: Option<u16>) -> Code {
        if self.is_about_money() {
            return Code::Billing;
        }
        if status == Some(413) {
            return Code::TooLarge;
        }
        let says = |phrase| refusal::says(&self.message, &[phrase]);
        match (self.status.as_str(), self.reason.as_str()) {
            (_, "API_KEY_INVALID" | "API_KEY_EXPIRED") => Code::Auth,
            ("INVALID_ARGUMENT", _) if says("api key not valid") => Code::Auth,
            ("INVALID_ARGUMENT", _) if says("exceeds the maximum number of tokens") => Code::TooLarge,
            ("INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" | "UNIMPLEMENTED", _) => {
                Code::BadRequest
            }
            ("UNAUTHENTICATED", _) => Code::Auth,
            ("PERMISSION_DENIED", _) => Code::Permission,
            ("NOT_FOUND", _) => Code::NotFound,
            ("ABORTED", _) => Code::Conflict,
            ("RESOURCE_EXHAUSTED", _) => Code::RateLimited,
            ("UNAVAILABLE", _) => Code::Overloaded,
            ("DEADLINE_EXCEEDED" | "CANCELLED", _) => Code::Timeout,
            ("INTERNAL" | "UNKNOWN" | "DATA_LOSS", _) => Code::Server,
            _ => refusal::code_of_status(status.or(self.code).unwrap_or(500)),
        }
    }

    fn is_about_money(&self) -> bool {
        self.is_quota_of_the_day || self.reason == "BILLING_DISABLED" || refusal::says(&self.message, &MONEY)
    }
}

/// Waiting does not help before the next day, or at all if the quota is zero.
fn is_of_the_day(violation: &RawJson) -> bool {
    let Ok(violation) = Object::parse(violation.get()) else { return false };
    let id = violation.get_as::<String>("quotaId").unwrap_or_default();
    let value = violation.get("quotaValue").map(|value| value.get().trim_matches('"').to_owned());
    id.to_lowercase().contains("perday") || value.as_deref() == Some("0")
}

/// A duration such as `12s` or `0.5s`.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
