//! The gate: every request has a caller before a route sees it, and a caller has so many open requests at a
//! time.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use crate::access::{Access, Caller, Denied};
use crate::app::App;
use crate::error::ApiError;
use crate::live::Permit;

/// The server as the caller of a request sees it.
pub(super) struct Shared(pub(super) Arc<App>);

impl FromRequestParts<Arc<App>> for Shared {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        match parts.extensions.get::<Admitted>() {
            Some(Admitted(caller)) => Ok(Shared(app.seen_by(caller))),
            // A route that is not behind the gate sees nothing.
            None => Err(denied(Denied::Unknown)),
        }
    }
}

/// The caller whom the gate has let in. A type of its own: a layer in front can add a [`Caller`], not this.
#[derive(Clone)]
struct Admitted(Caller);

/// One place among a caller's open requests, which a WebSocket takes with it.
pub(super) type Place = Arc<Permit>;

/// Lets a request in if its caller is known, and counts it.
pub(super) async fn check(
    State((app, access)): State<(Arc<App>, Arc<Access>)>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = admit(&app, &access, request, next).await;
    let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    // Any text can be a method, and each label costs memory.
    if let (Some(route), true) = (route, known.contains(&method)) {
        app.meters.answered(method.as_str(), route.as_str(), response.status().as_u16(), began.elapsed());
    }
    response
}

async fn admit(app: &App, access: &Access, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match access.caller(&parts).await {
        Ok(caller) => caller,
        Err(reason) => return denied(reason).into_response(),
    };
    let stays_open = parts.extensions.get::<MatchedPath>().is_some_and(|path| stays_open(path.as_str()));
    let place = match stays_open {
        true => match app.live.streams.take(&caller, app.settings.max_streams) {
            Some(permit) => Some(Place::new(permit)),
            None => {
                let limit = app.settings.max_streams;
                return ApiError::too_many("too_many_streams", "open streams and waits", limit)
                    .into_response();
            }
        },
        false => None,
    };
    parts.extensions.insert(Admitted(caller));
    if let Some(place) = &place {
        parts.extensions.insert(Arc::clone(place));
    }
    let response = next.run(Request::from_parts(parts, body)).await;
    match place {
        Some(place) => held(response, place),
        None => response,
    }
}

fn denied(reason: Denied) -> ApiError {
    let status = match reason {
        Denied::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Denied::Unknown => StatusCode::UNAUTHORIZED,
    };
    ApiError::new(status, reason.to_string())
}

/// Whether requests of a route may stay open as long as a run or longer.
fn stays_open(route: &str) -> bool {
    ["/stream", "/stream/events", "/wait", "/join"].iter().any(|tail| route.ends_with(tail))
}

/// The place is free when the body has been sent, or its reader has gone.
fn held(response: Response, place: Place) -> Response {
    response.map(|body| {
        let chunks = body.into_data_stream().map(move |chunk| {
            let _until_the_end = &place;
            chunk
        });
        Body::from_stream(chunks)
    })
}
