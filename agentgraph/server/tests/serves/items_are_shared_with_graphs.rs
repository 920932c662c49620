//! The long-term store: items that clients and graphs keep beside threads.

use agentgraph::prelude::*;
use agentgraph::store::{MemoryStore, Namespace, StoreExt};
use agentgraph_server::Server;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::{Served, Steps, StepsUpdate};

async fn put(server: &Served, body: Value) -> StatusCode {
    server.send(Method::PUT, "/store/items", Some(&body)).await.0
}

#[tokio::test]
async fn items_are_written_read_found_and_removed() {
    let server = Served::new().await;
    for (name, n) in [("ada", 1), ("bob", 2)] {
        let body =
            json!({ "namespace": ["users", name], "key": "note", "value": { "n": n, "deep": { "n": n } } });
        assert_eq!(put(&server, body).await, StatusCode::NO_CONTENT);
    }
    let item = server.get("/store/items?namespace=users.ada&key=note").await;
    assert_eq!((&item["namespace"], &item["key"]), (&json!(["users", "ada"]), &json!("note")));
    assert_eq!(item["value"], json!({ "n": 1, "deep": { "n": 1 } }));
    assert!(item["created_at"].as_str().unwrap().ends_with("+00:00") && item["updated_at"].is_string());
    assert_eq!(server.get("/store/items?namespace=users.ada&key=none").await, Value::Null);
    let search = async |body: Value| server.post("/store/items/search", &body).await["items"].clone();
    assert_eq!(search(json!({ "namespace_prefix": ["users"] })).await.as_array().unwrap().len(), 2);
    let found = search(json!({ "namespace_prefix": [], "filter": { "n": { "$gt": 1 } } })).await;
    assert_eq!((found.as_array().unwrap().len(), &found[0]["value"]["n"]), (1, &json!(2)));
    assert!(found[0]["score"].is_null());
    let first = search(json!({ "limit": 1 })).await;
    assert_ne!(first, search(json!({ "limit": 1, "offset": 1 })).await);
    let listed = server.post("/store/namespaces", &json!({ "prefix": ["users"], "suffix": ["bob"] })).await;
    assert_eq!(listed["namespaces"], json!([["users", "bob"]]));
    let listed = server.post("/store/namespaces", &json!({ "max_depth": 1 })).await;
    assert_eq!(listed["namespaces"], json!([["users"]]));
    for _ in 0..2 {
        let place = json!({ "namespace": ["users", "ada"], "key": "note" });
        let (status, _) = server.send(Method::DELETE, "/store/items", Some(&place)).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }
    assert_eq!(server.get("/store/items?namespace=users.ada&key=note").await, Value::Null);
}

#[tokio::test]
async fn items_without_a_place_or_with_a_wrong_form_are_refused() {
    let server = Served::new().await;
    let hostile = [
        json!({}),
        json!({ "namespace": [], "key": "k", "value": {} }),
        json!({ "namespace": ["a"], "value": {} }),
        json!({ "namespace": "a", "key": "k", "value": {} }),
        json!({ "namespace": ["a"], "key": 5, "value": {} }),
        json!({ "namespace": ["a.b"], "key": "k", "value": {} }),
        json!({ "namespace": [""], "key": "k", "value": {} }),
        json!({ "namespace": ["a"], "key": "k", "value": 5 }),
        json!({ "namespace": ["a"], "key": "k" }),
        json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": -1 }),
        json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": "x" }),
        json!({ "namespace": ["a"], "key": "k", "value": {}, "index": 5 }),
        json!({ "namespace": vec!["a"; 1000], "key": "k", "value": {} }),
        json!({ "namespace": ["a"], "key": "k".repeat(100_000), "value": {} }),
    ];
    for body in hostile {
        assert_eq!(put(&server, body.clone()).await, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
    for (path, body) in [
        ("/store/items/search", json!({ "namespace_prefix": "a" })),
        ("/store/items/search", json!({ "filter": { "n": { "$none": 1 } } })),
        ("/store/items/search", json!({ "limit": 1_000_000 })),
        ("/store/namespaces", json!({ "max_depth": "x" })),
    ] {
        let (status, answer) = server.send(Method::POST, path, Some(&body)).await;
        assert_eq!(
            (status, answer["detail"].is_string()),
            (StatusCode::UNPROCESSABLE_ENTITY, true),
            "{body}"
        );
    }
    for path in
        ["/store/items", "/store/items?namespace=a", "/store/items?key=k", "/store/items?namespace=.&key=k"]
    {
        let (status, _) = server.send(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
    }
}

async fn remember(ctx: Ctx, steps: Snapshot<Steps>) -> Result<StepsUpdate> {
    let store = ctx.store()?;
    let place = Namespace::new(["notes"])?;
    let known = store.get(&place, "text").await?.map(|item| item.value["text"].to_string());
    store.put(&place, "text", json!({ "text": steps.text })).await?;
    Ok(Steps::update().seen(known))
}

fn remembering() -> CompiledGraph<Steps> {
    StateGraph::new().node("remember", remember).edge(START, "remember").compile().unwrap()
}

#[tokio::test]
async fn a_graph_without_a_store_has_that_of_the_server() {
    let own = remembering().store(MemoryStore::new());
    let server = Server::new().in_memory().graph("shares", remembering()).graph("keeps", own);
    let server = Served::of(server).await;
    let note = json!({ "namespace": ["notes"], "key": "text", "value": { "text": "of a client" } });
    put(&server, note).await;
    let run = |graph: &str| json!({ "assistant_id": graph, "input": { "text": format!("of {graph}") } });
    let values = server.post("/runs/wait", &run("shares")).await;
    assert_eq!(values["seen"], json!(["\"of a client\""]));
    let item = server.get("/store/items?namespace=notes&key=text").await;
    assert_eq!(item["value"]["text"], "of shares");
    let values = server.post("/runs/wait", &run("keeps")).await;
    assert_eq!(values["seen"], json!([]), "a graph that has a store keeps it");
}
