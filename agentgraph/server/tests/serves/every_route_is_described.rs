//! `/openapi.json` has every route, and answers have the shapes that it promises.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::Served;

/// The routes of the sources, as `post /threads`.
fn routes() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/routes");
    let files = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|kind| kind == "rs"));
    let mut found = BTreeSet::new();
    for file in files.chain([root.with_extension("rs")]) {
        let text = fs::read_to_string(file).unwrap();
        for route in text.split(".route(\"").skip(1) {
            let (path, rest) = route.split_once('"').unwrap();
            let handlers = rest.split([';', '}']).next().unwrap().split("\n        .").next().unwrap();
            for (word, methods) in [
                ("both(", &["get", "post"][..]),
                ("get(", &["get"]),
                ("post(", &["post"]),
                ("put(", &["put"]),
                ("patch(", &["patch"]),
                ("delete(", &["delete"]),
            ] {
                if handlers.split([' ', '.', ',']).any(|part| part.starts_with(word)) {
                    found.extend(methods.iter().map(|method| format!("{method} {path}")));
                }
            }
        }
    }
    found
}

fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    let each = paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
    });
    each.collect()
}

#[tokio::test]
async fn every_route_of_the_router_is_in_the_document() {
    let server = Served::new().await;
    let document = server.get("/openapi.json").await;
    assert_eq!(operations(&document), routes());
    assert!(routes().len() > 60, "{:?}", routes());
    let ids = document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap());
    let ids: Vec<&Value> = ids.map(|(_, operation)| &operation["operationId"]).collect();
    assert_eq!(ids.iter().map(|id| id.as_str()).collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

/// What a thread, its run and an assistant are called.
pub(crate) struct Names {
    pub(crate) thread: String,
    pub(crate) run: String,
    pub(crate) checkpoint: String,
    pub(crate) assistant: String,
}

impl Names {
    /// A thread that waits for an answer, its run, and an assistant of the caller's own.
    pub(crate) async fn made(server: &Served) -> Self {
        let thread = server.thread().await;
        let body = json!({ "assistant_id": "nested", "input": {} });
        server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
        let run = server.get(&format!("/threads/{thread}/runs")).await[0]["run_id"].take();
        let state = server.get(&format!("/threads/{thread}/state")).await;
        let assistant = server.post("/assistants", &json!({ "graph_id": "steps" })).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Names {
            thread,
            run: text(&run),
            checkpoint: text(&state["checkpoint_id"]),
            assistant: text(&assistant["assistant_id"]),
        }
    }

    /// A call of each route that has a name in its path and answers at once, the removing ones last.
    pub(crate) fn calls(&self) -> Vec<(&'static str, &'static str, String, Value)> {
        let start = json!({ "assistant_id": "nested", "input": null });
        let calls = [
            ("get", "/assistants/{id}", json!(null)),
            ("get", "/assistants/{id}/graph", json!(null)),
            ("get", "/assistants/{id}/schemas", json!(null)),
            ("get", "/assistants/{id}/subgraphs", json!(null)),
            ("patch", "/assistants/{id}", json!({ "metadata": { "owner": "grace", "a": 1 }, "name": "b" })),
            ("post", "/assistants/{id}/versions", json!({})),
            ("post", "/assistants/{id}/latest", json!({ "version": 1 })),
            ("get", "/threads/{id}", json!(null)),
            ("patch", "/threads/{id}", json!({ "metadata": { "owner": "grace", "a": 1 } })),
            ("get", "/threads/{id}/state", json!(null)),
            ("get", "/threads/{id}/state/{checkpoint}", json!(null)),
            ("post", "/threads/{id}/state/checkpoint", json!({ "checkpoint_id": self.checkpoint })),
            ("post", "/threads/{id}/state", json!({ "values": { "done": true } })),
            ("get", "/threads/{id}/history", json!(null)),
            ("post", "/threads/{id}/history", json!({})),
            ("post", "/threads/{id}/commands", json!({ "id": 1, "method": "agent.getTree" })),
            ("get", "/threads/{id}/runs", json!(null)),
            ("post", "/threads/{id}/runs", start.clone()),
            ("post", "/threads/{id}/runs/wait", start.clone()),
            ("get", "/threads/{id}/runs/{run}", json!(null)),
            ("get", "/threads/{id}/runs/{run}/join", json!(null)),
            ("get", "/runs/{run}/join", json!(null)),
            ("get", "/ui/threads/{id}", json!(null)),
            ("get", "/ui/threads/{id}/trace/{run}", json!(null)),
            ("get", "/ui/threads/{id}/order/{run}", json!(null)),
            ("get", "/ui/threads/{id}/branches", json!(null)),
            ("get", "/ui/threads/{id}/report", json!(null)),
            ("post", "/threads/{id}/copy", json!({})),
            ("post", "/threads/{id}/runs/{run}/cancel", json!({})),
            ("delete", "/threads/{id}/runs/{run}", json!(null)),
            ("delete", "/threads/{id}", json!(null)),
            ("delete", "/assistants/{id}", json!(null)),
        ];
        let named = |path: &str| {
            let id = if path.starts_with("/assistants") { &self.assistant } else { &self.thread };
            path.replace("{id}", id).replace("{run}", &self.run).replace("{checkpoint}", &self.checkpoint)
        };
        calls.map(|(method, path, body)| (method, path, named(path), body)).into()
    }
}

/// Calls of the other routes that answer at once.
const OTHERS: [(&str, &str, &str); 25] = [
    ("get", "/ok", ""),
    ("get", "/info", ""),
    ("get", "/openapi.json", ""),
    ("post", "/assistants", r#"{ "graph_id": "ask", "metadata": { "a": 1 } }"#),
    ("post", "/assistants/search", "{}"),
    ("post", "/assistants/count", "{}"),
    ("post", "/threads", "{}"),
    ("post", "/threads/search", "{}"),
    ("post", "/threads/count", "{}"),
    ("post", "/runs", r#"{ "assistant_id": "steps", "input": {} }"#),
    ("post", "/runs/wait", r#"{ "assistant_id": "steps", "input": {} }"#),
    ("post", "/runs/batch", r#"[{ "assistant_id": "steps", "input": {} }]"#),
    ("post", "/runs/cancel", r#"{ "status": "all" }"#),
    ("put", "/store/items", r#"{ "namespace": ["a"], "key": "b", "value": { "c": 1 } }"#),
    ("post", "/store/items/search", r#"{ "namespace_prefix": ["a"] }"#),
    ("post", "/store/namespaces", "{}"),
    ("delete", "/store/items", r#"{ "namespace": ["a"], "key": "b" }"#),
    ("get", "/ui/graphs", ""),
    ("get", "/ui/prices", ""),
    ("get", "/ui/questions", ""),
    ("get", "/metrics", ""),
    ("get", "/ui/", ""),
    ("post", "/threads/count", r#"{ "limit": "x", "metadata": 5 }"#),
    ("post", "/assistants", "["),
    ("post", "/threads/search", r#"{ "sort_by": "x" }"#),
];

/// The schema of an answer, with those it refers to.
fn schema(document: &Value, method: &str, path: &str, status: StatusCode) -> Value {
    let responses = &document["paths"][path][method]["responses"];
    let refused = &document["components"]["responses"]["failure"];
    let response = if status.is_success() { &responses[status.as_str()] } else { refused };
    assert!(response.is_object(), "{method} {path} answers with {status}");
    let mut schema = response["content"]["application/json"]["schema"].clone();
    if schema.is_object() {
        schema["components"] = document["components"].clone();
    }
    schema
}

#[tokio::test]
async fn answers_have_the_shapes_of_the_document() {
    let server = Served::new().await;
    let document = server.get("/openapi.json").await;
    let mut calls = Names::made(&server).await.calls();
    let body = |text: &str| serde_json::from_str(text).unwrap_or(Value::String(text.to_owned()));
    let others = OTHERS.map(|(method, path, text)| (method, path, path.to_owned(), body(text)));
    calls.splice(0..0, others);
    let mut seen = BTreeSet::new();
    for (method, route, path, body) in calls {
        let verb = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let (status, answer) = server.send(verb, &path, Some(&body).filter(|body| !body.is_null())).await;
        let schema = schema(&document, method, route, status);
        if status.is_success() {
            seen.insert(format!("{method} {route}"));
        }
        if !schema.is_null() {
            let shape = jsonschema::validator_for(&schema).unwrap();
            let wrong: Vec<String> = shape.iter_errors(&answer).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{method} {path}: {wrong:?} in {answer}");
        }
    }
    // Streams, files, and what this thread has no answer for.
    let left: Vec<String> = operations(&document).difference(&seen).cloned().collect();
    let expected = [
        "get /assistants/{id}/subgraphs/{namespace}",
        "get /runs/{run}/stream",
        "get /store/items",
        "get /threads/{id}/runs/{run}/stream",
        "get /threads/{id}/stream",
        "get /threads/{id}/stream/events",
        "get /ui",
        "get /ui/graphs/{graph}",
        "get /ui/graphs/{graph}/findings",
        "get /ui/threads/{id}/drawing",
        "get /ui/{file}",
        "post /runs/cancel",
        "post /runs/stream",
        "post /threads/{id}/runs/stream",
        "post /threads/{id}/runs/{run}/cancel",
        "post /threads/{id}/stream/events",
    ];
    assert_eq!(left, expected);
}
