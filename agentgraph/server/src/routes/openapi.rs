//! `/openapi.json`: the routes with the shapes of bodies and answers, made from [`OPERATIONS`] and the types
//! in [`shapes`].

mod shapes;

use std::sync::{Arc, LazyLock};

use axum::routing::get;
use axum::{Json, Router};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use self::shapes::*;
use crate::app::App;

pub(super) fn routes() -> Router<Arc<App>> {
    static TEXT: LazyLock<Value> = LazyLock::new(document);
    Router::new().route("/openapi.json", get(async || Json(&*TEXT)))
}

/// The shape of a body or an answer, with the shapes that it refers to left in the generator.
type Shape = fn(&mut SchemaGenerator) -> Schema;

enum Answer {
    Json(Shape),
    /// Another type of content.
    Text(&'static str),
    /// Nothing, with this status.
    Empty(u16),
}

use Answer::{Empty, Json as Gives, Text};

/// Server-sent events.
const EVENTS: Answer = Text("text/event-stream");

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Method, path, what it does, the fields of its query, the shape of its body, and its answer.
type Operation = (&'static str, &'static str, &'static str, &'static str, Option<Shape>, Answer);

const OPERATIONS: &[Operation] = &[
    ("get", "/ok", "Says that the server is there", "", None, Gives(of::<Health>)),
    ("get", "/info", "Says what the server can do", "", None, Gives(of::<Info>)),
    ("get", "/metrics", "Measures for Prometheus", "", None, Text("application/openmetrics-text")),
    ("get", "/openapi.json", "This document", "", None, Gives(of::<Document>)),
    ("post", "/assistants", "Makes an assistant", "", Some(of::<NewAssistant>), Gives(of::<Assistant>)),
    ("post", "/assistants/search", "Finds assistants", "", Some(of::<Search>), Gives(of::<Vec<Assistant>>)),
    ("post", "/assistants/count", "Counts assistants", "", Some(of::<Search>), Gives(of::<u64>)),
    ("get", "/assistants/{id}", "Reads an assistant", "", None, Gives(of::<Assistant>)),
    ("patch", "/assistants/{id}", "Adds a version", "", Some(of::<AssistantChange>), Gives(of::<Assistant>)),
    ("delete", "/assistants/{id}", "Removes an assistant", "", None, Empty(204)),
    ("get", "/assistants/{id}/graph", "Nodes and edges", "", None, Gives(of::<Drawing>)),
    ("get", "/assistants/{id}/schemas", "JSON schemas of the state", "", None, Gives(of::<Schemas>)),
    ("get", "/assistants/{id}/subgraphs", "Schemas of subgraphs", "", None, Gives(of::<Object>)),
    ("get", "/assistants/{id}/subgraphs/{namespace}", "Schemas of one", "", None, Gives(of::<Object>)),
    (
        "post",
        "/assistants/{id}/versions",
        "Lists versions",
        "",
        Some(of::<Search>),
        Gives(of::<Vec<Assistant>>),
    ),
    ("post", "/assistants/{id}/latest", "Chooses a version", "", Some(of::<Version>), Gives(of::<Assistant>)),
    ("post", "/threads", "Makes a thread", "", Some(of::<NewThread>), Gives(of::<Thread>)),
    ("post", "/threads/search", "Finds threads", "", Some(of::<Search>), Gives(of::<Vec<Object>>)),
    ("post", "/threads/count", "Counts threads", "", Some(of::<Search>), Gives(of::<u64>)),
    ("get", "/threads/{id}", "Reads a thread", "", None, Gives(of::<Thread>)),
    ("patch", "/threads/{id}", "Adds to its metadata", "", Some(of::<ThreadChange>), Gives(of::<Thread>)),
    ("delete", "/threads/{id}", "Removes a thread with its runs", "", None, Empty(204)),
    ("post", "/threads/{id}/copy", "Copies a thread", "", None, Gives(of::<Thread>)),
    ("get", "/threads/{id}/stream", "Events of all its runs", "", None, EVENTS),
    ("get", "/threads/{id}/state", "Its newest state", "subgraphs", None, Gives(of::<ThreadState>)),
    ("post", "/threads/{id}/state", "Changes its state", "", Some(of::<StateChange>), Gives(of::<Changed>)),
    (
        "post",
        "/threads/{id}/state/checkpoint",
        "An earlier state",
        "",
        Some(of::<At>),
        Gives(of::<ThreadState>),
    ),
    (
        "get",
        "/threads/{id}/state/{checkpoint}",
        "An earlier state",
        "subgraphs",
        None,
        Gives(of::<ThreadState>),
    ),
    ("get", "/threads/{id}/history", "States", "limit before select line", None, Gives(of::<Vec<Object>>)),
    ("post", "/threads/{id}/history", "States", "", Some(of::<History>), Gives(of::<Vec<Object>>)),
    ("post", "/threads/{id}/commands", "Carries out a command", "", Some(of::<Command>), Gives(of::<Reply>)),
    ("post", "/threads/{id}/stream/events", "The log of a thread", "", Some(of::<Following>), EVENTS),
    ("get", "/threads/{id}/stream/events", "Commands and events on a WebSocket", "", None, Empty(101)),
    ("get", "/threads/{id}/runs", "Its runs", "limit offset status", None, Gives(of::<Vec<Run>>)),
    ("post", "/threads/{id}/runs", "Starts a run", "", Some(of::<NewRun>), Gives(of::<Run>)),
    ("post", "/threads/{id}/runs/wait", "Runs, and waits", "", Some(of::<NewRun>), Gives(of::<Anything>)),
    ("post", "/threads/{id}/runs/stream", "Runs, with its events", "", Some(of::<NewRun>), EVENTS),
    ("get", "/threads/{id}/runs/{run}", "Reads a run", "", None, Gives(of::<Run>)),
    ("delete", "/threads/{id}/runs/{run}", "Removes a run that has ended", "", None, Empty(204)),
    ("get", "/threads/{id}/runs/{run}/join", "Waits", "cancel_on_disconnect", None, Gives(of::<Anything>)),
    ("get", "/threads/{id}/runs/{run}/stream", "Events", "stream_mode cancel_on_disconnect", None, EVENTS),
    ("post", "/threads/{id}/runs/{run}/cancel", "Stops a run", "wait action", None, Empty(202)),
    ("post", "/runs", "Starts a run on a new thread", "", Some(of::<NewRun>), Gives(of::<Run>)),
    ("post", "/runs/batch", "Starts several", "", Some(of::<Vec<NewRun>>), Gives(of::<Vec<Run>>)),
    ("post", "/runs/cancel", "Stops runs", "action", Some(of::<Cancelled>), Empty(204)),
    ("post", "/runs/wait", "Runs on a new thread", "", Some(of::<NewRun>), Gives(of::<Anything>)),
    ("post", "/runs/stream", "Runs on a new thread, with its events", "", Some(of::<NewRun>), EVENTS),
    ("get", "/runs/{run}/stream", "Events", "stream_mode cancel_on_disconnect", None, EVENTS),
    ("get", "/runs/{run}/join", "Waits", "cancel_on_disconnect", None, Gives(of::<Anything>)),
    ("put", "/store/items", "Writes an item", "", Some(of::<NewItem>), Empty(204)),
    ("get", "/store/items", "Reads one", "namespace key refresh_ttl", None, Gives(of::<Option<Item>>)),
    ("delete", "/store/items", "Removes an item", "", Some(of::<ItemPlace>), Empty(204)),
    ("post", "/store/items/search", "Finds items", "", Some(of::<ItemSearch>), Gives(of::<Found>)),
    ("post", "/store/namespaces", "Lists namespaces", "", Some(of::<Listing>), Gives(of::<Namespaces>)),
    ("get", "/ui", "The page", "", None, Empty(308)),
    ("get", "/ui/", "The page", "", None, Text("text/html")),
    ("get", "/ui/{file}", "A file of the page", "", None, Text("*/*")),
    ("get", "/ui/graphs", "Graphs, for the page", "", None, Gives(of::<Vec<Object>>)),
    ("get", "/ui/graphs/{graph}", "A drawing, `name.svg` or `name.mmd`", "open", None, Text("*/*")),
    ("get", "/ui/graphs/{graph}/findings", "Findings of tests", "", None, Gives(of::<Vec<Object>>)),
    ("get", "/ui/prices", "Prices of models' tokens", "", None, Gives(of::<Object>)),
    (
        "get",
        "/ui/questions",
        "Questions, for the page",
        "thread limit offset",
        None,
        Gives(of::<Vec<Object>>),
    ),
    ("get", "/ui/threads/{id}", "A thread, for the page", "limit offset", None, Gives(of::<Object>)),
    ("get", "/ui/threads/{id}/trace/{run}", "A trace, for the page", "after", None, Gives(of::<Object>)),
    ("get", "/ui/threads/{id}/order/{run}", "The order of a run", "", None, Gives(of::<Object>)),
    ("get", "/ui/threads/{id}/drawing", "The graph of a run", "at open", None, Text("image/svg+xml")),
    ("get", "/ui/threads/{id}/branches", "Branches", "offset", None, Gives(of::<Vec<Object>>)),
    ("get", "/ui/threads/{id}/report", "Open work and edits", "at", None, Gives(of::<Object>)),
];

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut generator =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into()).into_generator();
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let (method, path, ..) = operation;
        let known = paths.entry(*path).or_insert_with(|| json!({}));
        known[method] = described(operation, &mut generator);
    }
    let failure = generator.subschema_for::<Failure>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": { "title": "agentgraph-server", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "security": [{}, { "bearer": [] }, { "key": [] }],
        "components": {
            "schemas": schemas,
            "responses": { "failure": {
                "description": "Why the request was refused",
                "content": { "application/json": { "schema": failure } },
            } },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            },
        },
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let (method, path, about, query, body, answer) = operation;
    let in_path = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let parameter = |name: &str, place: &str| {
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": place, "required": place == "path", "schema": schema })
    };
    let parameters = in_path.map(|name| parameter(name, "path"));
    let parameters = parameters.chain(query.split_whitespace().map(|name| parameter(name, "query")));
    let (status, content) = match answer {
        Gives(shape) => (200, Some(("application/json", json!(shape(generator))))),
        Text(kind) => (200, Some((*kind, json!({ "type": "string" })))),
        Empty(status) => (*status, None),
    };
    let mut success = json!({ "description": about });
    if let Some((kind, schema)) = content {
        success["content"] = json!({ kind: { "schema": schema } });
    }
    let words: Vec<&str> = path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty()).collect();
    let mut described = json!({
        "operationId": format!("{method}_{}{}", words.join("_"), if path.ends_with('/') { "_page" } else { "" }),
        "summary": about,
        "tags": [words[0]],
        "parameters": parameters.collect::<Value>(),
        "responses": {
            status.to_string(): success, "default": { "$ref": "#/components/responses/failure" },
        },
    });
    if let Some(shape) = body {
        described["requestBody"] =
            json!({ "content": { "application/json": { "schema": shape(generator) } } });
    }
    described
}
