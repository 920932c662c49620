//! Threads, runs, assistants, items and events of another caller are like those that are not there.

use std::time::{Duration, Instant};

use agentgraph_server::{Authenticate, Caller, Denied, LayeredCaller, Server};
use axum::extract::Request;
use axum::http::request::Parts;
use futures_util::{SinkExt, StreamExt};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::common::{ALL_CHANNELS, Served, all_graphs};
use crate::every_route_is_described::Names;

/// A server with an operator and two callers.
async fn three() -> (Served, Served, Served) {
    let server = Server::new().in_memory().bearer_keys(["key-of-root"]).heartbeat(Duration::from_millis(50));
    let server = server.caller_key("key-of-ada", Caller::named("ada"));
    let server = Served::of(all_graphs(server.caller_key("key-of-star", Caller::named("*")))).await;
    let with = |key| server.with_key(key);
    (with("key-of-root"), with("key-of-ada"), with("key-of-star"))
}

/// Names that nothing has, but for one.
fn unknown() -> Names {
    let id = || uuid::Uuid::now_v7().to_string();
    Names { thread: id(), run: id(), checkpoint: id(), assistant: id() }
}

/// A text with UUIDs that all look alike.
fn masked(value: &Value) -> String {
    let text = value.to_string();
    let is_id = |word: &&str| uuid::Uuid::try_parse(word).is_ok();
    let ids: Vec<&str> = text.split(['"', ' ', '/', ':']).filter(is_id).collect();
    ids.iter().fold(text.clone(), |text, id| text.replace(id, "ID"))
}

#[tokio::test]
async fn each_route_answers_a_stranger_as_if_there_were_nothing() {
    let (root, ada, stranger) = three().await;
    let names = Names::made(&ada).await;
    let before = root.get(&format!("/threads/{}", names.thread)).await;
    let assistant = root.get(&format!("/assistants/{}", names.assistant)).await;
    assert_eq!(
        (&before["metadata"]["owner"], &assistant["metadata"]["owner"]),
        (&json!("ada"), &json!("ada"))
    );
    for ((method, route, path, body), (_, _, nowhere, _)) in names.calls().into_iter().zip(unknown().calls())
    {
        let verb = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let body = Some(&body).filter(|body| !body.is_null());
        let (status, answer) = stranger.send(verb.clone(), &path, body).await;
        let (expected, nothing) = stranger.send(verb, &nowhere, body).await;
        assert_eq!((status, masked(&answer)), (expected, masked(&nothing)), "{method} {path}");
        let says_nothing = status == StatusCode::NOT_FOUND || route.ends_with("/commands");
        assert!(says_nothing && !answer.to_string().contains("ada"), "{method} {path}: {status} {answer}");
    }
    // A made id makes no way round.
    let start = json!({ "assistant_id": "nested", "input": {}, "if_not_exists": "create" });
    for tail in ["/runs", "/runs/wait", "/runs/stream"] {
        let path = format!("/threads/{}{tail}", names.thread);
        assert_eq!(stranger.send(Method::POST, &path, Some(&start)).await.0, 404, "{tail}");
    }
    let answer = stranger.command(&names.thread, "run.start", json!({ "assistant_id": "nested" })).await;
    assert_eq!(answer["type"], "error", "{answer}");
    let start = json!({ "assistant_id": names.assistant, "input": {} });
    assert_eq!(stranger.send(Method::POST, "/runs/wait", Some(&start)).await.0, 404);
    let (status, _) = stranger.send(Method::POST, "/runs/cancel", Some(&json!({ "status": "all" }))).await;
    assert_eq!(status, 404);
    assert_eq!(root.get(&format!("/threads/{}", names.thread)).await, before);
    assert_eq!(root.get(&format!("/assistants/{}", names.assistant)).await, assistant);
}

#[tokio::test]
async fn lists_and_counts_have_what_is_the_callers_own() {
    let (root, ada, stranger) = three().await;
    let names = Names::made(&ada).await;
    stranger.thread().await;
    root.thread().await;
    for (caller, threads, own_assistants) in [(&root, 3, 1), (&ada, 1, 1), (&stranger, 1, 0)] {
        assert_eq!(caller.post("/threads/count", &json!({})).await, threads);
        let found = caller.post("/threads/search", &json!({})).await;
        assert_eq!(found.as_array().unwrap().len(), threads);
        let graphs = 12;
        assert_eq!(caller.post("/assistants/count", &json!({})).await, graphs + own_assistants);
        let page = caller.post("/assistants/search", &json!({ "limit": 5, "offset": 9 })).await;
        assert_eq!(page.as_array().unwrap().len(), 3 + own_assistants);
    }
    let of_ada = json!({ "metadata": { "owner": "ada" } });
    assert_eq!(stranger.post("/threads/search", &of_ada).await, json!([]));
    assert_eq!(ada.post("/threads/search", &of_ada).await[0]["thread_id"], names.thread);
    assert_eq!(stranger.get("/ui/questions").await, json!([]));
    assert_eq!(ada.get("/ui/questions").await[0]["thread_id"], names.thread);
    // An owner cannot give away or take what an operator can give.
    let change = json!({ "metadata": { "owner": "*" } });
    let kept = ada.send(Method::PATCH, &format!("/threads/{}", names.thread), Some(&change)).await.1;
    assert_eq!(kept["metadata"]["owner"], "ada");
    let given = root.send(Method::PATCH, &format!("/threads/{}", names.thread), Some(&change)).await.1;
    assert_eq!(given["metadata"]["owner"], "*");
    assert_eq!(stranger.get(&format!("/threads/{}", names.thread)).await["status"], "interrupted");
    assert_eq!(ada.send(Method::GET, &format!("/threads/{}", names.thread), None).await.0, 404);
    let (status, _) = stranger.send(Method::DELETE, &format!("/threads/{}", names.thread), None).await;
    assert_eq!(status, 204);
    let run = format!("/threads/{}/runs/{}", names.thread, names.run);
    assert_eq!(root.send(Method::GET, &run, None).await.0, 404, "the run has gone with its thread");
}

