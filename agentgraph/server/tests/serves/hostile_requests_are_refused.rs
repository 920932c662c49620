//! Requests that try to break the server. It answers each, and serves on.

use agentgraph_server::Server;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::{Served, all_graphs};

#[tokio::test]
async fn bodies_that_are_no_json_too_deep_or_too_long_are_refused() {
    let server = Served::of(all_graphs(Server::new().in_memory().max_body(100_000))).await;
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let cases = [
        (StatusCode::UNPROCESSABLE_ENTITY, "{".to_owned()),
        (StatusCode::UNPROCESSABLE_ENTITY, "[]".to_owned()),
        (StatusCode::UNPROCESSABLE_ENTITY, format!("{{\"metadata\":{deep}}}")),
        (StatusCode::UNPROCESSABLE_ENTITY, "{\"metadata\":\"\u{0}\"}".to_owned()),
        (StatusCode::PAYLOAD_TOO_LARGE, " ".repeat(100_001)),
    ];
    for (status, body) in cases {
        let shown: String = body.chars().take(30).collect();
        let answer = server.request(Method::POST, "/threads").body(body).send().await.unwrap();
        assert_eq!(answer.status(), status, "{shown}");
        assert!(answer.json::<Value>().await.unwrap()["detail"].is_string(), "{shown}");
    }
    assert_eq!(server.post("/threads/count", &json!({})).await, 0);
}

#[tokio::test]
async fn ids_and_filters_are_data_and_no_code() {
    let server = Served::new().await;
    server.thread().await;
    for id in ["..%2F..%2Fetc", "%00", "'%20OR%201=1", "%F0%9F%A6%80", "%FF%FE", "a%0D%0Ab"] {
        for path in
            [format!("/threads/{id}"), format!("/threads/{id}/state/{id}"), format!("/runs/{id}/stream")]
        {
            let (status, _) = server.send(Method::GET, &path, None).await;
            assert!(status.is_client_error(), "{path}: {status}");
        }
    }
    let hostile = json!({ "metadata": { "'; DROP TABLE server_records; --": "\u{0}\"' OR 1=1" } });
    assert_eq!(server.post("/threads/search", &hostile).await, json!([]));
    let kept = server.post("/threads", &hostile).await;
    assert_eq!(kept["metadata"], hostile["metadata"]);
    let found = server.post("/threads/search", &hostile).await;
    assert_eq!(found[0]["thread_id"], kept["thread_id"]);
}

#[tokio::test]
async fn metadata_of_a_client_can_not_move_a_thread_to_a_graph_that_is_not_there() {
    let server = Served::new().await;
    let body = json!({ "metadata": { "graph_id": { "$ne": null } } });
    let thread = server.post("/threads", &body).await["thread_id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/threads/{thread}/state")).await["values"], json!({}));
}

#[tokio::test]
async fn a_reader_that_never_reads_holds_up_nobody() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({
        "assistant_id": "endless", "input": {}, "stream_mode": ["values", "updates"],
        "config": { "recursion_limit": 300 },
    });
    // The values grow with each step: in all more than what sockets hold.
    let unread =
        server.request(Method::POST, &format!("/threads/{thread}/runs/stream")).json(&body).send().await;
    let unread = unread.unwrap();
    let run = unread.headers()["content-location"].to_str().unwrap().to_owned();
    let ended = server.get(&format!("{run}/join")).await;
    assert_eq!(ended["__error__"]["error"], "GraphRecursionError");
    drop(unread);
}

#[tokio::test]
async fn a_spoilt_record_is_an_error_and_the_others_are_served() {
    let folder = std::env::temp_dir().join(format!("agentgraph-server-{}-spoilt", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("served.db");
    let server = Served::of(all_graphs(Server::new().sqlite(&file))).await;
    let (spoilt, other) = (server.thread().await, server.thread().await);
    let spoil = rusqlite::Connection::open(&file).unwrap();
    for data in ["[]", "7", "{", ""] {
        spoil.execute("UPDATE server_records SET data = ?1 WHERE id = ?2", [data, &*spoilt]).unwrap();
        let runs = format!("/threads/{spoilt}/runs/wait");
        let body = json!({ "assistant_id": "steps", "input": {} });
        let (status, answer) = server.send(Method::POST, &runs, Some(&body)).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{data}");
        assert!(answer["detail"].is_string(), "{data}: {answer}");
        assert_eq!(server.get(&format!("/threads/{other}")).await["status"], "idle");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
