//! `/ui`: the page, and what it reads beside the routes for LangGraph's clients. The page itself is open to
//! callers without a key, so that it can ask for one; it holds no data.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::CheckpointId;
use agentgraph::run::{Interrupt, InterruptKind};
use axum::extract::Path;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::body::Fields;
use super::{Reply, Shared};
use crate::app::App;
use crate::error::ApiError;
use crate::graph::{Opened, Order, ServedGraph};
use crate::ids::{self, WirePlace};
use crate::records::{Kind, Query, Record, SortBy};

/// Nothing but files of this server is loaded, and nothing in them is run but modules.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../ui/", $name)))),*] };
}

const FILES: &[(&str, &str)] = files![
    "index.html",
    "page.css",
    "address.js",
    "api.js",
    "chat.js",
    "compare.js",
    "cost.js",
    "delta.js",
    "dom.js",
    "fork.js",
    "form.js",
    "graph.js",
    "graphs.js",
    "inspector.js",
    "json.js",
    "main.js",
    "markdown.js",
    "questions.js",
    "run.js",
    "schema.js",
    "start.js",
    "store.js",
    "testcase.js",
    "threads.js",
    "timeline.js",
    "token.js",
    "work.js",
    "vendor/marked.esm.js",
    "vendor/purify.es.mjs",
];

/// The page.
pub(super) fn page() -> Router<Arc<App>> {
    // Relative, since the routes may be nested in those of an application.
    let redirect = async || (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "ui/")]);
    Router::new()
        .route("/ui", get(redirect))
        .route("/ui/", get(async || file("index.html")))
        .route("/ui/{file}", get(async |Path(name): Path<String>| file(&name)))
}

fn file(name: &str) -> Response {
    let Some((_, text)) = FILES.iter().find(|(known, _)| known.trim_start_matches("vendor/") == name) else {
        return ApiError::new(StatusCode::NOT_FOUND, "Not Found").into_response();
    };
    let kind = match name.rsplit_once('.') {
        Some((_, "js" | "mjs")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    (guards(kind), *text).into_response()
}

fn guards(kind: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ]
}

/// What the page reads.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/ui/graphs", get(graphs))
        .route("/ui/prices", get(async |Shared(app): Shared| Json(json!(app.settings.prices))))
        .route("/ui/graphs/{graph}", get(drawing))
        .route("/ui/graphs/{graph}/findings", get(findings))
        .route("/ui/questions", get(questions))
        .route("/ui/threads/{id}", get(thread))
        .route("/ui/threads/{id}/trace/{run}", get(trace))
        .route("/ui/threads/{id}/order/{run}", get(order))
        .route("/ui/threads/{id}/drawing", get(drawing_at))
        .route("/ui/threads/{id}/branches", get(branches))
        .route("/ui/threads/{id}/report", get(report))
}

/// The graphs with all that a form for their input needs.
async fn graphs(Shared(app): Shared) -> Reply {
    let shown = app.graphs.iter().map(|(name, graph)| {
        json!({
            "graph_id": name, "assistant_id": ids::assistant_of(name), "initial": graph.initial(),
            "schema": graph.schema(), "is_eager": graph.is_eager(),
        })
    });
    Ok(Json(shown.collect::<Value>()).into_response())
}

async fn drawing(Shared(app): Shared, Path(file): Path<String>, fields: Fields) -> Reply {
    let unknown = || ApiError::unknown("Graph", &file);
    let (name, kind) = file.rsplit_once('.').ok_or_else(unknown)?;
    let graph = app.graphs.get(name).ok_or_else(unknown)?;
    match kind {
        "svg" => Ok((guards(SVG), graph.svg(&opened(&fields))).into_response()),
        "mmd" => Ok((guards("text/plain; charset=utf-8"), graph.mermaid()).into_response()),
        _ => Err(unknown()),
    }
}