/// The metadata of an assistant are those of its runs, but for the owner.
#[tokio::test]
async fn a_run_belongs_to_whom_its_thread_belongs() {
    let (root, ada, _) = three().await;
    let of_graph = json!({ "graph_id": "steps", "metadata": { "team": "blue" } });
    let assistant = ada.post("/assistants", &of_graph).await["assistant_id"].clone();
    let thread = root.thread().await;
    let run = json!({ "assistant_id": assistant, "input": {} });
    let run = root.post(&format!("/threads/{thread}/runs"), &run).await;
    assert_eq!((&run["metadata"]["team"], run["metadata"].get("owner")), (&json!("blue"), None));
    let path = format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap());
    assert_eq!(ada.send(Method::GET, &path, None).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn assistants_of_graphs_are_used_by_all_and_changed_by_operators() {
    let (root, ada, _) = three().await;
    let found = ada.post("/assistants/search", &json!({ "graph_id": "steps" })).await;
    let path = format!("/assistants/{}", found[0]["assistant_id"].as_str().unwrap());
    assert_eq!(ada.get(&path).await["name"], "steps");
    let change = json!({ "metadata": { "a": 1 } });
    for (method, path) in [(Method::PATCH, path.clone()), (Method::POST, format!("{path}/latest"))] {
        assert_eq!(ada.send(method, &path, Some(&change)).await.0, 403);
    }
    assert_eq!(ada.send(Method::DELETE, &path, None).await.0, 403);
    assert_eq!(root.send(Method::PATCH, &path, Some(&change)).await.1["version"], 2);
}

#[tokio::test]
async fn items_of_a_caller_are_below_its_name() {
    let (root, ada, stranger) = three().await;
    let item = json!({ "namespace": ["notes"], "key": "k", "value": { "by": "ada" } });
    ada.send(Method::PUT, "/store/items", Some(&item)).await;
    let of_star = json!({ "namespace": ["notes"], "key": "k", "value": { "by": "star" } });
    stranger.send(Method::PUT, "/store/items", Some(&of_star)).await;
    let path = "/store/items?namespace=notes&key=k";
    assert_eq!(ada.get(path).await["namespace"], json!(["notes"]));
    assert_eq!(ada.get(path).await["value"]["by"], "ada");
    assert_eq!(stranger.get("/store/items?namespace=ada.notes&key=k").await, Value::Null);
    for (caller, prefix, by) in [(&ada, json!([]), "ada"), (&stranger, json!(["notes"]), "star")] {
        let found = caller.post("/store/items/search", &json!({ "namespace_prefix": prefix })).await;
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(
            (&found["items"][0]["namespace"], &found["items"][0]["value"]["by"]),
            (&json!(["notes"]), &json!(by))
        );
        for filter in [json!({}), json!({ "prefix": ["*"], "suffix": ["*"], "max_depth": 1 })] {
            let listed = caller.post("/store/namespaces", &filter).await;
            assert_eq!(listed, json!({ "namespaces": [["notes"]] }), "{filter}");
        }
    }
    let all = root.post("/store/namespaces", &json!({})).await;
    assert_eq!(all, json!({ "namespaces": [["*", "notes"], ["ada", "notes"]] }));
    let gone = json!({ "namespace": ["notes"], "key": "k" });
    stranger.send(Method::DELETE, "/store/items", Some(&gone)).await;
    assert_eq!(ada.get(path).await["value"]["by"], "ada");
}

#[tokio::test]
async fn events_of_a_thread_reach_its_owner_alone() {
    let (_, ada, stranger) = three().await;
    let thread = uuid::Uuid::now_v7().to_string();
    let began = Instant::now();
    let early = stranger.request(Method::POST, &format!("/threads/{thread}/stream/events"));
    let mut early = early.json(&json!({ "channels": ALL_CHANNELS })).send().await.unwrap();
    let url = format!("{}/threads/{thread}/stream/events", stranger.url.replace("http", "ws"));
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("authorization", "Bearer key-of-star".parse().unwrap());
    let (mut socket, _) = connect_async(request.clone()).await.unwrap();
    let subscribe =
        json!({ "id": 1, "method": "subscription.subscribe", "params": { "channels": ALL_CHANNELS } });
    socket.send(Message::text(subscribe.to_string())).await.unwrap();

    let mut own = ada.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    ada.start(&thread, "steps", json!({ "text": "secret" })).await;
    own.until(|event| event.data["params"]["data"]["event"] == "completed").await;
    // What was sent before now comes before the heartbeats that cannot have been sent yet.
    let (ended, mut read) = (began.elapsed().as_millis() / 50 + 2, String::new());
    while (read.matches("heartbeat").count() as u128) < ended {
        read += std::str::from_utf8(&early.chunk().await.unwrap().unwrap()).unwrap();
    }
    assert!(!read.contains("event"), "{read}");
    let (mut late, _) = connect_async(request).await.unwrap();
    late.send(Message::text(subscribe.to_string())).await.unwrap();
    for socket in [&mut socket, &mut late] {
        let mut pings = 0;
        while pings < ended {
            match socket.next().await.unwrap().unwrap() {
                Message::Ping(_) => pings += 1,
                Message::Text(text) => {
                    let answer: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(answer["meta"]["applied_through_seq"], 0, "{answer}");
                    assert_eq!(answer["result"]["replayed_events"], 0, "{answer}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let answer = stranger.command(&thread, "subscription.subscribe", json!({})).await;
    assert_eq!(answer["type"], "error", "{answer}");
}

#[tokio::test]
async fn an_owner_misses_no_event_between_heartbeats() {
    let folder = std::env::temp_dir().join(format!("agentgraph-server-{}-owner", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Heartbeats interrupt the reading of the records all the time.
    let server = Server::new().sqlite(folder.join("served.db")).heartbeat(Duration::from_millis(1));
    let server = Served::of(all_graphs(server.caller_key("key-of-ada", Caller::named("ada")))).await;
    let ada = server.with_key("key-of-ada");
    let thread = uuid::Uuid::now_v7().to_string();
    let mut stream = ada.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    ada.start(&thread, "talking", json!({ "wait_ms": 200 })).await;
    let events = stream.until(|event| event.data["params"]["data"]["event"] == "completed").await;
    let seqs: Vec<u64> = events.iter().map(|event| event.data["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<u64>>());
    assert!(seqs.len() > 200);
    std::fs::remove_dir_all(folder).unwrap();
}

struct Cookies;

#[async_trait::async_trait]
impl Authenticate for Cookies {
    async fn authenticate(&self, request: &Parts) -> Result<Caller, Denied> {
        match request.headers.get("cookie").and_then(|cookie| cookie.to_str().ok()) {
            Some("down") => Err(Denied::Unavailable),
            Some(name) => Ok(Caller::named(name)),
            None => Err(Denied::Unknown),
        }
    }
}

#[tokio::test]
async fn code_of_ones_own_says_who_calls() {
    let server = Served::of(all_graphs(Server::new().in_memory().authenticate(Cookies))).await;
    let call = |cookie: &str, origin: Option<&str>| {
        let mut request = server.request(Method::POST, "/threads").header("cookie", cookie).json(&json!({}));
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        async { request.send().await.unwrap() }
    };
    assert_eq!(call("ada", None).await.json::<Value>().await.unwrap()["metadata"]["owner"], "ada");
    let down = call("down", None).await;
    assert_eq!(
        (down.status(), &down.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    let (status, _) = server.send(Method::GET, "/info", None).await;
    assert_eq!(status, 401);
    // A browser adds cookies to what a page of a stranger sends.
    assert_eq!(call("ada", Some("https://page.example")).await.status(), 403);
}

#[tokio::test]
async fn a_layer_in_front_says_who_calls() {
    let routes = all_graphs(Server::new().in_memory().authenticate(LayeredCaller)).router().await.unwrap();
    let routes = routes.layer(axum::middleware::map_request(async |mut request: Request| {
        if let Some(name) = request.headers().get("x-user").and_then(|name| name.to_str().ok()) {
            let caller = Caller::named(name);
            request.extensions_mut().insert(caller);
        }
        request
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/threads/count", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let client = crate::common::client();
    assert_eq!(client.post(&url).send().await.unwrap().status(), 401);
    assert_eq!(client.post(&url).header("x-user", "ada").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_check_of_callers() {
    let refused = Server::new().in_memory().serve("0.0.0.0:0").await;
    assert!(refused.unwrap_err().to_string().contains("Server::bearer_keys"));
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = all_graphs(Server::new().in_memory().authenticate(Cookies));
    let serving = tokio::spawn(server.serve_on(listener));
    let url = format!("http://127.0.0.1:{port}/info");
    let answer = crate::common::client().get(url).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    serving.abort();
}
