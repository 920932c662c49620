//! The second protocol: one ordered log for each thread, which any number of readers read from any event on.

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::{ALL_CHANNELS, Event, Followed, Served};

fn methods(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| &*event.name).collect()
}

fn data(event: &Event) -> &Value {
    &event.data["params"]["data"]
}

fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.data["seq"].as_u64().unwrap()).collect()
}

fn status(event: &Event) -> Option<&str> {
    (event.name == "lifecycle").then(|| data(event)["event"].as_str().unwrap())
}

/// Whether the run of a thread's own graph has ended.
fn is_end(event: &Event) -> bool {
    event.data["params"]["namespace"] == json!([])
        && matches!(status(event), Some("completed" | "failed" | "interrupted"))
}

async fn log_of(server: &Served, assistant: &str, input: Value) -> (String, Vec<Event>) {
    let thread = uuid::Uuid::now_v7().to_string();
    let mut followed = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    server.start(&thread, assistant, input).await;
    let events = followed.until(is_end).await;
    (thread, events)
}

#[tokio::test]
async fn events_of_a_run_come_in_one_order_with_ids_that_stay() {
    let server = Served::new().await;
    let thread = uuid::Uuid::now_v7().to_string();
    let run = server.start(&thread, "steps", json!({ "text": "a" })).await;
    let mut followed = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    let events = followed.until(is_end).await;
    let expected = [
        "lifecycle",
        "checkpoints",
        "values",
        "tasks",
        "custom",
        "updates",
        "tasks",
        "checkpoints",
        "values",
        "tasks",
        "updates",
        "tasks",
        "checkpoints",
        "values",
        "lifecycle",
    ];
    assert_eq!(methods(&events), expected);
    assert_eq!(seqs(&events), (1..=15).collect::<Vec<u64>>());
    let first = &events[0];
    assert_eq!((&*first.data["type"].to_string(), first.id.as_deref()), ("\"event\"", Some("1")));
    assert_eq!(first.data["event_id"], format!("synth:{run}:lc||running"));
    assert_eq!(events[14].data["event_id"], format!("synth:{run}:lc||completed"));
    assert_eq!(data(first), &json!({ "event": "running", "graph_name": "steps" }));
    assert_eq!(data(&events[4]), &json!({ "payload": { "at": "first" } }));
    assert_eq!(data(&events[5]), &json!({ "node": "first", "values": { "seen": ["first a"] } }));
    assert_eq!(data(&events[13])["seen"], json!(["first a", "second"]));
    let times: Vec<i64> =
        events.iter().map(|one| one.data["params"]["timestamp"].as_i64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 1_700_000_000_000, "milliseconds: {times:?}");
    let again = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await.until(is_end).await;
    assert_eq!(again, events, "each reader gets the whole log");
    for after in [1, 7, 14] {
        let body = json!({ "channels": ALL_CHANNELS, "since": after });
        let rest = server.follow(&thread, body).await.until(is_end).await;
        assert_eq!(rest, events[after..], "since {after}");
    }
}

#[tokio::test]
async fn a_filtered_stream_has_the_numbers_of_the_whole_log() {
    let server = Served::new().await;
    let (thread, events) = log_of(&server, "steps", json!({ "text": "a" })).await;
    let some =
        server.follow(&thread, json!({ "channels": ["values", "lifecycle"] })).await.until(is_end).await;
    let expected: Vec<Event> =
        events.into_iter().filter(|event| matches!(&*event.name, "values" | "lifecycle")).collect();
    assert_eq!(some, expected);
    assert_ne!(seqs(&some), (1..=some.len() as u64).collect::<Vec<u64>>(), "there are gaps");
}

