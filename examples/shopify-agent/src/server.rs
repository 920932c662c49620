//! The agent over HTTP: the two routes of xRx, a look at a task, and the page.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, ToSocketAddrs, lookup_host};

use crate::ShopAgent;
use crate::agent::CancelAnswer;
use crate::wire::{ErrorFrame, RunRequest, event};

/// Customers whose connections wait to be accepted.
const WAITING_CUSTOMERS: u32 = 1024;
/// The longest request that is read.
const LONGEST_REQUEST: usize = 1 << 20;
/// The longest request that is received to its end, to be answered in words.
const LONGEST_IGNORED: usize = 16 << 20;

const PAGE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/shop.css");
const SCRIPT: &str = include_str!("page/shop.js");

/// Listens on a name with a port, or an address with one. More customers may connect at once than the 128
/// that a listener keeps waiting by default; each further one would wait a second for its next try.
///
/// # Errors
/// If the name is not known, or the port cannot be had.
pub async fn listen(place: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut problem = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in lookup_host(place).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A server that is started again gets its port at once.
        socket.set_reuseaddr(cfg!(unix))?;
        match socket.bind(address).and_then(|()| socket.listen(WAITING_CUSTOMERS)) {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// The routes.
///
/// `pictures` are the origins that the page may show pictures of products from.
pub fn routes(agent: ShopAgent, pictures: &[String]) -> Router {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' {}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        pictures.join(" ")
    );
    // An origin with a line end would be no header; the page then shows no pictures.
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'self'"));
    Router::new()
        .route("/run-reasoning-agent", post(run))
        .route("/cancel-reasoning-agent/{task}", post(cancel))
        .route("/tasks/{task}", get(report))
        .route("/favicon.ico", get(async || StatusCode::NO_CONTENT))
        .route("/", get(async || content("text/html; charset=utf-8", PAGE)))
        .route("/shop.css", get(async || content("text/css; charset=utf-8", STYLE)))
        .route("/shop.js", get(async || content("text/javascript; charset=utf-8", SCRIPT)))
        .layer(middleware::from_fn_with_state(Arc::new(policy), guard))
        .with_state(agent)
}

/// Refuses calls of other sites' pages, which could otherwise order in the name of the person at this
/// machine, and sets the headers that hold for every answer.
async fn guard(State(policy): State<Arc<HeaderValue>>, request: Request, next: Next) -> Response {
    if is_foreign(request.headers()) {
        return (StatusCode::FORBIDDEN, "this page is of another site\n").into_response();
    }
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, (*policy).clone());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    own.is_none() || own != text(header::HOST)
}

fn content(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Runs a turn. Whatever the body, the answer is a stream: a client of xRx has no words for anything else.
async fn run(State(agent): State<ShopAgent>, body: Body) -> Response {
    let request = match RunRequest::read(&read(body).await) {
        Ok(request) => request,
        Err(why) => {
            let id = uuid::Uuid::new_v4().to_string();
            let frame = event(&ErrorFrame::unreadable(&why));
            return streamed(&id, Body::from(frame));
        }
    };
    let task = agent.start(request).await;
    // One chunk for each frame, so that a reader that does not put chunks together gets whole ones.
    let frames = task.frames.map(|item| Ok::<_, Infallible>(event(&item)));
    streamed(&task.id, Body::from_stream(frames))
}

/// The body, or nothing of one that is too long. That is read, too: a client that is still sending would see
/// no answer.
async fn read(body: Body) -> Vec<u8> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    let mut chunks = body.into_data_stream();
    while let Some(Ok(chunk)) = chunks.next().await
        && length <= LONGEST_IGNORED
    {
        length += chunk.len();
        if length <= LONGEST_REQUEST {
            bytes.extend_from_slice(&chunk);
        } else {
            bytes.clear();
        }
    }
    bytes
}

fn streamed(task: &str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (
            HeaderName::from_static("x-task-id"),
            HeaderValue::from_str(task).unwrap_or(HeaderValue::from_static("")),
        ),
    ];
    (headers, body).into_response()
}

/// Cancels a task. The request has no body.
async fn cancel(State(agent): State<ShopAgent>, Path(task): Path<String>) -> Response {
    match agent.cancel(&task).await {
        Ok(CancelAnswer::Cancelled) => detail(StatusCode::OK, format!("Task {task} cancelled")),
        Ok(CancelAnswer::Ended(how)) => {
            let how = json!(how);
            detail(
                StatusCode::OK,
                format!("Task {task} had ended before: {}", how.as_str().unwrap_or_default()),
            )
        }
        Ok(CancelAnswer::Unknown) => detail(StatusCode::NOT_FOUND, format!("There is no task {task}")),
        Err(error) => failed(&error),
    }
}

/// What is kept of a task: its status and frames. For clients that have lost their stream.
async fn report(State(agent): State<ShopAgent>, Path(task): Path<String>) -> Response {
    match agent.report(&task).await {
        Ok(Some(report)) => axum::Json(report).into_response(),
        Ok(None) => detail(StatusCode::NOT_FOUND, format!("There is no task {task}")),
        Err(error) => failed(&error),
    }
}

fn detail(status: StatusCode, detail: String) -> Response {
    (status, axum::Json(json!({ "detail": detail }))).into_response()
}

/// Names the error by its code: its text may have addresses.
fn failed(error: &agentgraph::Error) -> Response {
    tracing::error!(%error, "a request has failed");
    detail(StatusCode::INTERNAL_SERVER_ERROR, format!("An error occurred: {}", error.code().as_str()))
}
