//! Runs beside each other: queued, refused, interrupted, rolled back, cancelled.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::Served;

const HOUR: u64 = 3_600_000;

/// A thread with a run that waits in its first node until it is stopped.
async fn busy(server: &Served) -> (String, String) {
    let thread = server.thread().await;
    let run = begun(server, &thread, "slow").await;
    (thread, run)
}

async fn begun(server: &Served, thread: &str, text: &str) -> String {
    let body = json!({ "assistant_id": "steps", "input": { "text": text, "wait_ms": HOUR }, "stream_mode": "custom" });
    let response =
        server.request(Method::POST, &format!("/threads/{thread}/runs")).json(&body).send().await.unwrap();
    let run: Value = response.json().await.unwrap();
    let run = run["run_id"].as_str().unwrap().to_owned();
    // The node runs when it has sent its event.
    let mut events =
        server.request(Method::GET, &format!("/threads/{thread}/runs/{run}/stream")).send().await.unwrap();
    let mut read = String::new();
    while !read.contains("event: custom") {
        read += &String::from_utf8_lossy(&events.chunk().await.unwrap().unwrap());
    }
    run
}

fn quick(strategy: &str) -> Value {
    json!({
        "assistant_id": "steps", "input": { "text": "quick", "wait_ms": 0 }, "multitask_strategy": strategy,
    })
}

#[tokio::test]
async fn runs_are_cancelled_together_by_their_ids_or_their_status() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "wait_ms": 3_600_000 } });
    let path = format!("/threads/{thread}/runs");
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(server.post(&path, &body).await["run_id"].as_str().unwrap().to_owned());
    }
    let cancel = async |body: serde_json::Value| {
        let (status, answer) = server.send(Method::POST, "/runs/cancel", Some(&body)).await;
        (status.as_u16(), answer)
    };
    let other = server.thread().await;
    assert_eq!(
        cancel(json!({ "thread_id": other, "run_ids": ids })).await.0,
        404,
        "they are of another thread"
    );
    for wrong in [
        json!({}),
        json!({ "status": "done" }),
        json!({ "run_ids": ids }),
        json!({ "thread_id": thread }),
        json!({ "thread_id": thread, "run_ids": ["x"] }),
        json!({ "status": "all", "thread_id": thread }),
    ] {
        assert_eq!(cancel(wrong.clone()).await.0, 422, "{wrong}");
    }
    assert_eq!(cancel(json!({ "thread_id": thread, "run_ids": [ids[2]] })).await.0, 204);
    assert_eq!(cancel(json!({ "status": "all" })).await.0, 204);
    for id in &ids {
        server.get(&format!("{path}/{id}/join")).await;
        assert_eq!(server.get(&format!("{path}/{id}")).await["status"], "interrupted");
    }
    assert_eq!(cancel(json!({ "status": "all" })).await.0, 404);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(server.post(&path, &body).await["run_id"].clone());
    }
    assert_eq!(cancel(json!({ "thread_id": thread, "run_ids": ids })).await.0, 204);
    for id in ids {
        server.get(&format!("{path}/{}/join", id.as_str().unwrap())).await;
    }
    let history = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 100 })).await;
    assert_eq!(history.as_array().unwrap().len(), 4, "those that waited have not begun: {history}");
}

#[tokio::test]
async fn reject_is_a_conflict() {
    let server = Served::new().await;
    let (thread, run) = busy(&server).await;
    let runs = format!("/threads/{thread}/runs");
    let (status, body) = server.send(Method::POST, &runs, Some(&quick("reject"))).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    assert_eq!(server.get(&format!("{runs}/{run}")).await["status"], "running");
    assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "busy");
}

