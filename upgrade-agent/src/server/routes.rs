//! The routes: the only file that knows HTTP. Each request is read whole, answered under the lock
//! without waiting for anything, and written out.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::{Value, json};

use super::core::{Answer, Asked, Core, Shared};
use super::fault::Fault;
use super::{body, create, experiments, page, statistics, students, update};

const LARGEST_BODY: usize = 16 * 1024 * 1024;
const JSON: &str = "application/json; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// Every route: method, path, answer. `{id}` is an experiment's id.
const ROUTES: [(MethodFilter, &str, Answer); 23] = [
    (MethodFilter::GET, "/api", health),
    (MethodFilter::GET, "/api/", health),
    (MethodFilter::GET, "/api/version", version),
    (MethodFilter::GET, "/api/version/", version),
    (MethodFilter::GET, "/api/experiments", experiments::all),
    (MethodFilter::POST, "/api/experiments", create::create),
    (MethodFilter::GET, "/api/experiments/contextMetaData", experiments::contexts),
    (MethodFilter::GET, "/api/experiments/names", experiments::names),
    (MethodFilter::GET, "/api/experiments/partitions", experiments::partitions),
    (MethodFilter::POST, "/api/experiments/paginated", page::paginated),
    (MethodFilter::POST, "/api/experiments/state", experiments::set_state),
    (MethodFilter::GET, "/api/experiments/single/{id}", experiments::single),
    (MethodFilter::GET, "/api/experiments/conditions/{id}", experiments::conditions),
    (MethodFilter::PUT, "/api/experiments/{id}", update::update),
    (MethodFilter::DELETE, "/api/experiments/{id}", experiments::delete),
    (MethodFilter::POST, "/api/stats/enrollment", statistics::enrollment),
    (MethodFilter::POST, "/api/stats/enrollment/detail", statistics::detail),
    (MethodFilter::POST, "/api/v6/init", students::init),
    (MethodFilter::POST, "/api/v6/assign", students::assign),
    (MethodFilter::POST, "/api/v6/mark", students::mark),
    (MethodFilter::POST, "/api/v6/log", students::log),
    (MethodFilter::PATCH, "/api/v6/groupmembership", students::set_groups),
    (MethodFilter::PATCH, "/api/v6/workinggroup", students::set_working_group),
];

/// The routes over a core that they share.
pub(super) fn routes(core: &Shared) -> Router {
    let mut router = Router::new();
    for (method, path, answer) in ROUTES {
        let core = core.clone();
        let call = move |request: Request| serve(core, answer, request);
        router = router.route(path, on(method, call));
    }
    router.fallback(unknown).method_not_allowed_fallback(unknown)
}

fn health(_: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Ok(json!({
        "name": "A/B Testing Backend",
        "version": body::VERSION,
        "description": "Backend for the UpGrade A/B Testing Platform",
    }))
}

fn version(_: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Ok(json!(body::VERSION))
}

async fn serve(core: Shared, answer: Answer, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let endpoint = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let id = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
    let user = user_id(&parts.headers);
    let body = match read(&parts.headers, body).await {
        Ok(body) => body,
        Err(fault) => return refuse(&fault, &endpoint, &json!({})),
    };
    let asked = Asked { id, user, body };
    match core.run(answer, &asked) {
        Some(Ok(value)) => respond(StatusCode::OK, JSON, value.to_string()),
        Some(Err(fault)) => refuse(&fault, &endpoint, &asked.body),
        None => respond(StatusCode::SERVICE_UNAVAILABLE, JSON, "{}".to_owned()),
    }
}

/// Header bytes are Latin-1 to the original, so an id beyond ASCII is read as it reads it.
fn user_id(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("user-id")?.as_bytes().iter().map(|&byte| char::from(byte)).collect())
}

/// The body as JSON; no body, and a body that does not call itself JSON, is an empty object.
async fn read(headers: &HeaderMap, body: Body) -> Result<Value, Fault> {
    let bytes = to_bytes(body, LARGEST_BODY).await.map_err(|_| Fault::too_large())?;
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if bytes.is_empty() || !kind.starts_with("application/json") {
        return Ok(json!({}));
    }
    match serde_json::from_slice(&bytes) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(value),
        _ => Err(Fault::syntax(complaint(&String::from_utf8_lossy(&bytes)))),
    }
}

/// What a JavaScript engine says to text that is no JSON, in its commonest forms.
fn complaint(text: &str) -> String {
    let trimmed = text.trim_start();
    let start = text.chars().count() - trimmed.chars().count();
    let mut rest = trimmed.chars();
    let (first, second) = (rest.next(), rest.find(|c| !c.is_whitespace()));
    match (first, second) {
        (Some('{'), Some(c)) if c != '"' && c != '}' => {
            format!("Expected property name or '}}' in JSON at position {}", start + 1)
        }
        (Some(c), _) if !matches!(c, '{' | '[') => {
            let shown: String = text.chars().take(30).collect();
            format!("Unexpected token '{c}', \"{shown}\" is not valid JSON")
        }
        _ => "Unexpected end of JSON input".to_owned(),
    }
}

fn refuse(fault: &Fault, endpoint: &str, request: &Value) -> Response {
    respond(fault.status, JSON, fault.answer(endpoint, request).to_string())
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
