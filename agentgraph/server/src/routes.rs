//! The routes: requests in, records and runs below, JSON and events out.

mod assistants;
mod body;
mod commands;
mod events;
mod gate;
mod metrics;
mod openapi;
mod pages;
mod runs;
mod socket;
mod sse;
mod states;
mod store;
mod threads;
mod ui;

use std::sync::Arc;

use axum::http::{HeaderName, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tower_http::cors::{AllowHeaders, AllowMethods, CorsLayer};

use self::gate::Shared;
use self::pages::check_page;
use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;

pub(crate) use self::pages::Pages;

pub(crate) fn router(app: Arc<App>, access: Arc<Access>, pages: Arc<Pages>) -> Router {
    Router::new()
        .route("/info", get(info))
        .merge(assistants::routes())
        .merge(threads::routes())
        .merge(states::routes())
        .merge(runs::routes())
        .merge(commands::routes())
        .merge(events::routes())
        .merge(store::routes())
        .merge(ui::routes())
        .merge(metrics::routes())
        .layer(middleware::from_fn_with_state((Arc::clone(&app), access), gate::check))
        .merge(ui::page())
        .merge(openapi::routes())
        .route("/ok", get(async || Json(json!({ "ok": true }))))
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "Not Found"))
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&pages), check_page))
        .layer(cors(&pages))
        .with_state(app)
}

fn cors(pages: &Arc<Pages>) -> CorsLayer {
    let exposed = ["content-location", "location", "retry-after", "x-pagination-total", "x-pagination-next"];
    CorsLayer::new()
        .allow_origin(pages.allow_origin())
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .allow_private_network(true)
        .expose_headers(exposed.map(HeaderName::from_static))
}

async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "langgraph_py_version": null,
        "flags": { "assistants": true, "crons": false, "langsmith": false, "langsmith_tracing_replicas": false, "strict_resume": true },
        "host": { "kind": "self-hosted", "project_id": null, "revision_id": "agentgraph" },
    }))
}

/// A page of a list with the headers that say what else there is.
fn page(items: Vec<Value>, offset: usize, total: usize) -> Response {
    let shown = offset.saturating_add(items.len());
    let mut response = Json(items).into_response();
    let mut add = |name: &'static str, number: usize| {
        response.headers_mut().insert(HeaderName::from_static(name), number.into());
    };
    add("x-pagination-total", total);
    if shown < total {
        add("x-pagination-next", shown);
    }
    response
}

type Reply = Result<Response, ApiError>;

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// A route with two methods on a path of its own, so that the tables below stay short.
fn both<H, G, T, U>(on_get: H, on_post: G) -> axum::routing::MethodRouter<Arc<App>>
where
    H: axum::handler::Handler<T, Arc<App>>,
    G: axum::handler::Handler<U, Arc<App>>,
    T: 'static,
    U: 'static,
{
    get(on_get).merge(post(on_post))
}