#[tokio::test]
async fn interrupt_keeps_what_was_done_and_rollback_does_not() {
    let server = Served::new().await;
    for strategy in ["interrupt", "rollback"] {
        let (thread, run) = busy(&server).await;
        let after = server.post(&format!("/threads/{thread}/runs/wait"), &quick(strategy)).await;
        assert_eq!(after["seen"], json!(["first quick", "second"]), "{strategy}");
        let (status, old) = server.send(Method::GET, &format!("/threads/{thread}/runs/{run}"), None).await;
        match strategy {
            "interrupt" => assert_eq!(old["status"], "interrupted"),
            _ => assert_eq!(status, StatusCode::NOT_FOUND, "the run is gone: {old}"),
        }
        assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "idle");
    }
}

#[tokio::test]
async fn what_was_rolled_back_is_in_no_history() {
    let server = Served::new().await;
    let (thread, first) = busy(&server).await;
    let runs = format!("/threads/{thread}/runs");
    server.post(&format!("{runs}/{first}/cancel?wait=true"), &json!({})).await;
    let history = async |thread: &str| -> Vec<Value> {
        let states = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 100 })).await;
        states.as_array().unwrap().clone()
    };
    let path = format!("/threads/{thread}/state");
    for text in ["one", "two"] {
        let kept = (history(&thread).await, server.get(&path).await);
        let run = begun(&server, &thread, text).await;
        assert_eq!(history(&thread).await[0]["values"]["text"], text);
        server.post(&format!("{runs}/{run}/cancel?wait=true&action=rollback"), &json!({})).await;
        let now = (history(&thread).await, server.get(&path).await);
        assert_eq!(now, kept, "the state before it is there again, at its checkpoint");
    }
    let kept = history(&thread).await;
    let mut next = quick("reject");
    next["checkpoint"] = kept[0]["checkpoint"].clone();
    server.post(&format!("{runs}/wait"), &next).await;
    let copy = server.post(&format!("/threads/{thread}/copy"), &json!({})).await;
    for thread in [&thread, copy["thread_id"].as_str().unwrap()] {
        let states = history(thread).await;
        let texts: Vec<_> = states.iter().map(|state| state["values"]["text"].clone()).collect();
        assert_eq!(texts.len(), kept.len() + 4, "an input, two nodes and what is before them: {texts:?}");
        assert_eq!(&texts[..3], [json!("quick"), json!("quick"), json!("quick")]);
        assert!(!texts.contains(&json!("one")) && !texts.contains(&json!("two")), "{texts:?}");
        for pair in states.windows(2) {
            assert_eq!(
                pair[0]["parent_checkpoint"], pair[1]["checkpoint"],
                "each state follows the one below"
            );
        }
    }
}

#[tokio::test]
async fn enqueued_runs_follow_one_another() {
    let server = Served::new().await;
    let (thread, run) = busy(&server).await;
    let runs = format!("/threads/{thread}/runs");
    let next = server.post(&runs, &quick("enqueue")).await;
    assert_eq!(next["status"], "pending");
    let cancelled = server.post(&format!("{runs}/{run}/cancel?wait=true"), &json!({})).await;
    assert_eq!(cancelled, json!({}));
    let joined = server.get(&format!("{runs}/{}/join", next["run_id"].as_str().unwrap())).await;
    assert_eq!(joined["text"], "quick");
    let listed = server.get(&runs).await;
    let statuses: Vec<&Value> = listed.as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, [&json!("success"), &json!("interrupted")], "the newest first");
}

#[tokio::test]
async fn a_run_that_is_not_due_holds_up_no_other() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let after = |seconds: f64, text: &str| json!({ "assistant_id": "steps", "input": { "text": text }, "after_seconds": seconds });
    let mut later = Vec::new();
    for seconds in [3600.0, 1800.0] {
        later.push(server.post(&runs, &after(seconds, "later")).await["run_id"].clone());
    }
    let wait = format!("{runs}/wait");
    let done = async {
        server.post(&wait, &quick("enqueue")).await;
        server.post(&wait, &after(0.01, "soon")).await
    };
    let done = timeout(Duration::from_secs(60), done).await.expect("the runs that are due do not wait");
    assert_eq!(done["seen"], json!(["first quick", "second", "first soon", "second"]));
    assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "busy");
    for run in later {
        let run = format!("{runs}/{}", run.as_str().unwrap());
        assert_eq!(server.get(&run).await["status"], "pending");
        server.post(&format!("{run}/cancel?wait=true"), &json!({})).await;
        assert_eq!(server.get(&run).await["status"], "interrupted");
    }
}

