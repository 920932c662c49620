//! Threads and assistants: made, found page by page, changed, copied, removed.

use agentgraph_server::Server;
use agentgraph_server::records::{MemoryRecords, SqliteRecords, conformance};
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::{Served, all_graphs};

#[tokio::test]
async fn threads_are_found_by_status_metadata_and_page() {
    let server = Served::new().await;
    for number in 0..5 {
        let body = json!({ "metadata": { "n": number, "of": if number < 2 { "ada" } else { "grace" } } });
        server.post("/threads", &body).await;
    }
    let search = json!({ "metadata": { "of": "grace" }, "limit": 2 });
    let page = server.request(Method::POST, "/threads/search").json(&search).send().await.unwrap();
    assert_eq!(
        (&page.headers()["x-pagination-total"], &page.headers()["x-pagination-next"]),
        (&"3".parse().unwrap(), &"2".parse().unwrap())
    );
    let found: Vec<Value> = page.json().await.unwrap();
    assert_eq!(
        found.iter().map(|thread| thread["metadata"]["n"].as_i64().unwrap()).collect::<Vec<_>>(),
        [4, 3]
    );
    assert_eq!(server.post("/threads/count", &json!({ "metadata": { "of": "ada" } })).await, 2);
    let oldest = json!({ "sort_by": "created_at", "sort_order": "asc", "limit": 1, "select": ["metadata"] });
    assert_eq!(
        server.post("/threads/search", &oldest).await,
        json!([{ "metadata": { "n": 0, "of": "ada" } }])
    );
}

