//! `/threads`: making, finding, changing, copying and removing them.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::body::{Body, Fields, list, may_exist, only, order_of, page_of, selected, text};
use super::sse::thread_stream;
use super::{Reply, Shared, no_content, page};
use crate::app::{App, merge};
use crate::error::ApiError;
use crate::graph::Edit;
use crate::ids;
use crate::live::StopAction;
use crate::records::{Kind, Query, Record, SortBy, contains};
use crate::runs::optional_object;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/threads", post(create))
        .route("/threads/search", post(search))
        .route("/threads/count", post(count))
        .route("/threads/{id}", get(one).patch(change).delete(remove))
        .route("/threads/{id}/copy", post(copy))
        .route("/threads/{id}/stream", get(stream))
}

async fn create(Shared(app): Shared, Body(body): Body) -> Reply {
    let mut metadata = optional_object(&body, "metadata")?;
    if let Some(graph) = text(&body, "graph_id")? {
        if !app.graphs.contains_key(&graph) {
            return Err(ApiError::unknown("Graph", &graph));
        }
        metadata.insert("graph_id".to_owned(), graph.into());
    }
    let may_exist = may_exist(&body)?;
    let edits = supersteps(&body["supersteps"])?;
    let made = app.create_thread(text(&body, "thread_id")?.as_deref(), metadata, may_exist).await?;
    if edits.is_empty() {
        return Ok(Json(app.thread_json(&made, &[]).await?).into_response());
    }
    if let Err(error) = play(&app, &made, edits).await {
        if made.version == 1 {
            app.records.remove(Kind::Thread, &made.id).await?;
        }
        return Err(error);
    }
    Ok(Json(app.thread_json(&app.thread(&made.id).await?, &[]).await?).into_response())
}

/// The supersteps with which a thread begins: what nodes have returned elsewhere.
fn supersteps(given: &Value) -> Result<Vec<Edit>, ApiError> {
    let wrong = || ApiError::invalid("supersteps must be a list of {updates: [{values, as_node}]}");
    let given = match given {
        Value::Null => &[],
        given => given.as_array().ok_or_else(wrong)?.as_slice(),
    };
    let mut edits = Vec::new();
    for step in given {
        let mut updates = Vec::new();
        for update in step["updates"].as_array().filter(|updates| !updates.is_empty()).ok_or_else(wrong)? {
            let node = text(update, "as_node")?.ok_or_else(wrong)?;
            let is_plain =
                update["command"].is_null() && (update["values"].is_null() || update["values"].is_object());
            let values = Some(update["values"].clone()).filter(|_| is_plain).ok_or_else(wrong)?;
            updates.push((node, if values.is_null() { json!({}) } else { values }));
        }
        let (node, values) = updates.remove(0);
        edits.push(Edit { values: Some(values), as_node: Some(node), siblings: updates, ..Edit::default() });
    }
    Ok(edits)
}

/// Makes the edits of a thread that has no state yet.
async fn play(app: &App, thread: &Record, edits: Vec<Edit>) -> Result<(), ApiError> {
    let graph = app.graph_of(thread);
    let graph = graph.ok_or_else(|| ApiError::invalid("supersteps are for a thread with a graph_id"))?;
    if graph.head(&thread.id).await?.is_some() {
        return Err(ApiError::conflict(format!("Thread {} already has a state", thread.id)));
    }
    for edit in edits {
        if let Err(error) = graph.edit(&thread.id, edit).await {
            graph.delete(&thread.id).await?;
            return Err(error.into());
        }
    }
    app.thread_was_edited(&thread.id, &**graph).await
}

fn query_of(body: &Value) -> Result<Query, ApiError> {
    let status = text(body, "status")?;
    if status.as_deref().is_some_and(|status| !["idle", "busy", "interrupted", "error"].contains(&status)) {
        return Err(ApiError::invalid("status must be idle, busy, interrupted or error"));
    }
    let ids = list(body, "ids")?;
    let (sort, descending) = order_of(body, "thread_id")?;
    let metadata = optional_object(body, "metadata")?;
    Ok(Query { status, ids, metadata, sort, descending, ..Query::all(Kind::Thread) })
}

/// The threads of a query whose values contain those of the body. Values are read from the checkpoints, so
/// this reads every thread that the query selects.
async fn with_values(app: &App, query: &Query, values: &Map<String, Value>) -> Result<Vec<Record>, ApiError> {
    let wanted = Value::Object(values.clone());
    let mut found = Vec::new();
    for thread in app.records.page(query).await? {
        // A thread without values has none of them.
        if contains(&app.thread_json(&thread, &["values".to_owned()]).await?["values"], &wanted) {
            found.push(thread);
        }
    }
    Ok(found)
}