#[tokio::test]
async fn a_checkpoint_comes_before_its_values_and_names_its_parent() {
    let server = Served::new().await;
    let (thread, events) = log_of(&server, "steps", json!({ "text": "a" })).await;
    let checkpoints: Vec<&Value> =
        events.iter().filter(|event| event.name == "checkpoints").map(data).collect();
    let sources: Vec<&str> = checkpoints.iter().map(|one| one["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["input", "loop", "loop"]);
    let state = server.get(&format!("/threads/{thread}/state")).await;
    // Clients leave out what is older than the state that they have read.
    let created: jiff::Timestamp = state["created_at"].as_str().unwrap().parse().unwrap();
    let last = events.iter().rfind(|event| event.name == "values").unwrap();
    assert!(last.data["params"]["timestamp"].as_i64().unwrap() >= created.as_millisecond(), "{state}");
    assert_eq!(checkpoints[2]["id"], state["checkpoint"]["checkpoint_id"]);
    assert_eq!(checkpoints[2]["parent_id"], checkpoints[1]["id"]);
    assert_eq!(checkpoints[2]["step"], state["metadata"]["step"]);
    // From the parent of the input another input begins.
    let config = json!({ "configurable": { "checkpoint_id": checkpoints[0]["parent_id"] } });
    let params = json!({ "assistant_id": "steps", "input": { "text": "b" }, "config": config });
    let mut followed = server.follow(&thread, json!({ "channels": ["lifecycle"], "since": 15 })).await;
    server.command(&thread, "run.start", params).await;
    followed.until(is_end).await;
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["seen"], json!(["first b", "second"]));
}

#[tokio::test]
async fn questions_are_answered_by_a_command() {
    let server = Served::new().await;
    let (thread, events) = log_of(&server, "ask", json!({})).await;
    let asked = events.iter().rfind(|event| event.name == "input.requested").unwrap();
    let id = data(asked)["interrupt_id"].clone();
    assert_eq!(data(asked)["payload"], json!({ "question": "go on?" }));
    assert_eq!(status(events.last().unwrap()), Some("interrupted"));
    let task = events.iter().rfind(|event| event.name == "tasks").map(data).unwrap();
    assert_eq!(task["interrupts"][0]["id"], id, "the task waits: {task}");
    let last = *seqs(&events).last().unwrap();
    // An answer that waits for its run is an answer.
    let later = json!({ "assistant_id": "ask", "command": { "resume": { id.as_str().unwrap(): "later" } }, "after_seconds": 3600 });
    let later = server.post(&format!("/threads/{thread}/runs"), &later).await;
    let answer = server.respond(&thread, &id, json!("too late")).await;
    assert_eq!(answer["error"], "no_such_interrupt", "{answer}");
    let path = format!("/threads/{thread}/runs/{}/cancel?wait=true", later["run_id"].as_str().unwrap());
    server.send(Method::POST, &path, None).await;
    let last = last + 1;
    let answer = server.respond(&thread, &id, json!("yes")).await;
    assert_eq!(answer["type"], "success", "{answer}");
    assert_eq!(answer["meta"]["applied_through_seq"], last, "what follows is of the new run");
    let mut followed = server.follow(&thread, json!({ "channels": ALL_CHANNELS, "since": last })).await;
    let events = followed.until(is_end).await;
    assert_eq!(methods(&events)[..2], ["lifecycle", "input.answered"]);
    assert_eq!(data(&events[1]), &json!({ "interrupt_ids": [id] }));
    assert_eq!(status(events.last().unwrap()), Some("completed"));
    let answer = server.respond(&thread, &id, json!("again")).await;
    assert_eq!((&answer["type"], &answer["error"]), (&json!("error"), &json!("no_such_interrupt")));
}

#[tokio::test]
async fn subgraphs_have_namespaces_and_lifecycles_of_their_own() {
    let server = Served::new().await;
    let (thread, events) = log_of(&server, "nested", json!({})).await;
    let asked = events.iter().find(|event| event.name == "input.requested").unwrap();
    let place = asked.data["params"]["namespace"].clone();
    assert!(place[0].as_str().unwrap().starts_with("child:"), "{place}");
    let statuses = |events: &[Event]| -> Vec<(usize, String)> {
        let depth = |event: &Event| event.data["params"]["namespace"].as_array().unwrap().len();
        events.iter().filter_map(|event| Some((depth(event), status(event)?.to_owned()))).collect()
    };
    let named =
        |all: &[(usize, &str)]| all.iter().map(|(at, one)| (*at, (*one).to_owned())).collect::<Vec<_>>();
    let expected = named(&[(0, "running"), (1, "started"), (1, "interrupted"), (0, "interrupted")]);
    assert_eq!(statuses(&events), expected);
    let last = *seqs(&events).last().unwrap();
    server.respond(&thread, &data(asked)["interrupt_id"], json!("yes")).await;
    let body = json!({ "channels": ALL_CHANNELS, "since": last });
    let events = server.follow(&thread, body).await.until(is_end).await;
    let expected = named(&[(0, "running"), (1, "started"), (1, "completed"), (0, "completed")]);
    assert_eq!(statuses(&events), expected);
    let inner = events.iter().rfind(|one| one.name == "values" && one.data["params"]["namespace"] == place);
    assert_eq!(data(inner.unwrap())["answers"], json!(["yes"]));

    let at_root = json!({ "channels": ALL_CHANNELS, "since": last, "namespaces": [[]], "depth": 0 });
    let root = server.follow(&thread, at_root).await.until(is_end).await;
    assert!(root.len() < events.len() && root.iter().all(|one| one.data["params"]["namespace"] == json!([])));
    for wanted in [json!(["child"]), place] {
        let body = json!({ "channels": ALL_CHANNELS, "since": last, "namespaces": [wanted] });
        let is_left = |event: &Event| status(event) == Some("completed");
        let child = server.follow(&thread, body).await.until(is_left).await;
        assert!(child.iter().all(|one| one.data["params"]["namespace"][0].is_string()), "{child:?}");
    }
}

#[tokio::test]
async fn a_subgraph_with_a_memory_ends_before_its_run() {
    let server = Served::new().await;
    let (_, events) = log_of(&server, "lasting", json!({ "text": "a" })).await;
    let lifecycle: Vec<&Value> = events.iter().filter(|event| event.name == "lifecycle").map(data).collect();
    let statuses: Vec<_> = lifecycle.iter().map(|one| (&one["event"], &one["graph_name"])).collect();
    let expected =
        [("running", "lasting"), ("started", "child"), ("completed", "child"), ("completed", "lasting")];
    assert_eq!(json!(statuses), json!(expected));
    let ended = events.iter().position(|one| data(one) == lifecycle[2]).unwrap();
    assert!(events[ended + 1..].iter().any(|one| one.name == "values"), "its end is that of its task");
}

#[tokio::test]
async fn a_model_s_answer_comes_in_parts_of_one_message() {
    let server = Served::new().await;
    let input = json!({ "messages": [{ "type": "human", "content": "hello" }] });
    let (_, events) = log_of(&server, "chat", input).await;
    let parts: Vec<&Value> = events.iter().filter(|event| event.name == "messages").map(data).collect();
    let named: Vec<&str> = parts.iter().map(|part| part["event"].as_str().unwrap()).collect();
    assert_eq!(named[..2], ["message-start", "content-block-start"]);
    assert_eq!(named[named.len() - 2..], ["content-block-finish", "message-finish"]);
    let usage = &parts[parts.len() - 1]["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"], &usage["total_tokens"]),
        (&json!(20), &json!(5), &json!(25))
    );
    let text: String = parts.iter().filter_map(|part| part["delta"]["text"].as_str()).collect();
    assert_eq!(text, "you said hello");
    let content = &parts[named.len() - 2]["content"];
    assert_eq!(content, &json!({ "type": "text", "text": "you said hello" }));
    let values = events.iter().rfind(|event| event.name == "values").map(data).unwrap();
    assert_eq!(values["messages"][1]["id"], parts[0]["id"]);
    assert!(parts.iter().all(|part| part["message_id"] == parts[0]["id"]));
}

