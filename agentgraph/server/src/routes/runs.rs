//! `/threads/{id}/runs` and `/runs`: starting, following, joining, cancelling.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::body::{Body, Fields, Parsed, list as texts, text};
use super::sse::{Reading, StopOnDrop, run_stream, stored_stream};
use super::{Reply, Shared, both, no_content};
use crate::app::{App, named_back, run_json};
use crate::error::ApiError;
use crate::live::{LiveRun, StopAction};
use crate::records::{Kind, Query, Record};
use crate::runs::{RunRequest, wait_result};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/threads/{id}/runs", both(list, create))
        .route("/threads/{id}/runs/wait", post(wait))
        .route("/threads/{id}/runs/stream", post(stream))
        .route("/threads/{id}/runs/{run}", get(one).delete(remove))
        .route("/threads/{id}/runs/{run}/join", get(join))
        .route("/threads/{id}/runs/{run}/stream", get(join_stream))
        .route("/threads/{id}/runs/{run}/cancel", post(cancel))
        .route("/runs", post(create_alone))
        .route("/runs/batch", post(create_several))
        .route("/runs/cancel", post(cancel_many))
        .route("/runs/wait", post(wait_alone))
        .route("/runs/stream", post(stream_alone))
        .route("/runs/{run}/stream", get(join_stream_alone))
        .route("/runs/{run}/join", get(join_alone))
}

/// A run that was taken in.
struct Started {
    live: Arc<LiveRun>,
    /// What its stream has.
    reading: Reading,
    ends_on_disconnect: bool,
    /// The run as clients see it, if the answer has it.
    shown: Option<Value>,
}

async fn start(app: &Arc<App>, thread: &str, body: &Value, shows: bool) -> Result<Started, ApiError> {
    start_as_asked(app, thread, RunRequest::read(app, body).await?, shows).await
}

/// Starts a run for a command of the second protocol, and returns its id. From it on the thread keeps its
/// events.
pub(super) async fn start_kept(app: &Arc<App>, thread: &str, body: &Value) -> Result<String, ApiError> {
    let mut request = RunRequest::read(app, body).await?;
    request.kwargs["keeps_events"] = true.into();
    Ok(start_as_asked(app, thread, request, false).await?.live.id.clone())
}

async fn start_as_asked(
    app: &Arc<App>,
    thread: &str,
    mut request: RunRequest,
    shows: bool,
) -> Result<Started, ApiError> {
    let thread = match app.thread(thread).await {
        Err(error) if error.status == StatusCode::NOT_FOUND && request.makes_thread => {
            app.create_thread(Some(thread), Map::new(), true).await?
        }
        found => found?,
    };
    request.kwargs["input"] = named_back(request.kwargs["input"].take(), &thread);
    start_on(app, thread, request, shows).await
}

/// Starts a run on a thread of its own, which ends with it unless the caller keeps it.
async fn start_alone(app: &Arc<App>, body: &Value, shows: bool) -> Result<Started, ApiError> {
    let mut request = RunRequest::read(app, body).await?;
    request.is_temporary = match text(body, "on_completion")?.as_deref() {
        None | Some("delete") => true,
        Some("keep") => false,
        Some(_) => return Err(ApiError::invalid("on_completion must be delete or keep")),
    };
    let thread = app.create_thread(None, Map::new(), false).await?;
    start_on(app, thread, request, shows).await
}

async fn start_on(
    app: &Arc<App>,
    thread: Record,
    request: RunRequest,
    shows: bool,
) -> Result<Started, ApiError> {
    let reading = Reading { modes: request.modes(), with_ids: request.is_resumable(), after: None };
    let ends_on_disconnect = request.ends_on_disconnect;
    let (run, assistant, strategy) = request.into_run(&thread);
    let shown = shows.then(|| run_json(&run));
    let live = app.accept(thread, run, &assistant, strategy).await?;
    Ok(Started { live, reading, ends_on_disconnect, shown })
}

