//! Assistants: a graph with a configuration, in versions. Each graph has one of its own from the start.

use serde_json::{Value, json};

use super::App;
use crate::error::{ApiError, RecordError};
use crate::ids;
use crate::records::{Kind, Record};

/// An assistant as clients see it, in its current version or an earlier one.
pub(crate) fn assistant_json(assistant: &Record, version: Option<&Value>) -> Value {
    let data = &assistant.data;
    let shown = version.unwrap_or(&data["versions"][current(data)]);
    json!({
        "assistant_id": assistant.id,
        "graph_id": shown["graph_id"].as_str().unwrap_or(&assistant.parent),
        "created_at": ids::time(assistant.created),
        "updated_at": ids::time(assistant.updated),
        "config": shown["config"],
        "context": shown["context"],
        "metadata": shown["metadata"],
        "name": shown["name"],
        "description": shown["description"],
        "version": shown["version"],
    })
}

/// The position of the current version among the versions.
fn current(data: &Value) -> usize {
    let number = |version: &Value| version["version"] == data["version"];
    data["versions"].as_array().and_then(|versions| versions.iter().position(number)).unwrap_or(0)
}

impl App {
    /// Adds the assistants of the graphs that do not have theirs yet.
    pub(crate) async fn add_system_assistants(&self) -> Result<(), RecordError> {
        for graph in self.graphs.keys() {
            let version = json!({
                "version": 1, "name": graph, "config": {}, "context": {}, "description": null,
                "metadata": { "created_by": "system" },
            });
            let data = json!({
                "metadata": version["metadata"], "name": graph, "version": 1, "versions": [version],
            });
            self.insert((Kind::Assistant, &ids::assistant_of(graph), graph), "", data).await?;
        }
        Ok(())
    }

    /// The assistant with this id, which must be a UUID.
    pub(crate) async fn assistant(&self, id: &str) -> Result<Record, ApiError> {
        let id = ids::parse_uuid("assistant_id", id)?;
        let found = self.records.get(Kind::Assistant, &id).await?;
        found
            .filter(|found| self.graphs.contains_key(&found.parent))
            .ok_or_else(|| ApiError::unknown("Assistant", &id))
    }

    /// An assistant that the caller may change.
    pub(crate) async fn own_assistant(&self, id: &str) -> Result<Record, ApiError> {
        let found = self.assistant(id).await?;
        if self.has(super::owner_of(&found)) {
            return Ok(found);
        }
        let detail = "the assistant is there for all callers: make one of your own with POST /assistants";
        Err(ApiError::new(axum::http::StatusCode::FORBIDDEN, detail))
    }

    /// The assistant that a run names: by its id, or by the name of a graph.
    pub(crate) async fn assistant_of_run(&self, name: &str) -> Result<Record, ApiError> {
        if self.graphs.contains_key(name) {
            return self.assistant(&ids::assistant_of(name)).await;
        }
        match ids::parse_uuid("assistant_id", name) {
            Ok(id) => self.assistant(&id).await,
            Err(_) => {
                let known: Vec<&str> = self.graphs.keys().map(String::as_str).collect();
                let detail = format!(
                    "Assistant {name} not found: name an assistant by its UUID, or one of the graphs {}",
                    known.join(", ")
                );
                Err(ApiError::invalid(detail))
            }
        }
    }
}

/// The current version of an assistant.
pub(crate) fn version_of(assistant: &Record) -> &Value {
    &assistant.data["versions"][current(&assistant.data)]
}
