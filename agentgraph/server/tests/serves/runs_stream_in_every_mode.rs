//! The events of runs: their names, their order, their data.

use serde_json::{Value, json};

use crate::common::{Served, names};

#[tokio::test]
async fn values_are_the_default_and_follow_each_superstep() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    assert_eq!(names(&events), ["metadata", "values", "values", "values", "end"]);
    assert_eq!(events[0].data["attempt"], 1);
    let seen: Vec<&Value> = events[1..4].iter().map(|event| &event.data["seen"]).collect();
    assert_eq!(seen, [&json!([]), &json!(["first a"]), &json!(["first a", "second"])]);
    assert!(events.iter().all(|event| event.id.is_none()), "only resumable streams have ids");
}

#[tokio::test]
async fn updates_come_before_values_and_custom_events_as_they_are_sent() {
    let server = Served::new().await;
    let body = json!({
        "assistant_id": "steps", "input": { "text": "a" }, "stream_mode": ["values", "updates", "custom"],
    });
    let events = server.stream("/runs/stream", &body).await;
    let expected = ["metadata", "values", "custom", "updates", "values", "updates", "values", "end"];
    assert_eq!(names(&events), expected);
    assert_eq!(events[3].data, json!({ "first": { "seen": ["first a"] } }));
    assert_eq!(events[2].data, json!({ "at": "first" }));
}

#[tokio::test]
async fn debug_has_the_checkpoints_and_tasks_in_langgraphs_order() {
    let server = Served::new().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" }, "stream_mode": "debug" });
    let events = server.stream("/runs/stream", &body).await;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event.data["type"].as_str()).collect();
    let expected = [
        "checkpoint",
        "checkpoint",
        "task",
        "task_result",
        "checkpoint",
        "task",
        "task_result",
        "checkpoint",
    ];
    assert_eq!(kinds, expected);
    let steps: Vec<i64> = events.iter().filter_map(|event| event.data["step"].as_i64()).collect();
    assert_eq!(steps, [-1, 0, 1, 1, 1, 2, 2, 2]);
    let result = &events[4].data["payload"];
    assert_eq!((&result["name"], &result["result"]), (&json!("first"), &json!({ "seen": ["first a"] })));
}

#[tokio::test]
async fn an_interrupt_is_an_update_and_a_part_of_the_last_values() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "ask", "input": {}, "stream_mode": ["values", "updates"] });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    let update = events.iter().find(|event| event.name == "updates").unwrap();
    let interrupt = &update.data["__interrupt__"][0];
    assert_eq!(interrupt["value"], json!({ "question": "go on?" }));
    assert_eq!(interrupt["id"].as_str().map(str::len), Some(32));
    assert!(interrupt["response_schema"].is_null());
    let last = events.iter().rfind(|event| event.name == "values").unwrap();
    assert_eq!(last.data["__interrupt__"][0]["id"], interrupt["id"]);
    let thread = server.get(&format!("/threads/{thread}")).await;
    assert_eq!(thread["status"], "interrupted");
    let open = thread["interrupts"].as_object().unwrap().values().next().unwrap();
    assert_eq!(open[0]["id"], interrupt["id"]);
}

#[tokio::test]
async fn events_of_subgraphs_name_their_place() {
    let server = Served::new().await;
    let body = json!({
        "assistant_id": "nested", "input": {}, "stream_mode": "updates", "stream_subgraphs": true,
        "command": { "resume": null },
    });
    let thread = server.thread().await;
    server
        .stream(
            &format!("/threads/{thread}/runs/stream"),
            &json!({
                "assistant_id": "nested", "input": {}, "stream_mode": "updates", "stream_subgraphs": true,
            }),
        )
        .await;
    let _ = body;
    let resumed = json!({
        "assistant_id": "nested", "command": { "resume": "yes" }, "stream_mode": "updates", "stream_subgraphs": true,
    });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &resumed).await;
    let inner = events.iter().find(|event| event.name.starts_with("updates|child:")).unwrap();
    let task = inner.name.strip_prefix("updates|child:").unwrap();
    assert_eq!((task.len(), task.matches('-').count()), (36, 4));
    assert_eq!(inner.data, json!({ "ask": { "answers": ["yes"] } }));
}