impl Started {
    /// Where clients find the run again.
    fn at(live: &LiveRun, is_alone: bool, tail: &str, response: impl IntoResponse) -> Response {
        let place = match is_alone {
            true => format!("/runs/{}", live.id),
            false => format!("/threads/{}/runs/{}", live.thread, live.id),
        };
        let mut response = response.into_response();
        let mut add = |name: HeaderName, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(name, value);
            }
        };
        if !tail.is_empty() {
            add(header::LOCATION, format!("{place}{tail}"));
        }
        add(header::CONTENT_LOCATION, place);
        response
    }

    fn guard(&self) -> Option<StopOnDrop> {
        self.ends_on_disconnect.then(|| StopOnDrop(Arc::clone(&self.live)))
    }

    fn answered(self, is_alone: bool) -> Response {
        Self::at(&self.live, is_alone, "", Json(self.shown))
    }

    async fn waited(self, is_alone: bool) -> Response {
        let _guard = self.guard();
        let result = self.live.result().await;
        Self::at(&self.live, is_alone, "/join", Json(result))
    }

    fn streamed(self, app: &App, is_alone: bool) -> Response {
        let (live, guard) = (Arc::clone(&self.live), self.guard());
        let response = run_stream(live, self.reading, app.settings.heartbeat, guard);
        Self::at(&self.live, is_alone, "/stream", response)
    }
}

async fn create(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    Ok(start(&app, &id, &body, true).await?.answered(false))
}

async fn wait(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    Ok(start(&app, &id, &body, false).await?.waited(false).await)
}

async fn stream(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    Ok(start(&app, &id, &body, false).await?.streamed(&app, false))
}

async fn create_alone(Shared(app): Shared, Body(body): Body) -> Reply {
    Ok(start_alone(&app, &body, true).await?.answered(true))
}

/// Starts several runs, all or none, each on a thread of its own.
async fn create_several(Shared(app): Shared, Parsed(body): Parsed) -> Reply {
    let runs = body.as_array().ok_or_else(|| ApiError::invalid("the body must be a list of runs"))?;
    for run in runs {
        RunRequest::read(&app, run).await?;
    }
    let mut shown = Vec::with_capacity(runs.len());
    for run in runs {
        shown.push(start_alone(&app, run, true).await?.shown);
    }
    Ok(Json(json!(shown)).into_response())
}

async fn wait_alone(Shared(app): Shared, Body(body): Body) -> Reply {
    Ok(start_alone(&app, &body, false).await?.waited(true).await)
}

async fn stream_alone(Shared(app): Shared, Body(body): Body) -> Reply {
    Ok(start_alone(&app, &body, false).await?.streamed(&app, true))
}

async fn list(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let thread = app.thread(&id).await?;
    let query = Query {
        parent: Some(thread.id),
        status: fields.get("status").map(str::to_owned),
        descending: true,
        offset: fields.number("offset", 0)?,
        limit: fields.number("limit", 10)?,
        ..Query::all(Kind::Run)
    };
    let runs = app.records.page(&query).await?;
    Ok(Json(runs.iter().map(run_json).collect::<Value>()).into_response())
}

async fn one(Shared(app): Shared, Path((id, run)): Path<(String, String)>) -> Reply {
    Ok(Json(run_json(&app.run(&id, &run).await?)).into_response())
}

async fn remove(Shared(app): Shared, Path((id, run)): Path<(String, String)>) -> Reply {
    let run = app.run(&id, &run).await?;
    if app.live_run(&run).is_some_and(|live| !live.has_ended()) {
        return Err(ApiError::conflict("the run is under way: cancel it first"));
    }
    app.records.remove(Kind::Run, &run.id).await?;
    app.records.forget(&run.id).await?;
    app.live.forget(&run.id);
    Ok(no_content())
}

async fn join(Shared(app): Shared, Path((id, run)): Path<(String, String)>, fields: Fields) -> Reply {
    joined(&app, &app.run(&id, &run).await?, &fields).await
}

async fn join_alone(Shared(app): Shared, Path(run): Path<String>, fields: Fields) -> Reply {
    let run = alone(&app, &run).await?;
    joined(&app, &run, &fields).await
}

/// Finds a run by its id alone, which works for runs of this process. The record may be deleted already.
async fn alone(app: &App, run: &str) -> Result<Record, ApiError> {
    let run = crate::ids::parse_uuid("run_id", run)?;
    if let Some(found) = app.records.get(Kind::Run, &run).await? {
        return Ok(found);
    }
    let live = app.live.run(&run).filter(|live| app.has(live.owner.as_deref()));
    let live = live.ok_or_else(|| ApiError::unknown("Run", &run))?;
    let data = json!({});
    let (parent, status) = (live.thread.clone(), "success".to_owned());
    Ok(Record { kind: Kind::Run, id: run, parent, status, created: 0, updated: 0, version: 0, data })
}

