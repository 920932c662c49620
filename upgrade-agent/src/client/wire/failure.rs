//! Errors of the server: the bodies of 6.3 and later, those up to 6.2, and empty ones.

use reqwest::StatusCode;
use serde_json::Value;

use super::fields::Fields;
use crate::client::error::{ClientError, ErrorKind};
use crate::client::reply::{Body, Reply};

/// The longest displayed message, in characters.
const LONGEST: usize = 400;

/// The body of a successful response; any other response becomes an error.
pub(in crate::client) fn success(reply: Reply) -> Result<Body, ClientError> {
    let status = reply.status;
    if status.is_success() && matches!(reply.body, Body::Json(_) | Body::Empty) {
        return Ok(reply.body);
    }
    let message = without_secret(&message(&reply), &reply);
    let kind = kind(&reply, &message);
    Err(ClientError::new(kind, reply.call, short(&message)).with_status(status.as_u16()))
}

fn kind(reply: &Reply, message: &str) -> ErrorKind {
    match reply.status.as_u16() {
        401 | 403 => ErrorKind::Auth,
        404 if reply.is_no_route() => ErrorKind::Protocol,
        404 => ErrorKind::NotFound,
        408 => ErrorKind::Timeout,
        409 => ErrorKind::Conflict,
        429 => ErrorKind::Server,
        400..=499 => ErrorKind::BadRequest,
        // The server returns 500 here although the request is wrong.
        500 if message.starts_with("Condition not found") => ErrorKind::BadRequest,
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::Protocol,
    }
}

fn message(reply: &Reply) -> String {
    let said = match &reply.body {
        Body::Json(value) => reported_message(value, reply.status),
        Body::Empty | Body::Torn | Body::Other(_) => None,
    };
    let said = said.unwrap_or_else(|| default_message(reply));
    match reply.asked_wait {
        Some(wait) if !reply.status.is_success() => {
            format!("{said} (the server asks to wait {} seconds)", wait.as_secs())
        }
        _ => said,
    }
}

fn default_message(reply: &Reply) -> String {
    match (&reply.body, reply.status.as_u16()) {
        (_, 300..=399) => "the server sends elsewhere; use the URL it really has".into(),
        (Body::Torn, _) => "the answer breaks off".into(),
        (Body::Other(said), status) => {
            let what = if status == 404 { "the server has no such route" } else { "the answer is not JSON" };
            said.as_ref().map_or_else(|| what.into(), |said| format!("{what}: {said}"))
        }
        _ => "the server does not say why".into(),
    }
}

/// Servers repeat parts of the request.
fn without_secret(message: &str, reply: &Reply) -> String {
    let sent = reply.sent.as_ref().and_then(|sent| sent.to_str().ok());
    match sent.map(|sent| sent.trim_start_matches("Bearer ")) {
        Some(secret) if !secret.is_empty() => message.replace(secret, "[secret]"),
        _ => message.to_owned(),
    }
}

/// From 6.3 on `{name, message, type, ...}`, up to 6.2 `{message, errors: [...]}` or only a `{type}`, whose
/// details say more than its message. Never the request, which newer servers repeat.
fn reported_message(value: &Value, status: StatusCode) -> Option<String> {
    let fields = Fields::of(value)?;
    let mut details = Vec::new();
    fields.entries("errors").for_each(|error| constraints(error, &mut details));
    if !details.is_empty() {
        return Some(details.join("; "));
    }
    let nested = fields.get("response").get("message").and_then(Value::as_str);
    let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let message = text(fields.text("message").or_else(|| nested.map(str::to_owned)));
    match (message, text(fields.text("type"))) {
        // The type says why the authorization failed.
        (Some(message), Some(kind)) if status == StatusCode::UNAUTHORIZED && !message.contains(&kind) => {
            Some(format!("{message} ({kind})"))
        }
        (message, kind) => message.or(kind),
    }
}

fn constraints(error: &Value, into: &mut Vec<String>) {
    let Some(fields) = Fields::of(error) else {
        return;
    };
    let broken = fields.get("constraints").as_object();
    let said = broken.into_iter().flatten().filter_map(|(_, said)| said.as_str());
    into.extend(said.map(str::to_owned));
    fields.entries("children").for_each(|child| constraints(child, into));
}

/// Foreign text, shortened to one line of an error.
pub(in crate::client) fn short(text: &str) -> String {
    let mut line: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
