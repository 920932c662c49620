//! `POST /threads/{id}/commands`: the commands of LangGraph's second protocol, by HTTP and WebSocket.
//!
//! A command that cannot be read is an error of HTTP; any other is answered with 200, and a failed one with
//! an error by its code.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::post};
use serde_json::{Map, Value, json};

use super::Shared;
use super::body::Parsed;
use super::runs::start_kept;
use crate::app::{App, interrupts_json};
use crate::error::ApiError;
use crate::ids;
use crate::records::{Kind, Query, SortBy};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/threads/{id}/commands", post(commands))
}

async fn commands(Shared(app): Shared, Path(id): Path<String>, Parsed(body): Parsed) -> Response {
    match Command::read(body) {
        Ok(command) => Json(command.answer(&app, &id).await).into_response(),
        Err(refused) => (StatusCode::BAD_REQUEST, Json(refused)).into_response(),
    }
}

pub(super) struct Command {
    pub(super) id: i64,
    pub(super) method: String,
    pub(super) params: Value,
}

/// Why a command failed: a code of the protocol, and a text.
pub(super) struct Failure {
    code: &'static str,
    message: String,
}

impl Failure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Failure::new("unknown_error", format!("{}: {}", error.status.as_u16(), error.detail))
    }
}

impl From<crate::error::RecordError> for Failure {
    fn from(error: crate::error::RecordError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<agentgraph::Error> for Failure {
    fn from(error: agentgraph::Error) -> Self {
        ApiError::from(error).into()
    }
}

impl Command {
    /// Reads a command; the answer to one that is none otherwise.
    pub(super) fn read(mut body: Value) -> Result<Self, Value> {
        match (body["id"].as_i64(), body["method"].as_str()) {
            (Some(id), Some(method)) if body.is_object() => {
                let method = method.to_owned();
                Ok(Command { id, method, params: body["params"].take() })
            }
            _ => {
                let id = body.get("id").filter(|id| id.is_i64() || id.is_string()).cloned();
                let message = "a command has an integer `id` and a string `method`";
                Err(json!({
                    "type": "error", "id": id.unwrap_or_default(), "error": "invalid_argument", "message": message,
                }))
            }
        }
    }

    /// Carries the command out.
    pub(super) async fn answer(&self, app: &Arc<App>, thread: &str) -> Value {
        let result = match self.applied_through(app, thread).await {
            Ok(seq) => self.result(app, thread).await.map(|result| (result, seq)),
            Err(failure) => Err(failure),
        };
        match result {
            Ok((result, seq)) => self.success(&result, seq),
            Err(failure) => self.failure(&failure),
        }
    }

    pub(super) fn success(&self, result: &Value, seq: u64) -> Value {
        let meta = json!({ "applied_through_seq": seq });
        json!({ "type": "success", "id": self.id, "result": result, "meta": meta })
    }

    pub(super) fn failure(&self, failure: &Failure) -> Value {
        json!({ "type": "error", "id": self.id, "error": failure.code, "message": failure.message })
    }

    /// The number of the last event before the command. Readers begin after it, so it is asked for before
    /// the command has events of its own.
    pub(super) async fn applied_through(&self, app: &App, thread: &str) -> Result<u64, Failure> {
        let thread = ids::parse_uuid("thread_id", thread)?;
        Ok(match app.kept_log(&thread).await? {
            Some(log) => app.seen_through(&log).await?,
            None => 0,
        })
    }

    pub(super) async fn result(&self, app: &Arc<App>, thread: &str) -> Result<Value, Failure> {
        match &*self.method {
            "run.start" => self.start(app, thread).await,
            "input.respond" => self.respond(app, thread).await,
            "agent.getTree" => tree(app, thread).await,
            "subscription.subscribe" | "subscription.unsubscribe" | "subscription.reconnect" => {
                let message = "subscriptions are made on the WebSocket `/threads/{id}/stream/events`";
                Err(Failure::new("not_supported", message))
            }
            other => Err(Failure::new("unknown_command", format!("Unknown protocol command: {other}"))),
        }
    }

    async fn start(&self, app: &Arc<App>, thread: &str) -> Result<Value, Failure> {
        let Some(assistant) = self.params["assistant_id"].as_str() else {
            return Err(Failure::new("invalid_argument", "run.start requires an assistant_id."));
        };
        let body = self.body(assistant, &["input", "multitask_strategy", "multitaskStrategy"]);
        Ok(json!({ "run_id": start_kept(app, thread, &body).await? }))
    }

    /// The body of a request for a run, with these parameters of the command.
    fn body(&self, assistant: &str, more: &[&str]) -> Value {
        let mut body = json!({ "assistant_id": assistant, "if_not_exists": "create" });
        for name in ["config", "metadata", "context"].iter().chain(more) {
            if let Some(value) = self.params.get(name) {
                body[*name] = value.clone();
            }
        }
        let fork = &self.params["config"]["configurable"]["checkpoint_id"];
        if !fork.is_null() {
            body["checkpoint_id"] = fork.clone();
        }
        body
    }

    /// Answers open questions, all of them in one run.
    async fn respond(&self, app: &Arc<App>, thread: &str) -> Result<Value, Failure> {
        let answers = self.answers()?;
        let no_run = || Failure::new("no_such_run", "No interrupted run is bound to this thread.");
        let record = match app.thread(thread).await {
            Err(error) if error.status == StatusCode::NOT_FOUND => return Err(no_run()),
            found => found?,
        };
        let graph = app.graph_of(&record).ok_or_else(no_run)?;
        let head = graph.state(&record.id, None).await?.ok_or_else(no_run)?;
        let open: Vec<Value> = interrupts_json(&head).into_iter().map(|(_, asked)| asked).collect();
        let is_open =
            |id: &String| open.iter().flat_map(Value::as_array).flatten().any(|one| one["id"] == **id);
        let answered = answered(app, &record.id).await?;
        if let Some(id) = answers.keys().find(|id| !is_open(id) || answered.contains_key(*id)) {
            let message = format!("Unknown or already-consumed interrupt: {id}");
            return Err(Failure::new("no_such_interrupt", message));
        }
        let assistant = record.data["metadata"]["assistant_id"].as_str().ok_or_else(no_run)?;
        let mut body = self.body(assistant, &["strict_resume"]);
        body["command"] = json!({ "resume": answers });
        for name in ["update", "goto"] {
            if let Some(value) = self.params.get(name) {
                body["command"][name] = value.clone();
            }
        }
        start_kept(app, thread, &body).await?;
        Ok(json!({}))
    }

    fn answers(&self) -> Result<Map<String, Value>, Failure> {
        let answer = |one: &Value| {
            let id = one["interrupt_id"].as_str()?.to_owned();
            Some((id, one["response"].clone()))
        };
        let answers = match self.params.get("responses") {
            Some(Value::Array(several)) if !several.is_empty() => several.iter().map(answer).collect(),
            Some(_) => None,
            None => answer(&self.params).map(|one| Map::from_iter([one])),
        };
        answers.ok_or_else(|| Failure::new("invalid_argument", "input.respond requires an interrupt_id."))
    }
}

/// The questions that runs under way or waiting answer.
async fn answered(app: &Arc<App>, thread: &str) -> Result<Map<String, Value>, Failure> {
    let mut answered = Map::new();
    for run in app.open_runs(thread).await? {
        if let Some(run) = app.records.get(Kind::Run, &run.id).await? {
            answered.extend(crate::app::object(&run.data["kwargs"]["command"]["resume"]));
        }
    }
    Ok(answered)
}

/// The graph of the thread, with the status of its last run.
async fn tree(app: &App, thread: &str) -> Result<Value, Failure> {
    let thread = ids::parse_uuid("thread_id", thread)?;
    let query = Query {
        parent: Some(thread.clone()),
        sort: SortBy::Created,
        descending: true,
        limit: 1,
        ..Query::all(Kind::Run)
    };
    let runs = app.records.page(&query).await?;
    let Some(run) = runs.first() else {
        return Err(Failure::new("no_such_run", "No active run is bound to this thread."));
    };
    let thread = app.thread(&thread).await?;
    let status = match &*run.status {
        "pending" | "running" => "running",
        "error" => "failed",
        "success" if thread.status != "interrupted" => "completed",
        _ => "interrupted",
    };
    let node = json!({ "namespace": [], "status": status, "graph_name": run.data["graph_id"] });
    Ok(json!({ "tree": node }))
}
