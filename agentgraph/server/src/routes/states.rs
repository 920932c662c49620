//! `/threads/{id}/state` and `/threads/{id}/history`.

use std::ops::RangeBounds;
use std::sync::Arc;

use agentgraph::CheckpointId;
use agentgraph::run::InterruptKind;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::body::{Body, Fields, number, text};
use super::{Reply, Shared, both};
use crate::app::{App, checkpoint_json, empty_state, named_back, undone};
use crate::error::ApiError;
use crate::graph::{Edit, HistoryStart, Moment, ServedGraph};
use crate::ids::{WirePlace, engine_namespace};
use crate::records::{Record, contains};
use crate::runs::{checkpoint, optional_object};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/threads/{id}/state", both(state, update))
        .route("/threads/{id}/state/checkpoint", post(state_at))
        .route("/threads/{id}/state/{checkpoint}", get(state_by_path))
        .route("/threads/{id}/history", both(history_by_query, history))
}

async fn state(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    shown(&app, &id, None, fields.flag("subgraphs")).await
}

async fn state_by_path(Shared(app): Shared, Path((id, at)): Path<(String, String)>, fields: Fields) -> Reply {
    shown(&app, &id, Some(WirePlace::parse(&at)?), fields.flag("subgraphs")).await
}

async fn state_at(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    match text(&body["checkpoint"], "checkpoint_ns")?.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => shown_inside(&app, &id, &namespace, checkpoint(&body)?).await,
        None => shown(&app, &id, checkpoint(&body)?, body["subgraphs"] == true).await,
    }
}

/// A state of a subgraph: the newest one, or that of a checkpoint.
async fn shown_inside(app: &App, id: &str, namespace: &str, place: Option<WirePlace>) -> Reply {
    let (thread, namespace) = (app.thread(id).await?, engine_namespace(namespace));
    let unknown = || ApiError::new(StatusCode::NOT_FOUND, "Checkpoint not found");
    let graph = app.graph_of(&thread).ok_or_else(unknown)?;
    let mut found = graph.state_inside(&thread.id, &namespace).await?.ok_or_else(unknown)?;
    if let Some(place) = place.filter(|place| place.id != found.id) {
        let moments = graph.history_inside(&thread.id, &namespace, None, PAGE * PAGE).await?;
        found = moments.into_iter().find(|moment| moment.id == place.id).ok_or_else(unknown)?;
    }
    let head = graph.state(&thread.id, None).await?;
    let form = app.state_form(&thread, &**graph, head.as_ref()).await?;
    Ok(Json(form.state_inside(&found, &namespace)).into_response())
}

async fn shown(app: &App, id: &str, place: Option<WirePlace>, subgraphs: bool) -> Reply {
    let thread = app.thread(id).await?;
    let unknown = || ApiError::new(StatusCode::NOT_FOUND, "Checkpoint not found");
    let Some(graph) = app.graph_of(&thread) else {
        return if place.is_some() { Err(unknown()) } else { Ok(Json(empty_state()).into_response()) };
    };
    let head = graph.state(&thread.id, None).await?;
    let head = app.as_seen(&thread, &**graph, head).await?;
    let inside = head.as_ref().filter(|_| subgraphs);
    let form = app.state_form(&thread, &**graph, inside).await?;
    let found = match (place, head) {
        (None, None) => return Ok(Json(empty_state()).into_response()),
        (None, Some(head)) => return Ok(Json(form.state(&head)).into_response()),
        // Only the head has its open work.
        (Some(place), Some(head)) if place == WirePlace::at(head.id) => Some(head),
        (Some(place), _) => graph.state(&thread.id, Some(place.id)).await?,
    };
    let found = found.ok_or_else(unknown)?;
    let state = match place.filter(|place| place.is_before_input) {
        Some(_) => {
            let before = match found.parent {
                Some(parent) => graph.state(&thread.id, Some(parent)).await?,
                None => None,
            };
            form.state_before(&found, before.as_ref())
        }
        None => form.state(&found),
    };
    Ok(Json(state).into_response())
}