/// The files of findings about a graph, by name; `problem` is set for one that cannot be read.
async fn findings(Shared(app): Shared, Path(graph): Path<String>) -> Reply {
    let Some(path) = app.settings.findings.get(&graph).cloned() else {
        return Ok(Json(json!([])).into_response());
    };
    let read = tokio::task::spawn_blocking(move || findings_in(&path)).await;
    Ok(Json(read.unwrap_or_default()).into_response())
}

fn findings_in(path: &std::path::Path) -> Value {
    let folder = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> =
        folder.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    if !path.is_dir() {
        files.push(path.to_owned());
    }
    files.sort();
    let shown = files.iter().take(100).map(|path| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let read =
            text.and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()));
        let file = path.file_stem().unwrap_or_default().to_string_lossy();
        match read {
            Ok(report) => json!({ "file": file, "runs": report["runs"], "findings": report["findings"] }),
            Err(problem) => json!({ "file": file, "problem": problem }),
        }
    });
    shown.collect()
}

const SVG: &str = "image/svg+xml";

/// The subgraphs that are to be drawn as graphs: paths in `open`, or all if it is not there.
fn opened(fields: &Fields) -> Opened {
    match fields.get("open") {
        None => Opened::AsFit,
        Some(_) => Opened::Paths(fields.all("open")),
    }
}

/// The graph of a thread's run, with its temporary edits.
async fn drawing_at(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let (thread, graph) = thread_with_graph(&app, &id).await?;
    let drawn = graph.svg_at(&thread, place(&fields)?, opened(&fields)).await?;
    let drawn = drawn.ok_or_else(|| ApiError::unknown("Checkpoint of thread", &id))?;
    Ok((guards(SVG), drawn).into_response())
}

async fn thread_with_graph(app: &App, id: &str) -> Result<(String, Arc<dyn ServedGraph>), ApiError> {
    let thread = app.thread(id).await?;
    let graph = app.graph_of(&thread).ok_or_else(|| ApiError::unknown("Graph of thread", id))?;
    Ok((thread.id.clone(), Arc::clone(graph)))
}

/// The checkpoint in `at`.
fn place(fields: &Fields) -> Result<Option<CheckpointId>, ApiError> {
    Ok(fields.get("at").map(WirePlace::parse).transpose()?.map(|place| place.id))
}

/// The branches of a thread, the newest first.
async fn branches(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let (thread, graph) = thread_with_graph(&app, &id).await?;
    let branches = graph.branches(&thread).await?;
    let wire = |id: CheckpointId| WirePlace::at(id).wire(&thread);
    let shown = branches.iter().rev().skip(fields.number("offset", 0)?).take(100).map(|branch| {
        json!({
            "number": branch.number, "newest": wire(branch.newest), "began_at": branch.began_at.map(wire),
        })
    });
    Ok(super::page(shown.collect(), 0, branches.len()))
}

/// The joins of a thread that wait, the run that has it, and its temporary edits.
async fn report(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let (thread, graph) = thread_with_graph(&app, &id).await?;
    Ok(Json(graph.report(&thread, place(&fields)?).await?).into_response())
}

/// A thread without its values, and its newest runs without their inputs.
async fn thread(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let thread = app.thread(&id).await?;
    let query = Query {
        parent: Some(thread.id.clone()),
        descending: true,
        offset: fields.number("offset", 0)?,
        limit: fields.number("limit", 20)?.min(100),
        ..Query::all(Kind::Run)
    };
    let runs = app.records.page(&query).await?;
    let count = app.records.count(&query).await?;
    let select = ["thread_id", "created_at", "updated_at", "metadata", "status", "error", "tokens"];
    let mut shown = app.thread_json(&thread, &select.map(str::to_owned)).await?;
    shown["runs"] = runs.iter().map(|run| run_of(&app, run)).collect();
    shown["run_count"] = count.into();
    Ok(Json(shown).into_response())
}