#[tokio::test]
async fn calls_of_tools_begin_and_end() {
    let server = Served::new().await;
    let input = json!({ "messages": [{ "type": "human", "content": "add" }] });
    let (_, events) = log_of(&server, "agent", input).await;
    let tools: Vec<&Value> = events.iter().filter(|event| event.name == "tools").map(data).collect();
    let named: Vec<&str> = tools.iter().map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!(named, ["tool-started", "tool-started", "tool-finished", "tool-error"], "{tools:?}");
    assert_eq!((&tools[0]["tool_name"], &tools[0]["input"]), (&json!("add"), &json!({ "a": 1, "b": 2 })));
    assert_eq!(tools[2]["tool_call_id"], tools[0]["tool_call_id"]);
    assert_eq!(tools[2]["output"]["content"], "3");
    let calls: Vec<&Value> = events
        .iter()
        .filter(|event| event.name == "messages" && data(event)["event"] == "content-block-finish")
        .map(|event| &data(event)["content"])
        .collect();
    assert_eq!(calls[0]["type"], "tool_call");
    assert_eq!((&calls[0]["id"], &calls[0]["args"]), (&tools[0]["tool_call_id"], &json!({ "a": 1, "b": 2 })));
}

#[tokio::test]
async fn runs_that_fail_or_are_cancelled_end_in_the_log() {
    let server = Served::new().await;
    let (_, events) = log_of(&server, "steps", json!({ "fails": "ValueError" })).await;
    let end = events.last().unwrap();
    assert_eq!((status(end), &data(end)["error"]), (Some("failed"), &json!("boom!")));

    let thread = uuid::Uuid::now_v7().to_string();
    let mut followed = server.follow(&thread, json!({ "channels": ["tasks", "lifecycle"] })).await;
    let run = server.start(&thread, "steps", json!({ "wait_ms": 3_600_000 })).await;
    let queued = server.start(&thread, "steps", json!({ "text": "never" })).await;
    followed.until(|event| event.name == "tasks").await;
    for run in [&queued, &run] {
        let path = format!("/threads/{thread}/runs/{run}/cancel");
        let (status, _) = server.send(Method::POST, &path, None).await;
        assert_eq!(status, 202);
    }
    // The one that waits ends at once.
    for run in [queued, run] {
        followed.until(|event| event.data["event_id"] == format!("synth:{run}:lc||interrupted")).await;
    }
    let run = server.start(&thread, "steps", json!({ "wait_ms": 3_600_000 })).await;
    let path = format!("/threads/{thread}/runs/{run}/cancel?action=rollback");
    server.send(Method::POST, &path, None).await;
    followed.until(|event| event.data["event_id"] == format!("synth:{run}:lc||interrupted")).await;
}