async fn update(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    let thread = app.thread(&id).await?;
    let Some(graph) = app.graph_of(&thread) else {
        let detail = "the thread has no graph yet: run one, or make the thread with a graph_id";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, detail));
    };
    let values = match &body["values"] {
        Value::Null => None,
        Value::Object(_) => Some(named_back(body["values"].clone(), &thread)),
        _ => return Err(ApiError::invalid("values must be an object of channels")),
    };
    let mut at = checkpoint(&body)?;
    if let Some(place) = at.filter(|at| at.is_before_input) {
        let parent = graph.state(&thread.id, Some(place.id)).await?.and_then(|moment| moment.parent);
        let wrong =
            || ApiError::invalid("the place before the first input cannot be changed: begin a run there");
        at = Some(WirePlace::at(parent.ok_or_else(wrong)?));
    }
    let at = at.map(|at| at.id);
    let mut as_node = text(&body, "as_node")?;
    if as_node.is_none() && values.is_some() {
        as_node = last_node(&app, &thread, &**graph, at).await?;
    }
    let made = graph.edit(&thread.id, Edit { at, values, as_node, ..Edit::default() }).await?;
    app.thread_was_edited(&thread.id, &**graph).await?;
    let checkpoint = checkpoint_json(&thread.id, WirePlace::at(made));
    Ok(Json(json!({
        "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": checkpoint["checkpoint_id"],
    }))
    .into_response())
}

/// The node that an edit without `as_node` belongs to: the one that ran last, so that its routes choose
/// again. `None` if several ran at once, and while a question is open, which such an edit keeps.
async fn last_node(
    app: &App,
    thread: &Record,
    graph: &dyn ServedGraph,
    at: Option<CheckpointId>,
) -> Result<Option<String>, ApiError> {
    let start = || Some("__start__".to_owned());
    let Some(mut moment) = graph.state(&thread.id, at).await? else {
        return Ok(start().filter(|_| at.is_none()));
    };
    if moment.interrupts.iter().any(|interrupt| interrupt.kind == InterruptKind::Asked) {
        return Ok(None);
    }
    loop {
        if begins(&moment) {
            return Ok(start());
        }
        let Some(parent) = moment.parent else { return Ok(start().filter(|_| moment.source != "loop")) };
        let Some(before) = graph.state(&thread.id, Some(parent)).await? else { return Ok(None) };
        if moment.source == "loop" {
            let form = app.state_form(thread, graph, None).await?;
            return Ok(match before.next.as_slice() {
                [node] if form.is_one_step(&moment) => Some(node.clone()),
                _ => None,
            });
        }
        moment = before;
    }
}

async fn history_by_query(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let limit = fields.number("limit", 10)?;
    let before = fields.get("before").map(WirePlace::parse).transpose()?;
    let of_one_line = fields.flag("line");
    listed(&app, &id, before, limit, &Map::new(), &fields.all("select"), of_one_line).await
}

async fn history(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    let before = match &body["before"] {
        Value::Null => None,
        Value::String(id) => Some(WirePlace::parse(id)?),
        // A checkpoint, or a config that holds one.
        Value::Object(fields) => {
            let inside = fields.get("configurable").or_else(|| fields.get("checkpoint"));
            let inside = inside.filter(|inside| inside.is_object()).unwrap_or(&body["before"]);
            checkpoint(&json!({ "checkpoint": inside }))?
        }
        _ => return Err(ApiError::invalid("before must be a checkpoint or its id")),
    };
    let metadata = optional_object(&body, "metadata")?;
    let select = super::body::list(&body, "select")?.unwrap_or_default();
    let limit = number(&body, "limit", 10)?;
    match text(&body["checkpoint"], "checkpoint_ns")?.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => listed_inside(&app, &id, &namespace, (before, limit), &metadata, &select).await,
        None => listed(&app, &id, before, limit, &metadata, &select, false).await,
    }
}

/// How many checkpoints are read at once.
const PAGE: usize = 64;

