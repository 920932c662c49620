//! The events of runs: their names, their order, their data.

use agentgraph::prelude::*;
use agentgraph_server::Server;
use serde_json::{Value, json};

use crate::common::{Event, Served, ask, chat, names};

#[tokio::test]
async fn values_are_the_default_and_follow_each_superstep() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let mut body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    assert_eq!(names(&events), ["metadata", "values", "values", "values", "end"]);
    body["stream_mode"] = json!([]);
    assert_eq!(names(&server.stream("/runs/stream", &body).await), names(&events), "none is named");
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
    let thread = server.thread().await;
    let modes = json!(["updates", "checkpoints"]);
    let asked =
        json!({ "assistant_id": "nested", "input": {}, "stream_mode": modes, "stream_subgraphs": true });
    let inputs = |events: &[Event]| {
        let of_child = events.iter().filter(|event| event.name.starts_with("checkpoints|child:"));
        of_child.filter(|event| event.data["metadata"]["source"] == "input").count()
    };
    assert_eq!(inputs(&server.stream(&format!("/threads/{thread}/runs/stream"), &asked).await), 1);
    let resumed = json!({
        "assistant_id": "nested", "command": { "resume": "yes" }, "stream_mode": modes, "stream_subgraphs": true,
    });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &resumed).await;
    assert_eq!(inputs(&events), 0, "the subgraph goes on");
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
    assert_eq!((&about["langgraph_step"], &about["run_attempt"]), (&json!(1), &json!(1)));
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
    let again = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    let step = &again.iter().find(|event| event.name == "messages").unwrap().data[1]["langgraph_step"];
    assert_eq!(*step, json!(3), "that of the thread: the input of the second run is the checkpoint 2");
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
    let partial = |event: &&Event| event.name == "messages/partial";
    assert!(
        events.iter().filter(partial).all(|event| event.data[0]["type"] == "ai"),
        "a message, not a chunk"
    );
    let talk = StateGraph::new().node("child", chat()).edge(START, "child").compile().unwrap();
    let inside = Served::of(Server::new().in_memory().graph_without_schema("talk", talk)).await;
    let mut body = json!({
        "assistant_id": "talk", "input": { "messages": [["user", "hello"]] }, "stream_mode": "messages",
        "stream_subgraphs": true,
    });
    let told = inside.stream("/runs/stream", &body).await;
    assert_eq!(names(&told), names(&events), "its place is in the metadata alone");
    let about = told[1].data.as_object().unwrap().values().next().unwrap();
    assert!(about["metadata"]["langgraph_checkpoint_ns"].as_str().unwrap().starts_with("child:"));
    body["stream_mode"] = json!("messages-tuple");
    assert!(inside.stream("/runs/stream", &body).await[1].name.starts_with("messages|child:"));
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

/// The names of events, without the ids of tasks.
fn shapes(events: &[Event]) -> Vec<String> {
    let level = |level: &str| level.split(':').next().unwrap_or_default().to_owned();
    events.iter().map(|event| event.name.split('|').map(level).collect::<Vec<_>>().join("|")).collect()
}

#[tokio::test]
async fn checkpoints_of_an_input_come_around_its_values_and_name_their_parents() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/runs/stream");
    let body = |input: Value| json!({ "assistant_id": "steps", "input": input, "stream_mode": ["values", "checkpoints"] });
    let expected = ["metadata", "checkpoints", "values", "checkpoints", "values", "checkpoints", "values"];
    for text in ["a", "b"] {
        let events = server.stream(&path, &body(json!({ "text": text }))).await;
        assert_eq!(names(&events)[..7], expected);
        assert_eq!(events[5].data["values"], events[4].data, "values are those of their checkpoint");
        assert!(events[1].data["values"]["seen"].is_array(), "a list is there before its first item");
    }
    let told = server.stream(&path, &body(json!({ "text": "c" }))).await;
    let told: Vec<&Value> =
        told.iter().filter(|event| event.name == "checkpoints").map(|event| &event.data).collect();
    let states = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 5 })).await;
    let states: Vec<&Value> = states.as_array().unwrap().iter().rev().skip(1).collect();
    assert_eq!((told.len(), states.len()), (4, 4));
    for (told, state) in told.iter().zip(&states) {
        assert_eq!(
            (&told["config"]["configurable"], &told["parent_config"]["configurable"], &told["values"]),
            (&state["checkpoint"], &state["parent_checkpoint"], &state["values"]),
        );
        assert_eq!(told["metadata"]["source"], state["metadata"]["source"]);
    }
    // The second input in other words: it comes after the first run.
    let all = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 100 })).await;
    let second = all.as_array().unwrap().iter().find(|state| {
        state["metadata"]["source"] == "input" && state["values"]["seen"] == json!(["first a", "second"])
    });
    let second = second.unwrap();
    let mut again = body(json!({ "text": "d" }));
    again["checkpoint"] = second["checkpoint"].clone();
    let forked = server.stream(&path, &again).await;
    let told = &forked[1].data;
    assert_eq!(
        (&told["parent_config"]["configurable"], &told["values"]),
        (&second["parent_checkpoint"], &second["values"])
    );
}