#[tokio::test]
async fn a_second_run_goes_on_with_the_numbers() {
    let server = Served::new().await;
    let (thread, first) = log_of(&server, "steps", json!({ "text": "a" })).await;
    let params = json!({ "assistant_id": "steps", "input": { "text": "b" } });
    let answer = server.command(&thread, "run.start", params).await;
    let applied = answer["meta"]["applied_through_seq"].as_u64().unwrap();
    assert_eq!(applied, *seqs(&first).last().unwrap());
    let body = json!({ "channels": ALL_CHANNELS, "since": applied });
    let second = server.follow(&thread, body).await.until(is_end).await;
    assert_eq!(seqs(&second), (applied + 1..=applied + second.len() as u64).collect::<Vec<u64>>());
    let mut ids: Vec<String> =
        first.iter().chain(&second).map(|event| event.data["event_id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), first.len() + second.len(), "no id repeats");
}

#[tokio::test]
async fn runs_of_the_first_protocol_are_in_the_log_of_a_thread_that_is_followed() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let mut followed = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" }, "stream_mode": "updates" });
    let v1 = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    assert_eq!(
        crate::common::names(&v1),
        ["metadata", "updates", "updates", "end"],
        "v1 has what it asked for"
    );
    let events = followed.until(is_end).await;
    assert_eq!(events.len(), 15);
    let body = json!({ "assistant_id": "inside", "input": { "text": "a" }, "stream_mode": "updates" });
    let other = server.thread().await;
    let mut followed = server.follow(&other, json!({ "channels": ["updates"] })).await;
    let v1 = server.stream(&format!("/threads/{other}/runs/stream"), &body).await;
    assert_eq!(crate::common::names(&v1), ["metadata", "updates", "end"], "and nothing of subgraphs");
    let events = followed.until(|event| event.data["params"]["namespace"] == json!([])).await;
    assert_eq!(events.len(), 3, "which the log has");

    // A reader that comes while a run is under way sees that it runs, and its end.
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "wait_ms": 3_600_000 }, "stream_mode": "custom" });
    let mut stream = server
        .request(Method::POST, &format!("/threads/{thread}/runs/stream"))
        .json(&body)
        .send()
        .await
        .unwrap();
    let mut read = String::new();
    while !read.contains("event: custom") {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
    let mut followed = server.follow(&thread, json!({ "channels": ["lifecycle"] })).await;
    let runs = server.get(&format!("/threads/{thread}/runs")).await;
    let path = format!("/threads/{thread}/runs/{}/cancel", runs[0]["run_id"].as_str().unwrap());
    server.send(Method::POST, &path, None).await;
    let events = followed.until(is_end).await;
    assert_eq!(events.iter().filter_map(status).collect::<Vec<_>>(), ["running", "interrupted"]);
}

