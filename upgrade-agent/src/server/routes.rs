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
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::{Value, json};

use super::core::{Answer, Asked, Shared};
use super::fault::Fault;

const LARGEST_BODY: usize = 16 * 1024 * 1024;
const JSON: &str = "application/json; charset=utf-8";
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

/// The routes over a core that they share.
pub(super) fn routes(core: &Shared) -> Router {
    let mut router = Router::new();
    for &(method, path, answer) in AREAS.into_iter().flatten() {
        let core = core.clone();
        let call = move |request: Request| serve(core, answer, request);
        router = router.route(path, on(method, call));
    }
    router.fallback(unknown).method_not_allowed_fallback(unknown)
}

async fn serve(core: Shared, answer: Answer, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let endpoint = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let id = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
    let user = user_id(&parts.headers);
    let body = match read(&parts.headers, body).await {
        Ok(body) => body,
        Err(fault) => return refuse(&fault, &endpoint, &json!({})),
    };
    let asked = Asked { id, query, user, body };
    match core.run(answer, &asked) {
        Some(Ok(Value::Null)) => StatusCode::NO_CONTENT.into_response(),
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
