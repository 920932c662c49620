//! The routes: the only place that knows HTTP. Each request is read whole, answered under the lock without
//! awaiting anything, and written. The tables from paths to answers are in the files of the areas.

mod administration;
pub(crate) mod connection;
mod experiments;
mod general;
mod origin;
mod paths;
mod reading;
mod segments;
mod statistics;
mod students;

use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use serde_json::{Value, json};

use crate::accounts::gate::Caller;
use crate::core::{Answer, ApiRequest};
use crate::shared_core::SharedCore;
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use connection::Breaker;
pub(crate) use origin::Sites;

use origin::Origin;
use paths::{Paths, RouteMatch};
use reading::read;

const JSON: &str = "application/json; charset=utf-8";
/// The routes that return a table in place of JSON.
const TABLES: &str = "/api/stratification/download/";
/// The route to which browsers send JSON without its content type.
const BLOBS: &str = "/api/v5/bloblog";
const CSV: &str = "text/csv; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// Method, path, answer. `{id}` is the id in the path.
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

/// The values that all routes share.
#[derive(Clone)]
pub(crate) struct RouteContext {
    pub(crate) core: SharedCore,
    pub(crate) dialect: Dialect,
    /// Whether an error response closes the connection.
    pub(crate) breaks: bool,
    /// The sites whose pages may call.
    pub(crate) sites: Sites,
}

/// The routes of a dialect. Up to 6.2 an experiment's lists have no routes of their own.
pub(crate) fn routes(face: &RouteContext) -> Router {
    let lists = if face.dialect == Dialect::V62 { &[] } else { experiments::LISTS };
    let paths = Arc::new(Paths::of(AREAS.into_iter().flatten().chain(lists).copied()));
    let face = face.clone();
    Router::new().fallback(move |request: Request| serve(face.clone(), paths.clone(), request))
}

/// Nothing may be awaited between here and the end, because the connection may be marked for closing.
async fn serve(face: RouteContext, paths: Arc<Paths>, request: Request) -> Response {
    let breaker = request.extensions().get::<ConnectInfo<Breaker>>().cloned();
    let origin = Origin::of(request.headers());
    let stranger = origin.unauthorized_page(&face.sites);
    let is_welcome = stranger.is_none();
    let mut response = match stranger {
        Some(page) => {
            refuse(face.dialect, &Fault::unauthorized_origin(&page), &endpoint(&request), &Value::Null)
        }
        None if request.method() == Method::OPTIONS => origin.invitation(),
        None => respond_to(&face, &paths, request).await,
    };
    let is_bad = !response.status().is_success() && !is_page(&response);
    if let Some(ConnectInfo(breaker)) = breaker.filter(|_| face.breaks && is_bad) {
        breaker.break_after_answer();
    }
    if is_welcome {
        origin.admit(&mut response);
    }
    response
}

/// Path and query, as received.
fn endpoint(request: &Request) -> String {
    request.uri().path_and_query().map_or_else(String::new, ToString::to_string)
}

async fn respond_to(face: &RouteContext, paths: &Paths, request: Request) -> Response {
    let endpoint = endpoint(&request);
    let (parts, body) = request.into_parts();
    let is_blob = parts.uri.path().trim_end_matches('/').eq_ignore_ascii_case(BLOBS);
    let body = match read(&parts.headers, body, is_blob).await {
        Ok(body) => body,
        Err(fault) => return refuse(face.dialect, &fault, &endpoint, &json!({})),
    };
    let ((_, route, answer), id) = match paths.find(&parts.method, parts.uri.path()) {
        RouteMatch::Route(route, id) => (route, id),
        RouteMatch::Garbled(part) => return refuse(face.dialect, &Fault::garbled(&part), &endpoint, &body),
        RouteMatch::Nothing => return unknown(&parts.method, parts.uri.path()),
    };
    let asked = ApiRequest {
        method: parts.method.as_str().to_owned(),
        endpoint,
        route,
        authorization: latin_1(&parts.headers, "authorization"),
        id,
        query: parts.uri.query().unwrap_or_default().to_owned(),
        user: latin_1(&parts.headers, "user-id"),
        body,
    };
    match face.core.run(Caller::of(route), answer, &asked) {
        Some(Ok(Value::Null)) => StatusCode::NO_CONTENT.into_response(),
        Some(Ok(Value::String(table))) if route.starts_with(TABLES) => respond(StatusCode::OK, CSV, table),
        Some(Ok(value)) => respond(StatusCode::OK, JSON, value.to_string()),
        Some(Err(fault)) => refuse(face.dialect, &fault, &asked.endpoint, &asked.body),
        None => respond(StatusCode::SERVICE_UNAVAILABLE, JSON, "{}".to_owned()),
    }
}

/// The original reads header bytes as Latin-1, so ids beyond ASCII are read in the same way here.
fn latin_1(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.as_bytes().iter().map(|&byte| char::from(byte)).collect())
}

fn refuse(dialect: Dialect, fault: &Fault, endpoint: &str, request: &Value) -> Response {
    respond(fault.status, JSON, fault.answer(dialect, endpoint, request).to_string())
}

fn unknown(method: &Method, path: &str) -> Response {
    let path = escaped(path);
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Error</title>\n</head>\n<body>\n<pre>Cannot {method} {path}</pre>\n\
         </body>\n</html>\n"
    );
    respond(StatusCode::NOT_FOUND, HTML, page)
}

fn is_page(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == HTML)
}

fn escaped(path: &str) -> String {
    path.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}