#[tokio::test]
async fn a_strict_answer_to_no_question_tells_what_waits() {
    let server = Served::new().await;
    let (thread, events) = log_of(&server, "ask", json!({})).await;
    let last = *seqs(&events).last().unwrap();
    let waits =
        events.iter().find(|one| one.name == "input.requested").map(|one| data(one)["interrupt_id"].clone());
    let wrong = "0".repeat(32);
    let body =
        json!({ "assistant_id": "ask", "command": { "resume": { &wrong: 1 } }, "strict_resume": true });
    server.post(&format!("/threads/{thread}/runs"), &body).await;
    let body = json!({ "channels": ["lifecycle"], "since": last });
    let events = server.follow(&thread, body).await.until(is_end).await;
    let end = data(events.last().unwrap());
    assert_eq!(end["event"], "failed");
    assert_eq!((&end["interrupt_ids"], &end["pending_ids"]), (&json!([wrong]), &json!([waits])));
    assert!(end["reason"].is_string());
}

#[tokio::test]
async fn a_long_log_is_read_from_the_store_and_loses_its_first_events() {
    let server = Served::new().await;
    let thread = uuid::Uuid::now_v7().to_string();
    let mut followed = server.follow(&thread, json!({ "channels": ["lifecycle"] })).await;
    for (count, first) in [(9_000, 1), (3_000, 2_001)] {
        server.start(&thread, "talking", json!({ "wait_ms": count })).await;
        let end = followed.until(is_end).await.pop().unwrap();
        let last = seqs(&[end])[0];
        let is_last = |event: &Event| event.data["seq"] == last;
        let events = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await.until(is_last).await;
        assert!(seqs(&events).into_iter().eq(first..=last), "from {:?} to {last}", events[0].data["seq"]);
    }
}

#[tokio::test]
async fn a_removed_thread_leaves_no_events() {
    let server = Served::new().await;
    let (thread, _) = log_of(&server, "steps", json!({ "text": "a" })).await;
    let (status, _) = server.send(Method::DELETE, &format!("/threads/{thread}"), None).await;
    assert_eq!(status, 204);
    let mut followed: Followed = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    let run = server.start(&thread, "steps", json!({ "text": "b" })).await;
    let events = followed.until(is_end).await;
    assert_eq!(events[0].data["event_id"], format!("synth:{run}:lc||running"));
}
