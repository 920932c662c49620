//! What a bad answer says: the bodies of 6.3 and later, those up to 6.2, and none at all.

use reqwest::StatusCode;
use serde_json::Value;

use super::fields::Fields;
use crate::client::error::{ClientError, ErrorKind};
use crate::client::transport::{Body, Reply};

/// The longest message worth showing, in characters.
const LONGEST: usize = 400;

/// The body of a good answer; a bad one becomes an error.
pub(in crate::client) fn success(reply: Reply) -> Result<Body, ClientError> {
    let status = reply.status;
    if status.is_success() && reply.body != Body::Other {
        return Ok(reply.body);
    }
    let message = message(&reply);
    let kind = kind(status, &reply.body, &message);
    Err(ClientError::new(kind, reply.call, message).with_status(status.as_u16()))
}

fn kind(status: StatusCode, body: &Body, message: &str) -> ErrorKind {
    match status.as_u16() {
        401 | 403 => ErrorKind::Auth,
        404 if *body == Body::Other => ErrorKind::Protocol,
        404 => ErrorKind::NotFound,
        408 => ErrorKind::Timeout,
        409 => ErrorKind::Conflict,
        429 => ErrorKind::Server,
        400..=499 => ErrorKind::BadRequest,
        // The server says 500 here although the request is to blame.
        500 if message.starts_with("Condition not found") => ErrorKind::BadRequest,
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::Protocol,
    }
}

fn message(reply: &Reply) -> String {
    let said = match &reply.body {
        Body::Json(value) => told(value),
        Body::Empty | Body::Other => None,
    };
    said.map_or_else(|| untold(reply), |said| short(&said))
}

fn untold(reply: &Reply) -> String {
    match (&reply.body, reply.status.as_u16()) {
        (Body::Other, 404) => "the server has no such route".into(),
        (_, 300..=399) => "the server sends elsewhere; use the URL it really has".into(),
        (Body::Other, _) => "the answer is not JSON".into(),
        _ => "the server does not say why".into(),
    }
}

/// From 6.3 on `{name, message, type, ...}`, up to 6.2 `{message, errors: [...]}` or only a
/// `{type}`; the details of the latter are worth more than its message. Never the request, which
/// newer servers echo.
fn told(value: &Value) -> Option<String> {
    let fields = Fields::of(value)?;
    let mut details = Vec::new();
    fields.entries("errors").for_each(|error| constraints(error, &mut details));
    if !details.is_empty() {
        return Some(details.join("; "));
    }
    let nested = fields.get("response").get("message").and_then(Value::as_str);
    let told = fields.text("message").or_else(|| nested.map(str::to_owned));
    told.or_else(|| fields.text("type")).filter(|told| !told.trim().is_empty())
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

/// Text from outside, made fit for one line of an error.
pub(in crate::client) fn short(text: &str) -> String {
    let mut line: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
