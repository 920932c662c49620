//! `/metrics`: what this process has under way and has done, for Prometheus. It is of all callers together,
//! so only operators see it.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use super::{Reply, Shared};
use crate::app::App;
use crate::error::ApiError;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(Shared(app): Shared) -> Reply {
    if app.caller.name().is_some() {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "metrics are for operators: use one of their keys"));
    }
    let (running, waiting) = app.live.counts();
    let text = app.meters.text(running, waiting, app.live.streams.total());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