fn run_of(app: &App, run: &Record) -> Value {
    json!({
        "run_id": run.id, "status": run.status, "error": run.data["error"],
        "created_at": ids::time(run.created), "updated_at": ids::time(run.updated),
        "has_trace": app.live.run(&run.id).is_some(), "tokens": run.data["tokens"],
        "stuck": run.data["stuck"], "since": run.data["since"],
    })
}

/// The most marks of an answer.
const MARKS: usize = 1000;
/// How long an answer waits for the next mark.
const WAIT: Duration = Duration::from_secs(10);

/// What a run of this process did, from a position on; `from` is greater than asked for if marks in between
/// were dropped.
async fn trace(Shared(app): Shared, Path((thread, run)): Path<(String, String)>, fields: Fields) -> Reply {
    let run = app.run(&thread, &run).await?;
    let live = app.live.run(&run.id).ok_or_else(|| ApiError::unknown("Trace of run", &run.id))?;
    let after = fields.number("after", 0)?;
    let found = timeout(WAIT, live.trace(after, MARKS)).await;
    let (from, marks, ended) = found.unwrap_or_else(|_| (after, Vec::new(), false));
    let next = from + marks.len();
    let marks = marks.iter().map(|mark| mark()).collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"from":{from},"next":{next},"ended":{ended},"marks":[{marks}]}}"#);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The order in which an eager run merged its tasks, and where a replay left that of the run before it.
async fn order(Shared(app): Shared, Path((id, run)): Path<(String, String)>) -> Reply {
    let (thread, graph) = thread_with_graph(&app, &id).await?;
    let run = app.run(&id, &run).await?;
    let place = |name| Some(WirePlace::parse(run.data[name].as_str()?).ok()?.id);
    let Order { merged, is_whole } = graph.order(&thread, place("began_at"), place("ended_at")).await?;
    let merged = merged.iter().map(|(node, step)| json!({ "node": node, "step": step }));
    let diverged = &run.data["diverged"];
    Ok(Json(json!({ "merged": merged.collect::<Value>(), "is_whole": is_whole, "diverged": diverged }))
        .into_response())
}

/// Waiting threads, a page of them or one, with their questions and the schemas of the answers.
async fn questions(Shared(app): Shared, fields: Fields) -> Reply {
    let query = Query {
        status: Some("interrupted".to_owned()),
        sort: SortBy::Updated,
        descending: true,
        offset: fields.number("offset", 0)?,
        limit: fields.number("limit", 50)?.min(200),
        ..Query::all(Kind::Thread)
    };
    let (threads, total) = match fields.get("thread") {
        Some(id) => (vec![app.thread(id).await?], 1),
        None => (app.records.page(&query).await?, app.records.count(&query).await?),
    };
    let mut waiting = Vec::with_capacity(threads.len());
    for thread in &threads {
        let head = match app.graph_of(thread) {
            Some(graph) => graph.state(&thread.id, None).await?,
            None => None,
        };
        let interrupts = head.as_ref().map(|head| head.interrupts.as_slice()).unwrap_or_default();
        waiting.push(json!({
            "thread_id": thread.id, "updated_at": ids::time(thread.updated),
            "metadata": thread.data["metadata"], "next": head.as_ref().map(|head| &head.next),
            "questions": interrupts.iter().filter_map(question).collect::<Value>(),
        }));
    }
    Ok(super::page(waiting, query.offset, total))
}

fn question(interrupt: &Interrupt) -> Option<Value> {
    let id = interrupt.id.filter(|_| interrupt.kind == InterruptKind::Asked)?;
    let replaces = interrupt.replaces.as_ref();
    Some(json!({
        "id": ids::interrupt_id(id), "node": interrupt.node, "value": interrupt.value,
        "schema": interrupt.schema, "key": interrupt.key,
        "replaces": replaces.map(|old| json!({ "value": old.value, "times": old.times, "reason": old.reason })),
    }))
}
