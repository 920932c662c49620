//! The routes: the only place that knows HTTP. Each request is read whole, answered under the lock
//! without waiting for anything, and written out. Which path is answered by what, say the tables of
//! the areas.

mod administration;
mod experiments;
mod general;
mod segments;
mod statistics;
mod students;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::{Value, json};

use super::connection::Breaker;
use super::core::{Answer, Asked, Shared};
use super::fault::Fault;
use super::gate::Caller;
use super::json_text;
use crate::client::Dialect;

const LARGEST_BODY: usize = 16 * 1024 * 1024;
const JSON: &str = "application/json; charset=utf-8";
/// The routes that answer with a table rather than with JSON.
const TABLES: &str = "/api/stratification/download/";
/// The route to which browsers send JSON without calling it so.
const BLOBS: &str = "/api/v5/bloblog";
const CSV: &str = "text/csv; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// Method, path, answer. `{id}` is the id of what the path names.
type Route = (MethodFilter, &'static str, Answer);

/// Every route, area by area.
const AREAS: [&[Route]; 6] = [
    general::ROUTES,
    experiments::ROUTES,
    segments::ROUTES,
    statistics::ROUTES,
    students::ROUTES,
    administration::ROUTES,
];

/// What all routes share.
#[derive(Clone)]
pub(super) struct Face {
    pub(super) core: Shared,
    pub(super) dialect: Dialect,
    /// Whether a bad answer ends the connection.
    pub(super) breaks: bool,
}

/// The routes of a dialect. Up to 6.2 an experiment's lists have none of their own.
pub(super) fn routes(face: &Face) -> Router {
    let mut router = Router::new();
    let lists = if face.dialect == Dialect::V62 { &[] } else { experiments::LISTS };
    for &(method, path, answer) in AREAS.into_iter().flatten().chain(lists) {
        let (face, caller) = (face.clone(), Caller::of(path));
        let call = move |request: Request| serve(face, caller, answer, request);
        router = router.route(path, on(method, call));
    }
    router.fallback(unknown).method_not_allowed_fallback(unknown)
}

/// Nothing may be awaited between the break of a connection and the end.
async fn serve(face: Face, caller: Caller, answer: Answer, request: Request) -> Response {
    let breaker = request.extensions().get::<ConnectInfo<Breaker>>().cloned();
    let response = respond_to(&face, caller, answer, request).await;
    if let Some(ConnectInfo(breaker)) = breaker.filter(|_| face.breaks && !response.status().is_success()) {
        breaker.break_after_answer();
    }
    response
}

async fn respond_to(face: &Face, caller: Caller, answer: Answer, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let endpoint = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let id = decoded(parts.uri.path().rsplit('/').next().unwrap_or_default());
    let user = latin_1(&parts.headers, "user-id");
    let is_blob = parts.uri.path() == BLOBS;
    let body = match read(&parts.headers, body, is_blob).await {
        Ok(body) => body,
        Err(fault) => return refuse(face.dialect, &fault, &endpoint, &json!({})),
    };
    let method = parts.method.as_str().to_owned();
    let authorization = latin_1(&parts.headers, "authorization");
    let asked = Asked { method, endpoint, authorization, id, query, user, body };
    match face.core.run(caller, answer, &asked) {
        Some(Ok(Value::Null)) => StatusCode::NO_CONTENT.into_response(),
        Some(Ok(Value::String(table))) if asked.endpoint.starts_with(TABLES) => {
            respond(StatusCode::OK, CSV, table)
        }
        Some(Ok(value)) => respond(StatusCode::OK, JSON, value.to_string()),
        Some(Err(fault)) => refuse(face.dialect, &fault, &asked.endpoint, &asked.body),
        None => respond(StatusCode::SERVICE_UNAVAILABLE, JSON, "{}".to_owned()),
    }
}

/// A part of a path without its escapes; one that is badly escaped stays as it is.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        match byte {
            b'%' => match (digit(), digit()) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => return part.to_owned(),
            },
            plain => bytes.push(plain),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| part.to_owned())
}

/// Header bytes are Latin-1 to the original, so an id beyond ASCII is read as it reads it.
fn latin_1(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.as_bytes().iter().map(|&byte| char::from(byte)).collect())
}

/// The body as JSON; no body, and a body that does not call itself JSON, is an empty object, unless it
/// is a blob, of which that is not asked.
async fn read(headers: &HeaderMap, body: Body, is_blob: bool) -> Result<Value, Fault> {
    let bytes = to_bytes(body, LARGEST_BODY).await.map_err(|_| Fault::too_large())?;
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if bytes.is_empty() || !(is_blob || kind.starts_with("application/json")) {
        return Ok(json!({}));
    }
    match serde_json::from_slice(&bytes) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(value),
        _ => Err(no_json(&String::from_utf8_lossy(&bytes))),
    }
}

/// What serde refuses and a JavaScript engine takes, such as half a surrogate pair, counts as cut off.
fn no_json(text: &str) -> Fault {
    let told = json_text::complaint(text).unwrap_or_else(|| "Unexpected end of JSON input".to_owned());
    Fault::unparsed(told, text)
}

fn refuse(dialect: Dialect, fault: &Fault, endpoint: &str, request: &Value) -> Response {
    respond(fault.status, JSON, fault.answer(dialect, endpoint, request).to_string())
}

async fn unknown(method: Method, request: Request) -> Response {
    let path = escaped(request.uri().path());
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Error</title>\n</head>\n<body>\n<pre>Cannot {method} {path}</pre>\n\
         </body>\n</html>\n"
    );
    respond(StatusCode::NOT_FOUND, HTML, page)
}

fn escaped(path: &str) -> String {
    path.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}