/// Lists of conversations, such as that of agent-chat-ui, ask for no order.
#[tokio::test]
async fn the_thread_that_changed_last_is_found_first() {
    let server = Served::new().await;
    let (older, newer) = (server.thread().await, server.thread().await);
    let found = async || {
        let found = server.post("/threads/search", &json!({ "select": ["thread_id"] })).await;
        found.as_array().unwrap().iter().map(|thread| thread["thread_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(found().await, [&*newer, &*older]);
    let run = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    server.post(&format!("/threads/{older}/runs/wait"), &run).await;
    assert_eq!(found().await, [&*older, &*newer]);
}

/// The client's `threads.search(extract=..)`.
#[tokio::test]
async fn a_search_extracts_values() {
    let server = Served::new().await;
    let thread = server.post("/threads", &json!({ "metadata": { "tags": ["a", "b"] } })).await;
    let thread = thread["thread_id"].as_str().unwrap();
    let run = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    server.post(&format!("/threads/{thread}/runs/wait"), &run).await;
    let extract = json!({
        "last": "values.seen[-1]", "first": "metadata.tags[0]", "all": "values.seen", "far": "values.seen[-3]",
        "none": "values.other.x", "wrong": "values.seen[x]",
    });
    let search = json!({ "extract": extract, "select": ["thread_id"] });
    let extracted = json!({
        "last": "second", "first": "a", "all": ["first a", "second"], "far": null, "none": null, "wrong": null,
    });
    let expected = json!([{ "thread_id": thread, "extracted": extracted }]);
    assert_eq!(server.post("/threads/search", &search).await, expected);
}

#[tokio::test]
async fn a_thread_has_the_graph_of_its_run_in_its_metadata() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    let found = server.post("/threads/search", &json!({ "metadata": { "graph_id": "steps" } })).await;
    assert_eq!(found[0]["thread_id"], json!(thread));
    assert_eq!(found[0]["values"]["seen"], json!(["first a", "second"]));
    let renamed = json!({ "metadata": { "title": "tea" } });
    let (_, changed) = server.send(Method::PATCH, &format!("/threads/{thread}"), Some(&renamed)).await;
    assert_eq!(
        (&changed["metadata"]["title"], &changed["metadata"]["graph_id"]),
        (&json!("tea"), &json!("steps"))
    );
    let copy = server.post(&format!("/threads/{thread}/copy"), &json!({})).await;
    assert_ne!(copy["thread_id"], json!(thread));
    assert_eq!(copy["values"], found[0]["values"]);
    let (status, _) = server.send(Method::DELETE, &format!("/threads/{thread}"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = server.send(Method::GET, &format!("/threads/{thread}"), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = server
        .send(Method::POST, &format!("/threads/{thread}/runs"), Some(&json!({ "assistant_id": "ask" })))
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// Each of them reads the thread first, and mostly another one changes it before it writes.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_thread_at_once_are_all_kept() {
    let folder = std::env::temp_dir().join(format!("agentgraph-server-{}-at-once", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = Served::of(all_graphs(Server::new().sqlite(folder.join("served.db")))).await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}");
    let change = async |number: usize| {
        let change = json!({ "metadata": { format!("n{number}"): number } });
        server.send(Method::PATCH, &path, Some(&change)).await.0
    };
    let run = json!({ "assistant_id": "steps", "input": { "text": "a" }, "metadata": {} });
    let run = async { server.post(&format!("{path}/runs/wait"), &run).await };
    let (statuses, ended) = tokio::join!(join_all((0..20).map(change)), run);
    assert_eq!(ended["seen"], json!(["first a", "second"]));
    assert_eq!(statuses, vec![StatusCode::OK; 20]);
    let found = server.get(&path).await;
    assert_eq!(found["status"], "idle");
    assert_eq!(found["metadata"]["graph_id"], "steps");
    let kept = (0..20).filter(|number| found["metadata"][format!("n{number}")] == json!(number));
    assert_eq!(kept.count(), 20, "{found}");
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn each_graph_has_an_assistant_from_the_start() {
    let server = Served::new().await;
    let found = server.post("/assistants/search", &json!({ "graph_id": "steps" })).await;
    let assistant = &found[0];
    // What `uuid.uuid5(uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), "steps")` gives.
    assert_eq!(assistant["assistant_id"], "01d10e59-d4b4-51ec-8e94-9b2716b34de8");
    assert_eq!((&assistant["name"], &assistant["version"]), (&json!("steps"), &json!(1)));
    assert_eq!(assistant["metadata"], json!({ "created_by": "system" }));
    let id = assistant["assistant_id"].as_str().unwrap();
    let drawn = server.get(&format!("/assistants/{id}/graph")).await;
    let edges: Vec<(&Value, &Value)> =
        drawn["edges"].as_array().unwrap().iter().map(|edge| (&edge["source"], &edge["target"])).collect();
    let expected = [["__start__", "first"], ["first", "second"], ["second", "__end__"]];
    assert_eq!(
        edges,
        expected.map(|[from, to]| (json!(from), json!(to))).each_ref().map(|(from, to)| (from, to))
    );
    let schemas = server.get(&format!("/assistants/{id}/schemas")).await;
    assert_eq!(schemas["input_schema"]["properties"]["seen"]["type"], "array");
    let chat = server.post("/assistants/search", &json!({ "graph_id": "chat" })).await;
    let chat =
        server.get(&format!("/assistants/{}/schemas", chat[0]["assistant_id"].as_str().unwrap())).await;
    assert!(chat["input_schema"].is_null());
}

#[tokio::test]
async fn assistants_have_versions_and_give_their_runs_a_configuration() {
    let server = Served::new().await;
    let made =
        json!({ "graph_id": "settings", "name": "mine", "config": { "configurable": { "user": "ada" } } });
    let made = server.post("/assistants", &made).await;
    let id = made["assistant_id"].as_str().unwrap();
    let user = async || {
        let answer = server.post("/runs/wait", &json!({ "assistant_id": id, "input": {} })).await;
        answer["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(user().await, "ada");
    let change = json!({ "config": { "configurable": { "user": "grace" } } });
    let (_, changed) = server.send(Method::PATCH, &format!("/assistants/{id}"), Some(&change)).await;
    assert_eq!((&changed["version"], &changed["name"]), (&json!(2), &json!("mine")));
    assert_eq!(user().await, "grace");
    server.post(&format!("/assistants/{id}/latest"), &json!({ "version": 1 })).await;
    assert_eq!(user().await, "ada");
    let change = json!({ "graph_id": "steps" });
    server.send(Method::PATCH, &format!("/assistants/{id}"), Some(&change)).await;
    let versions = server.post(&format!("/assistants/{id}/versions"), &json!({})).await;
    let graphs: Vec<&Value> = versions.as_array().unwrap().iter().map(|one| &one["graph_id"]).collect();
    assert_eq!(graphs, ["steps", "settings", "settings"]);
    let latest = server.post(&format!("/assistants/{id}/latest"), &json!({ "version": 2 })).await;
    assert_eq!((&latest["graph_id"], user().await), (&json!("settings"), "grace".to_owned()));
    let (status, _) = server.send(Method::DELETE, &format!("/assistants/{id}"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(server.post("/assistants/count", &json!({ "graph_id": "settings" })).await, 1);
}

#[tokio::test]
async fn assistants_are_sorted_and_shown_in_part() {
    let server = Served::new().await;
    for (name, graph) in [("B", "steps"), ("a", "settings"), ("c", "ask")] {
        let made = json!({ "graph_id": graph, "name": name, "metadata": { "mine": true } });
        server.post("/assistants", &made).await;
    }
    let search = async |more: Value| {
        let mut body = json!({ "metadata": { "mine": true } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.send(Method::POST, "/assistants/search", Some(&body)).await
    };
    let (_, found) = search(json!({ "sort_by": "name", "sort_order": "asc", "select": ["name"] })).await;
    assert_eq!(found, json!([{ "name": "a" }, { "name": "B" }, { "name": "c" }]));
    let (_, found) = search(json!({ "sort_by": "graph_id", "select": ["graph_id", "version"] })).await;
    let row = |graph| json!({ "graph_id": graph, "version": 1 });
    assert_eq!(found, json!([row("steps"), row("settings"), row("ask")]));
    for refused in [json!({ "select": ["bogus"] }), json!({ "limit": 0 }), json!({ "sort_by": "bogus" })] {
        assert_eq!(search(refused).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let refused = json!({ "select": ["bogus"] });
    let (status, _) = server.send(Method::POST, "/threads/search", Some(&refused)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    for path in ["/threads", "/assistants"] {
        let refused = json!({ "graph_id": "steps", "if_exists": "other" });
        let (status, _) = server.send(Method::POST, path, Some(&refused)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

/// Newer clients send a context, older ones `config.configurable`. LangGraph's server gives a node both.
#[tokio::test]
async fn a_context_and_a_configuration_stand_for_each_other() {
    let server = Served::new().await;
    let both = |one: &Value| (one["config"]["configurable"].clone(), one["context"].clone());
    let (ada, grace) = (json!({ "user": "ada" }), json!({ "user": "grace" }));
    let made = server.post("/assistants", &json!({ "graph_id": "settings", "context": ada })).await;
    assert_eq!(both(&made), (ada.clone(), ada.clone()));
    let id = made["assistant_id"].as_str().unwrap();
    let user = async |more: Value| {
        let mut run = json!({ "assistant_id": id, "input": {} });
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/runs/wait", &run).await["text"].clone()
    };
    assert_eq!(user(json!({})).await, "ada");
    assert_eq!(user(json!({ "context": grace })).await, "grace");
    let change = json!({ "config": { "configurable": grace } });
    let (_, changed) = server.send(Method::PATCH, &format!("/assistants/{id}"), Some(&change)).await;
    assert_eq!(both(&changed), (grace.clone(), grace.clone()));
    let change = json!({ "name": "other" });
    let (_, changed) = server.send(Method::PATCH, &format!("/assistants/{id}"), Some(&change)).await;
    assert_eq!(both(&changed), (grace.clone(), grace));
}

#[tokio::test]
async fn both_stores_keep_the_contract() {
    let broken = conformance::check(&MemoryRecords::default()).await.unwrap();
    assert_eq!(broken, Vec::<String>::new());
    let broken = conformance::check(&SqliteRecords::open(":memory:").await.unwrap()).await.unwrap();
    assert_eq!(broken, Vec::<String>::new());
}