#[tokio::test]
async fn a_waiting_run_that_is_cancelled_ends_at_once() {
    let server = Served::new().await;
    let (thread, run) = busy(&server).await;
    let runs = format!("/threads/{thread}/runs");
    for action in ["interrupt", "rollback"] {
        let mut waiting = quick("enqueue");
        waiting["stream_mode"] = json!(["values"]);
        let stream =
            server.request(Method::POST, &format!("{runs}/stream")).json(&waiting).send().await.unwrap();
        let place = stream.headers()["content-location"].to_str().unwrap().to_owned();
        server.post(&format!("{place}/cancel?wait=true&action={action}"), &json!({})).await;
        let (status, ended) = server.send(Method::GET, &place, None).await;
        match action {
            "interrupt" => assert_eq!(ended["status"], "interrupted"),
            _ => assert_eq!(status, StatusCode::NOT_FOUND, "{ended}"),
        }
        // Its stream ends, too.
        let events = stream.text().await.unwrap();
        assert!(events.ends_with("event: end\r\ndata: null\r\n\r\n"), "{events}");
        let (status, _) = server.send(Method::POST, &format!("{place}/cancel"), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "nothing is left to cancel");
    }
    // The run before it does not notice, and one after it has its turn.
    assert_eq!(server.get(&format!("{runs}/{run}")).await["status"], "running");
    assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "busy");
    let last = server.post(&runs, &quick("enqueue")).await;
    server.post(&format!("{runs}/{run}/cancel?wait=true"), &json!({})).await;
    let joined = server.get(&format!("{runs}/{}/join", last["run_id"].as_str().unwrap())).await;
    assert_eq!(joined["seen"], json!(["first quick", "second"]));
    assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "idle");
}

#[tokio::test]
async fn a_cancelled_run_leaves_its_thread_where_it_was() {
    let server = Served::new().await;
    let (thread, run) = busy(&server).await;
    let cancel = format!("/threads/{thread}/runs/{run}/cancel");
    let (status, body) = server.send(Method::POST, &cancel, None).await;
    assert_eq!((status, body), (StatusCode::ACCEPTED, json!("")));
    server.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["next"], json!(["first"]));
    let (status, _) = server.send(Method::POST, &cancel, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nothing is left to cancel");
}

#[tokio::test]
async fn a_run_ends_with_its_connection_only_if_it_is_told_so() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({
        "assistant_id": "steps", "input": { "wait_ms": HOUR }, "stream_mode": "custom", "on_disconnect": "cancel",
    });
    let stream = format!("/threads/{thread}/runs/stream");
    let mut response = server.request(Method::POST, &stream).json(&body).send().await.unwrap();
    let place = response.headers()["content-location"].to_str().unwrap().to_owned();
    assert_eq!(response.headers()["location"], format!("{place}/stream").as_str());
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    response.chunk().await.unwrap();
    drop(response);
    server.get(&format!("{place}/join")).await;
    assert_eq!(server.get(&place).await["status"], "interrupted");
}

#[tokio::test]
async fn runs_without_a_thread_leave_nothing() {
    let server = Served::new().await;
    let wrong = json!({ "assistant_id": "steps", "input": {}, "on_completion": "keeps" });
    assert_eq!(server.send(Method::POST, "/runs/wait", Some(&wrong)).await.0, 422);
    server.post("/runs/wait", &json!({ "assistant_id": "steps", "input": { "text": "a" } })).await;
    assert_eq!(server.post("/threads/count", &json!({})).await, 0);
    let kept = json!({ "assistant_id": "steps", "input": { "text": "a" }, "on_completion": "keep" });
    server.post("/runs/wait", &kept).await;
    assert_eq!(server.post("/threads/count", &json!({})).await, 1);
}