/// The states of all branches, the newest first, or only the newest one and those that it follows from.
async fn listed(
    app: &App,
    id: &str,
    before: Option<WirePlace>,
    limit: usize,
    metadata: &Map<String, Value>,
    select: &[String],
    of_one_line: bool,
) -> Reply {
    let thread = app.thread(id).await?;
    let graph = app.graph_of(&thread).filter(|_| limit > 0);
    let Some(graph) = graph else { return Ok(Json(json!([])).into_response()) };
    let head = graph.state(&thread.id, None).await?;
    let Some(newest) = before.map(|before| before.id).or(head.as_ref().map(|head| head.id)) else {
        return Ok(Json(json!([])).into_response());
    };
    let head = app.as_seen(&thread, &**graph, head).await?;
    let form = app.state_form(&thread, &**graph, None).await?;
    let mut found: Vec<Value> = Vec::new();
    let wanted = Value::Object(metadata.clone());
    let add = |found: &mut Vec<Value>, state: Value| {
        if contains(&state["metadata"], &wanted) {
            found.push(selected(state, select));
        }
        found.len() >= limit
    };
    // The place before an input is listed after its checkpoint, which `before` leaves out.
    if let Some(place) = before.filter(|place| !place.is_before_input)
        && let Some(moment) = graph.state(&thread.id, Some(place.id)).await?
        && begins(&moment)
    {
        let earlier = graph.history(&thread.id, HistoryStart::Before(place.id), 1).await?;
        if add(&mut found, form.state_before(&moment, earlier.first())) {
            return Ok(Json(found).into_response());
        }
    }
    let undone = undone(&thread);
    let page = limit.min(PAGE);
    // A later branch has a greater number, and only the newest one grows: this is the order of the ids.
    let oldest = if of_one_line { newest.branch } else { 0 };
    for branch in (oldest..=newest.branch).rev() {
        let mut from = match before.filter(|before| before.id.branch == branch) {
            Some(before) => HistoryStart::Before(before.id),
            None => HistoryStart::Branch(branch),
        };
        loop {
            // One more: the place before an input shows the values of the checkpoint before it.
            let moments = graph.history(&thread.id, from, page + 1).await?;
            for (at, moment) in moments.iter().take(page).enumerate() {
                let is_undone = || undone.iter().any(|undone| undone.contains(&moment.id));
                if (!of_one_line && moment.id.branch != branch) || is_undone() {
                    continue;
                }
                // The history has no open work; the head has.
                let moment = head.as_ref().filter(|head| head.id == moment.id).unwrap_or(moment);
                let is_full = add(&mut found, form.state(moment))
                    || begins(moment) && add(&mut found, form.state_before(moment, moments.get(at + 1)));
                if is_full {
                    return Ok(Json(found).into_response());
                }
            }
            match moments.get(page).and_then(|_| moments.get(page - 1)) {
                Some(last) if of_one_line || last.id.branch >= branch => from = HistoryStart::Before(last.id),
                _ => break,
            }
        }
    }
    Ok(Json(found).into_response())
}

/// The states of a subgraph, by its namespace.
async fn listed_inside(
    app: &App,
    id: &str,
    namespace: &str,
    (before, limit): (Option<WirePlace>, usize),
    metadata: &Map<String, Value>,
    select: &[String],
) -> Reply {
    let thread = app.thread(id).await?;
    let Some(graph) = app.graph_of(&thread) else { return Ok(Json(json!([])).into_response()) };
    let namespace = engine_namespace(namespace);
    let around = graph.state(&thread.id, None).await?;
    let form = app.state_form(&thread, &**graph, around.as_ref()).await?;
    let head = match before {
        None => graph.state_inside(&thread.id, &namespace).await?,
        Some(_) => None,
    };
    // A call has few checkpoints, and each may be two states.
    let read = limit.min(PAGE * PAGE);
    let moments = graph.history_inside(&thread.id, &namespace, before.map(|place| place.id), read).await?;
    let mut states = Vec::new();
    for (at, moment) in moments.iter().enumerate() {
        // The history has no open work; the head has.
        let moment = head.as_ref().filter(|head| head.id == moment.id).unwrap_or(moment);
        states.push(form.state_inside(moment, &namespace));
        if begins(moment) {
            states.push(form.state_before_inside(moment, moments.get(at + 1), &namespace));
        }
    }
    let wanted = Value::Object(metadata.clone());
    let states = states.into_iter().filter(|state| contains(&state["metadata"], &wanted)).take(limit);
    Ok(Json(states.map(|state| selected(state, select)).collect::<Value>()).into_response())
}

fn begins(moment: &Moment) -> bool {
    moment.source == "input"
}

/// The fields of a state that are wanted, `values.key` for one channel; all if none is named.
fn selected(state: Value, select: &[String]) -> Value {
    if select.is_empty() {
        return state;
    }
    let mut shown = Map::new();
    for name in select {
        match name.split_once('.') {
            Some(("values", channel)) => {
                let values = shown.entry("values").or_insert_with(|| json!({}));
                if let Some(value) = state["values"].get(channel) {
                    values[channel] = value.clone();
                }
            }
            _ => {
                if let Some(value) = state.get(name) {
                    shown.insert(name.clone(), value.clone());
                }
            }
        }
    }
    Value::Object(shown)
}