/// The names of the fields that a search for threads gives.
const FIELDS: [&str; 11] = [
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "status",
    "config",
    "error",
    "values",
    "interrupts",
    "tokens",
];

/// A place in the order of threads.
fn place(id: String) -> Record {
    let (parent, status) = (String::new(), String::new());
    Record { kind: Kind::Thread, id, parent, status, created: 0, updated: 0, version: 0, data: Value::Null }
}

/// The place of a thread as its caller has seen it. It may be elsewhere by now.
fn place_of(body: &Value, name: &str) -> Result<Option<Record>, ApiError> {
    if body[name].is_null() {
        return Ok(None);
    }
    let seen = Value::Object(optional_object(body, name)?);
    let time =
        |name| Ok::<_, ApiError>(text(&seen, name)?.and_then(|time| ids::micros(&time)).unwrap_or_default());
    Ok(Some(Record {
        status: text(&seen, "status")?.unwrap_or_default(),
        created: time("created_at")?,
        updated: time("updated_at")?,
        ..place(text(&seen, "thread_id")?.unwrap_or_default())
    }))
}

/// A page of a list, also the one that begins after a thread or ends before one: it stays the same while
/// threads in front of it come, go and move.
async fn page_beside(app: &App, query: Query, body: &Value) -> Result<Vec<Record>, ApiError> {
    let (after, before) = (place_of(body, "after")?, place_of(body, "before")?);
    let is_reversed = before.is_some();
    let descending = query.descending != is_reversed;
    let mut found = app.records.page(&Query { after: before.or(after), descending, ..query }).await?;
    if is_reversed {
        found.reverse();
    }
    Ok(found)
}

/// The most threads that a prefix finds, and how many are read at once.
const MOST_BY_PREFIX: usize = 1000;
const READ_BY_PREFIX: usize = 100;

/// The threads of a query whose ids have a prefix, in the order of ids: pages that begin at the prefix, up to
/// the first other id.
async fn with_prefix(app: &App, query: Query, prefix: &str) -> Result<Vec<Record>, ApiError> {
    let prefix = prefix.to_lowercase();
    let mut query = Query { sort: SortBy::Id, descending: false, limit: READ_BY_PREFIX, ..query };
    query.after = Some(place(prefix.clone()));
    let mut found: Vec<Record> = Vec::new();
    loop {
        let page = app.records.page(&query).await?;
        let before = found.len();
        found.extend(page.into_iter().take_while(|thread| thread.id.starts_with(&prefix)));
        if found.len() - before < READ_BY_PREFIX || found.len() >= MOST_BY_PREFIX {
            return Ok(found);
        }
        query.after = found.last().cloned();
    }
}

/// The paths of `extract` by their names, such as `values.messages[-1]`.
fn extract(body: &Value) -> Result<Vec<(String, String)>, ApiError> {
    let read = |(name, path): (String, Value)| {
        let path = path.as_str().filter(|path| {
            ["values", "metadata", "config", "interrupts"]
                .contains(&path.split(['.', '[']).next().unwrap_or(path))
        });
        let wrong = || {
            let paths = "paths that begin with values, metadata, config or interrupts";
            ApiError::invalid(format!("extract must be an object of {paths}"))
        };
        Ok((name, path.ok_or_else(wrong)?.to_owned()))
    };
    optional_object(body, "extract")?.into_iter().map(read).collect()
}

/// The value at a path; null if there is none.
fn at<'a>(thread: &'a Value, path: &str) -> &'a Value {
    path.replace('[', ".[").split('.').fold(thread, |found, part| {
        let Some(index) = part.strip_prefix('[') else { return &found[part] };
        let (index, length) =
            (index.trim_end_matches(']').parse::<i64>().ok(), found.as_array().map_or(0, Vec::len));
        let from_start = index.and_then(|index| match usize::try_from(index) {
            Ok(index) => Some(index),
            Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
        });
        from_start.and_then(|index| found.get(index)).unwrap_or(&Value::Null)
    })
}