async fn joined(app: &Arc<App>, run: &Record, fields: &Fields) -> Reply {
    let result = match app.live_run(run) {
        Some(live) => {
            let cancels = fields.flag("cancel_on_disconnect");
            let _guard = cancels.then(|| StopOnDrop(Arc::clone(&live)));
            live.result().await
        }
        None => wait_result(app, run).await?,
    };
    Ok(Json(result).into_response())
}

async fn join_stream(
    Shared(app): Shared,
    Path((id, run)): Path<(String, String)>,
    headers: HeaderMap,
    fields: Fields,
) -> Reply {
    followed(&app, &app.run(&id, &run).await?, &headers, &fields).await
}

async fn join_stream_alone(
    Shared(app): Shared,
    Path(run): Path<String>,
    headers: HeaderMap,
    fields: Fields,
) -> Reply {
    let run = alone(&app, &run).await?;
    followed(&app, &run, &headers, &fields).await
}

async fn followed(app: &Arc<App>, run: &Record, headers: &HeaderMap, fields: &Fields) -> Reply {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = match last {
        // All of them: an id that no event has.
        None | Some("" | "-1") => None,
        Some(id) => {
            let number = id.rsplit('~').next().unwrap_or_default().parse();
            Some(number.map_err(|_| ApiError::invalid("last-event-id is none of this server"))?)
        }
    };
    let with_ids = run.data["kwargs"]["resumable"] == true;
    let reading = Reading { modes: fields.all("stream_mode"), with_ids, after };
    if let Some(live) = app.live_run(run) {
        let cancels = fields.flag("cancel_on_disconnect");
        let guard = cancels.then(|| StopOnDrop(Arc::clone(&live)));
        return Ok(run_stream(live, reading, app.settings.heartbeat, guard));
    }
    Ok(stored_stream(app.stored_frames(&run.id, after).await?, reading))
}

fn action_of(fields: &Fields) -> Result<StopAction, ApiError> {
    match fields.get("action") {
        None | Some("interrupt") => Ok(StopAction::Interrupt),
        Some("rollback") => Ok(StopAction::RollBack),
        Some(_) => Err(ApiError::invalid("action must be interrupt or rollback")),
    }
}

/// Cancels runs of a thread by their ids, or all with a status.
async fn cancel_many(Shared(app): Shared, fields: Fields, Body(body): Body) -> Reply {
    let action = action_of(&fields)?;
    let mut runs = Vec::new();
    match (text(&body, "status")?.as_deref(), text(&body, "thread_id")?, texts(&body, "run_ids")?) {
        (Some(status @ ("pending" | "running" | "all")), None, None) => {
            for known in
                ["pending", "running"].into_iter().filter(|known| status == "all" || status == *known)
            {
                let query = Query { status: Some(known.to_owned()), ..Query::all(Kind::Run) };
                runs.extend(app.records.page(&query).await?);
            }
        }
        (None, Some(thread), Some(ids)) => {
            let thread = crate::ids::parse_uuid("thread_id", &thread)?;
            for id in ids {
                let id = crate::ids::parse_uuid("run_id", &id)?;
                let found = app.records.get(Kind::Run, &id).await?;
                runs.extend(found.filter(|run| run.parent == thread));
            }
        }
        _ => {
            let detail = "either status is pending, running or all, or thread_id and run_ids name runs";
            return Err(ApiError::invalid(detail));
        }
    }
    for run in runs.iter().filter(|_| action == StopAction::RollBack) {
        app.check_rollback(run.data["graph_id"].as_str().unwrap_or_default())?;
    }
    // The newest first: one that waits would begin when the one before it ends.
    runs.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
    let mut cancelled = false;
    for run in &runs {
        cancelled |= app.cancel(run, action, false).await?;
    }
    if !cancelled {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "No runs found to cancel."));
    }
    Ok(no_content())
}

async fn cancel(Shared(app): Shared, Path((id, run)): Path<(String, String)>, fields: Fields) -> Reply {
    let run = app.run(&id, &run).await?;
    let action = action_of(&fields)?;
    let wait = fields.flag("wait");
    if action == StopAction::RollBack {
        app.check_rollback(run.data["graph_id"].as_str().unwrap_or_default())?;
    }
    if !app.cancel(&run, action, wait).await? {
        let detail = format!("Run {} is neither pending nor running", run.id);
        return Err(ApiError::new(StatusCode::NOT_FOUND, detail));
    }
    Ok(match wait {
        true => Json(json!({})).into_response(),
        false => StatusCode::ACCEPTED.into_response(),
    })
}
