//! The routes of xRx: the frames, the task id, the cancellation, and words for every body.

use serde_json::{Value, json};
use shopify_agent::embedded::EmbeddedShop;

use crate::process::{Folder, Server, chunks, click, message};

#[tokio::test]
async fn a_turn_has_its_task_id_before_the_first_byte_and_one_chunk_for_each_frame() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let reply = server.run(&message("g", "what kind of wing sauces do you have")).await;
    let headers = reply.response.headers();
    assert_eq!(headers["content-type"], "text/event-stream; charset=utf-8");
    assert!(uuid::Uuid::parse_str(&reply.task).is_ok(), "{}", reply.task);
    let chunks = chunks(reply.response).await;
    for chunk in &chunks {
        // Frames that are made at the same moment may share a chunk; none is cut.
        assert!(chunk.starts_with("data: {") && chunk.ends_with("}\n\n"), "{chunk}");
        for line in chunk.split_terminator("\n\n") {
            let frame: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
            let keys: Vec<&String> = frame.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["messages", "node", "output", "reason", "session"]);
            assert_eq!(frame["session"]["guid"], "g");
        }
    }
    assert!(chunks.len() > 3, "{}", chunks.len());
    assert!(chunks.last().unwrap().contains("\"CustomerResponse\""));
}

#[tokio::test]
async fn whatever_a_front_end_sends_gets_words_or_an_error_frame() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let long = format!("{{\"messages\": \"{}\"}}", "x".repeat(2 << 20));
    let unknown = json!({"messages": [], "action": {"type": "dance"}}).to_string();
    for body in ["", "null", "{", "[1]", &unknown, &long] {
        let answer = server.post("run-reasoning-agent").body(body.to_owned()).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(answer.headers().contains_key("x-task-id"));
        let text = answer.text().await.unwrap();
        let frame: Value = serde_json::from_str(text.strip_prefix("data: ").unwrap()).unwrap();
        assert!(frame["error"].is_string() && frame["code"] == "unreadable_request", "{frame}");
    }
    let words = [
        json!({}),
        json!({"messages": null, "action": null}),
        json!({"messages": [{"role": "user", "content": null}], "action": {}}),
    ];
    for body in words {
        let frames = server.run(&body).await.all().await;
        assert_eq!(frames.last().unwrap()["node"], "CustomerResponse", "{body}");
    }
}

#[tokio::test]
async fn requests_of_the_orchestrator_are_answered() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let requests: Vec<Value> =
        serde_json::from_str(include_str!("../fixtures/orchestrator_requests.json")).unwrap();
    for request in requests {
        let frames = server.run(&request["body"]).await.all().await;
        assert_eq!(frames.last().unwrap()["node"], "CustomerResponse", "{}", request["about"]);
    }
}

#[tokio::test]
async fn a_cancel_has_no_body_and_ends_the_stream_without_a_frame() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(&folder, &shop, &[]).await;
    shop.silence_next(1);
    let cola = shop.variant_of("Cola").unwrap();
    let mut reply =
        server.run(&click(&json!({"guid": "g"}), "add_item_to_cart", &json!({"variant_id": cola}))).await;
    while shop.mutations() == 0 {
        tokio::task::yield_now().await;
    }
    let path = format!("cancel-reasoning-agent/{}", reply.task);
    let answer = server.post(&path).header("content-type", "application/json").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(body, json!({"detail": format!("Task {} cancelled", reply.task)}));
    assert_eq!(reply.next().await, None);
    assert_eq!(server.ended(&reply.task).await["status"], "cancelled");

    let unknown = server.post("cancel-reasoning-agent/task-none").send().await.unwrap();
    assert_eq!(unknown.status(), 404);
}

#[tokio::test]
async fn a_closed_connection_ends_the_task() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(&folder, &shop, &[]).await;
    shop.silence_next(1);
    let cola = shop.variant_of("Cola").unwrap();
    let reply =
        server.run(&click(&json!({"guid": "g"}), "add_item_to_cart", &json!({"variant_id": cola}))).await;
    while shop.mutations() == 0 {
        tokio::task::yield_now().await;
    }
    let task = reply.task.clone();
    drop(reply);
    assert_eq!(server.ended(&task).await["status"], "cancelled");
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_and_the_own_page_has_a_strict_policy() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let call = server.post("run-reasoning-agent").header("origin", origin).json(&message("g", "hello"));
        assert_eq!(call.send().await.unwrap().status(), 403, "{origin}");
    }
    let own = server.url.trim_end_matches('/').to_owned();
    let call = server.post("run-reasoning-agent").header("origin", own).json(&message("g", "hello"));
    assert_eq!(call.send().await.unwrap().status(), 200);
    for path in ["", "shop.css", "shop.js"] {
        let page = server.get(path).await;
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let text = page.text().await.unwrap();
        let outside = text
            .match_indices("http")
            .filter(|(at, _)| !text[*at..].starts_with("http://www.w3.org/2000/svg"));
        let outside: Vec<_> = outside
            .filter(|(at, _)| text[*at..].contains("://") && text[*at..*at + 8].contains("://"))
            .collect();
        assert!(outside.is_empty(), "{path} names an outside address");
    }
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_ends_what_runs_first() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(&folder, &shop, &[]).await;
    shop.delay(std::time::Duration::from_millis(300));
    let mut reply = server.run(&message("g", "what's on the menu")).await;
    reply.until("Routing").await;
    let ends = tokio::spawn(server.terminate());
    assert_eq!(reply.until("CustomerResponse").await["output"], "Any of these look good to you?");
    drop(reply);
    assert!(ends.await.unwrap());
}