async fn search(Shared(app): Shared, Body(body): Body) -> Reply {
    let (offset, limit) = page_of(&body)?;
    let (select, extract) = (selected(&body, &FIELDS)?, extract(&body)?);
    let values = optional_object(&body, "values")?;
    let query = query_of(&body)?;
    let (threads, total) = if let Some(prefix) = text(&body, "id_prefix")? {
        let found = with_prefix(&app, query, &prefix).await?;
        let total = found.len();
        (found.into_iter().skip(offset).take(limit).collect(), total)
    } else if values.is_empty() {
        let total = app.records.count(&query).await?;
        (page_beside(&app, Query { offset, limit, ..query }, &body).await?, total)
    } else {
        let found = with_values(&app, &query, &values).await?;
        let total = found.len();
        (found.into_iter().skip(offset).take(limit).collect(), total)
    };
    let mut read = select.clone();
    if !select.is_empty() {
        read.extend(extract.iter().filter_map(|(_, path)| Some(path.split(['.', '[']).next()?.to_owned())));
    }
    let mut shown = Vec::with_capacity(threads.len());
    for thread in &threads {
        let found = app.thread_json(thread, &read).await?;
        let extracted = extract.iter().map(|(name, path)| (name.clone(), at(&found, path).clone()));
        let extracted = (!extract.is_empty()).then(|| extracted.collect::<Map<_, _>>());
        let mut found = only(found, &select);
        if let Some(extracted) = extracted {
            found["extracted"] = extracted.into();
        }
        shown.push(found);
    }
    Ok(page(shown, offset, total))
}

async fn count(Shared(app): Shared, Body(body): Body) -> Reply {
    let values = optional_object(&body, "values")?;
    let query = query_of(&body)?;
    let count = match text(&body, "id_prefix")? {
        Some(prefix) => with_prefix(&app, query, &prefix).await?.len(),
        None if values.is_empty() => app.records.count(&query).await?,
        None => with_values(&app, &query, &values).await?.len(),
    };
    Ok(Json(count).into_response())
}

async fn one(Shared(app): Shared, Path(id): Path<String>) -> Reply {
    let thread = app.thread(&id).await?;
    Ok(Json(app.thread_json(&thread, &[]).await?).into_response())
}

async fn change(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    let thread = app.thread(&id).await?;
    let metadata = app.owned(optional_object(&body, "metadata")?);
    let changed =
        app.change(Kind::Thread, &thread.id, |thread| merge(&mut thread.data["metadata"], &metadata));
    let changed = changed.await?.ok_or_else(|| ApiError::unknown("Thread", &id))?;
    Ok(Json(app.thread_json(&changed, &[]).await?).into_response())
}

/// Removes a thread with everything of it. Its runs are stopped first, so that none writes to it afterwards.
async fn remove(Shared(app): Shared, Path(id): Path<String>) -> Reply {
    let thread = app.thread(&id).await?;
    for run in app.open_runs(&thread.id).await? {
        run.stop(StopAction::Interrupt);
        run.result().await;
    }
    if let Some(graph) = app.graph_of(&thread) {
        graph.delete(&thread.id).await?;
    }
    // All of them: an operator may have given the thread to another owner after some.
    let app = app.whole();
    let runs = Query { parent: Some(thread.id.clone()), ..Query::all(Kind::Run) };
    for run in app.records.page(&runs).await? {
        app.records.remove(Kind::Run, &run.id).await?;
        app.records.forget(&run.id).await?;
    }
    app.forget_events(&thread.id).await?;
    app.records.remove(Kind::Thread, &thread.id).await?;
    Ok(no_content())
}

async fn copy(Shared(app): Shared, Path(id): Path<String>) -> Reply {
    let thread = app.thread(&id).await?;
    let to = ids::new_id();
    if let Some(graph) = app.graph_of(&thread)
        && graph.state(&thread.id, None).await?.is_some()
    {
        graph.copy(&thread.id, &to).await?;
    }
    let status = if thread.status == "busy" { "interrupted" } else { &thread.status };
    let made = app.insert((Kind::Thread, &to, ""), status, thread.data.clone()).await?;
    let made = made.ok_or_else(|| ApiError::conflict("the copy already exists"))?;
    Ok(Json(app.thread_json(&made, &[]).await?).into_response())
}

/// The events of all runs of a thread, as they come. It stays open between them.
async fn stream(
    Shared(app): Shared,
    Path(id): Path<String>,
    headers: axum::http::HeaderMap,
    _: Fields,
) -> Reply {
    let thread = app.thread(&id).await?;
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    Ok(thread_stream(app, thread.id, after).await?)
}