#[tokio::test]
async fn messages_come_in_chunks_with_the_id_of_the_message_in_the_state() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({
        "assistant_id": "chat", "stream_mode": ["messages-tuple", "values"],
        "input": { "messages": [{ "type": "human", "content": "hello" }] },
    });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    let chunks: Vec<&Value> =
        events.iter().filter(|event| event.name == "messages").map(|event| &event.data).collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk[0]["content"].as_str()).collect();
    assert_eq!(text, "you said hello");
    let about = &chunks[0][1];
    assert_eq!((&about["langgraph_node"], &about["thread_id"]), (&json!("reply"), &json!(thread)));
    let id = &chunks[0][0]["id"];
    assert!(id.as_str().unwrap().starts_with("lc_run--") && chunks.iter().all(|chunk| chunk[0]["id"] == *id));
    let usage = |chunk: &Value| chunk[0]["usage_metadata"].clone();
    let (of_first, of_last) = (usage(chunks[0]), usage(chunks[chunks.len() - 1]));
    assert_eq!((of_first, &of_last["input_tokens"]), (Value::Null, &json!(20)), "clients add them up");
    let last = events.iter().rfind(|event| event.name == "values").unwrap();
    assert_eq!(last.data["messages"][1]["id"], *id, "{}", last.data);
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["messages"][1]["id"], *id, "and in the stored state");
    assert_eq!(state["values"]["messages"][1]["type"], "ai");
}

#[tokio::test]
async fn the_mode_messages_sends_the_message_so_far() {
    let server = Served::new().await;
    let body = json!({
        "assistant_id": "chat", "stream_mode": "messages", "input": { "messages": [["user", "hello"]] },
    });
    let events = server.stream("/runs/stream", &body).await;
    assert_eq!(events[1].name, "messages/metadata");
    let last = events.iter().rfind(|event| event.name == "messages/partial").unwrap();
    assert_eq!(last.data[0]["content"], "you said hello");
    assert_eq!(last.data[0]["usage_metadata"]["total_tokens"], 25);
}

#[tokio::test]
async fn an_error_of_a_node_has_the_name_that_it_chose() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "fails": "ValueError" } });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    let last = events.last().unwrap();
    assert_eq!((&*last.name, &last.data), ("error", &json!({ "error": "ValueError", "message": "boom!" })));
    let waited = server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    assert_eq!(waited, json!({ "__error__": { "error": "ValueError", "message": "boom!" } }));
    let endless = json!({ "assistant_id": "endless", "input": {}, "config": { "recursion_limit": 3 } });
    let waited = server.post("/runs/wait", &endless).await;
    assert_eq!(waited["__error__"]["error"], "GraphRecursionError");
}

#[tokio::test]
async fn a_run_stops_before_and_after_nodes() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let runs = format!("/threads/{thread}/runs/wait");
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" }, "interrupt_before": ["second"] });
    assert_eq!(server.post(&runs, &body).await["seen"], json!(["first a"]));
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!((&state["next"], &state["tasks"][0]["name"]), (&json!(["second"]), &json!("second")));
    let rest = server.post(&runs, &json!({ "assistant_id": "steps", "input": null })).await;
    assert_eq!(rest["seen"], json!(["first a", "second"]));
    let body = json!({ "assistant_id": "steps", "input": { "text": "b" }, "interrupt_after": "*" });
    assert_eq!(server.post(&runs, &body).await["seen"], json!(["first a", "second", "first b"]));
}

#[tokio::test]
async fn nodes_see_the_configuration_of_the_run() {
    let server = Served::new().await;
    let body = json!({
        "assistant_id": "settings", "input": {}, "config": { "configurable": { "user": "ada" } },
    });
    assert_eq!(server.post("/runs/wait", &body).await["text"], "ada");
}