#[tokio::test]
async fn a_run_that_goes_on_tells_where_it_begins_once() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/runs/stream");
    let modes = json!(["values", "updates", "checkpoints", "tasks"]);
    let asked =
        server.stream(&path, &json!({ "assistant_id": "ask", "input": {}, "stream_mode": modes })).await;
    let expected =
        ["metadata", "checkpoints", "values", "checkpoints", "tasks", "updates", "values", "tasks", "end"];
    assert_eq!(names(&asked), expected);
    let (question, result) = (&asked[5].data["__interrupt__"], &asked[7].data);
    assert_eq!(
        (&result["interrupts"], &result["name"]),
        (question, &json!("ask")),
        "known when the run ends"
    );
    let resume = json!({ "assistant_id": "ask", "command": { "resume": 1 }, "stream_mode": modes });
    let resumed = server.stream(&path, &resume).await;
    assert_eq!(names(&resumed)[..6], ["metadata", "values", "checkpoints", "tasks", "updates", "tasks"]);
    let (known, again) = (&asked[3].data, &resumed[2].data);
    assert_eq!(again["metadata"]["source"], "loop", "the input is another run's");
    assert_eq!((&again["config"], &again["parent_config"]), (&known["config"], &known["parent_config"]));
    // A run that has nothing to do tells where it is. An answer to no question changes nothing.
    let state = server.get(&format!("/threads/{thread}/state")).await;
    let none = json!({ "input": null });
    for what in [none, json!({ "command": { "resume": 2 } })] {
        let mut body = json!({ "assistant_id": "ask", "stream_mode": modes });
        body.as_object_mut().unwrap().extend(what.as_object().cloned().unwrap());
        let events = server.stream(&path, &body).await;
        assert_eq!(names(&events), ["metadata", "values", "checkpoints", "end"], "{what}");
        assert_eq!(
            (&events[1].data, &events[2].data["checkpoint"]),
            (&state["values"], &state["checkpoint"])
        );
        assert_eq!(server.get(&format!("/threads/{thread}/runs")).await[0]["status"], "success");
    }
    let update =
        json!({ "assistant_id": "ask", "command": { "update": { "done": false } }, "stream_mode": "values" });
    let updated = server.stream(&path, &update).await;
    assert_eq!((names(&updated).len(), &updated[1].data["done"]), (3, &json!(false)));
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["metadata"]["source"], "loop", "the update is a part of the run");
}

#[tokio::test]
async fn a_question_is_told_at_each_level_of_subgraphs() {
    let server = Served::new().await;
    let body = json!({
        "assistant_id": "deep", "input": {}, "stream_subgraphs": true,
        "stream_mode": ["values", "updates", "tasks"],
    });
    let events = server.stream("/runs/stream", &body).await;
    let last = [
        "updates|middle|child",
        "values|middle|child",
        "tasks|middle|child",
        "updates|middle",
        "values|middle",
        "tasks|middle",
        "updates",
        "values",
        "tasks",
        "end",
    ];
    let told = shapes(&events);
    assert_eq!(told[told.len() - last.len()..], last);
    let asked = &events[events.len() - 10..];
    for event in &asked[..9] {
        let questions = if event.name.starts_with("tasks") { "interrupts" } else { "__interrupt__" };
        assert_eq!(event.data[questions][0]["value"], json!({ "question": "go on?" }), "{}", event.name);
    }
    assert_eq!(asked[1].data["answers"], json!([]), "the values of that graph");
    let pair = StateGraph::new().node("one", ask).node("two", ask).edge(START, "one").edge(START, "two");
    let pair =
        StateGraph::new().node("child", pair.compile().unwrap()).edge(START, "child").compile().unwrap();
    let pairs = Served::of(Server::new().in_memory().graph("pair", pair)).await;
    let body = json!({
        "assistant_id": "pair", "input": {}, "stream_mode": "updates", "stream_subgraphs": true,
    });
    let thread = pairs.thread().await;
    let events = pairs.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    assert_eq!(shapes(&events), ["metadata", "updates|child", "updates", "end"], "once for both");
    let questions = events[1].data["__interrupt__"].as_array().unwrap();
    let ids: Vec<&str> = questions.iter().filter_map(|question| question["id"].as_str()).collect();
    let answer = json!({ "assistant_id": "pair", "command": { "resume": 1 } });
    let refused = pairs.post(&format!("/threads/{thread}/runs/wait"), &answer).await;
    let message = refused["__error__"]["message"].as_str().unwrap();
    assert!(ids.len() == 2 && ids.iter().all(|id| message.contains(id)), "{ids:?}: {message}");
    let body = json!({ "assistant_id": "deep", "input": {}, "stream_mode": ["values", "updates"] });
    let events = server.stream("/runs/stream", &body).await;
    assert_eq!(names(&events), ["metadata", "values", "updates", "values", "end"], "without subgraphs");
}

/// A run that may stop at nodes is driven superstep by superstep, which its readers do not see.
#[tokio::test]
async fn a_run_that_may_stop_at_nodes_tells_what_another_tells() {
    let server = Served::new().await;
    for graph in ["steps", "inside", "deep", "jobs"] {
        let mut body = json!({
            "assistant_id": graph, "input": {}, "stream_subgraphs": true,
            "stream_mode": ["values", "updates", "tasks", "checkpoints", "custom"],
        });
        let whole = server.stream("/runs/stream", &body).await;
        body["interrupt_after"] = json!(["no such node"]);
        let by_steps = server.stream("/runs/stream", &body).await;
        assert_eq!(shapes(&by_steps), shapes(&whole), "{graph}");
        let values = |events: &[Event]| {
            let values = events
                .iter()
                .filter(|event| event.name == "values" && event.data.get("__interrupt__").is_none());
            values.map(|event| event.data.clone()).collect::<Vec<_>>()
        };
        assert_eq!(values(&by_steps), values(&whole), "{graph}");
    }
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/runs/stream");
    let stopping = |input: Value| json!({ "assistant_id": "inside", "input": input, "interrupt_before": ["child"], "stream_mode": "updates" });
    let stopped = server.stream(&path, &stopping(json!({ "text": "a" }))).await;
    assert_eq!(
        (names(&stopped), &stopped[1].data),
        (vec!["metadata", "updates", "end"], &json!({ "__interrupt__": [] }))
    );
    let rest = server.stream(&path, &stopping(json!(null))).await;
    assert_eq!(rest[1].data["child"]["seen"], json!(["first a", "second"]), "all steps of the subgraph");
    let waited = server.post("/runs/wait", &stopping(json!({ "text": "a" }))).await;
    assert!(waited.get("__interrupt__").is_none(), "there is no question: {waited}");
}

#[tokio::test]
async fn tasks_have_their_own_input_and_the_metadata_of_the_run() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/runs/stream");
    let work = json!({ "node": "work", "input": { "word": "a", "times": 1 } });
    let body = json!({
        "assistant_id": "jobs", "command": { "goto": work }, "stream_mode": ["tasks", "debug"],
        "metadata": { "turn": 1 },
    });
    let events = server.stream(&path, &body).await;
    let tasks: Vec<&Value> =
        events.iter().filter(|event| event.name == "tasks").map(|event| &event.data).collect();
    assert_eq!(tasks[0]["input"], work["input"]);
    assert_eq!(
        (&tasks[0]["metadata"]["turn"], &tasks[0]["metadata"]["graph_id"]),
        (&json!(1), &json!("jobs"))
    );
    assert_eq!((&tasks[2]["name"], &tasks[2]["input"]["seen"]), (&json!("second"), &json!(["a"])));
    let started = events.iter().rfind(|event| event.data["type"] == "task").unwrap();
    let done = events.iter().rfind(|event| event.data["type"] == "checkpoint").unwrap();
    assert_eq!(started.data["step"], done.data["step"]);
}
