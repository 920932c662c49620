//! States, histories, changes from outside, forks, answers.

use agentgraph::prelude::*;
use agentgraph_server::Server;
use reqwest::Method;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::common::Served;

async fn ran(server: &Served) -> String {
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    thread
}

#[tokio::test]
async fn a_run_of_two_nodes_has_four_checkpoints() {
    let server = Served::new().await;
    let thread = ran(&server).await;
    let history = server.post(&format!("/threads/{thread}/history"), &json!({})).await;
    let history = history.as_array().unwrap();
    let shown: Vec<(&Value, &Value, &Value)> = history
        .iter()
        .map(|state| (&state["metadata"]["step"], &state["metadata"]["source"], &state["next"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!(2), &json!("loop"), &json!([])),
            (&json!(1), &json!("loop"), &json!(["second"])),
            (&json!(0), &json!("loop"), &json!(["first"])),
            (&json!(-1), &json!("input"), &json!(["__start__"])),
        ]
    );
    for (state, parent) in history.iter().zip(&history[1..]) {
        assert_eq!(state["parent_checkpoint"], parent["checkpoint"]);
    }
    assert!(history.last().unwrap()["parent_checkpoint"].is_null());
    let run = &server.get(&format!("/threads/{thread}/runs")).await[0]["run_id"];
    assert!(history.iter().all(|state| state["metadata"]["run_id"] == *run));
    // Each is found again by its id, and before it the rest.
    for (at, state) in history.iter().enumerate() {
        let id = state["checkpoint_id"].as_str().unwrap();
        let again = server.get(&format!("/threads/{thread}/state/{id}")).await;
        assert_eq!((&again["values"], &again["next"]), (&state["values"], &state["next"]));
        for before in [json!(id), state["checkpoint"].clone(), json!({ "configurable": state["checkpoint"] })]
        {
            let earlier =
                server.post(&format!("/threads/{thread}/history"), &json!({ "before": before })).await;
            assert_eq!(earlier.as_array().unwrap().len(), history.len() - at - 1);
        }
    }
    let selected = json!({ "select": ["values.text", "next"], "limit": 1 });
    let selected = server.post(&format!("/threads/{thread}/history"), &selected).await;
    assert_eq!(selected, json!([{ "values": { "text": "a" }, "next": [] }]));
}

#[tokio::test]
async fn a_thread_without_runs_is_empty() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(
        (&state["values"], &state["next"], &state["checkpoint"], &state["metadata"]),
        (&json!({}), &json!([]), &json!(null), &json!(null))
    );
    assert_eq!(server.get(&format!("/threads/{thread}")).await["values"], json!(null));
}

#[tokio::test]
async fn the_first_message_can_be_sent_again_in_other_words() {
    let server = Served::new().await;
    let thread = ran(&server).await;
    let history = server.post(&format!("/threads/{thread}/history"), &json!({})).await;
    let before = &history[3]["checkpoint"];
    let body = json!({ "assistant_id": "steps", "input": { "text": "b" }, "checkpoint": before });
    let values = server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    assert_eq!(values["seen"], json!(["first b", "second"]));
}

#[tokio::test]
async fn an_older_checkpoint_is_a_fork_and_the_head_is_none() {
    let server = Served::new().await;
    let thread = ran(&server).await;
    let wait = format!("/threads/{thread}/runs/wait");
    let history = server.post(&format!("/threads/{thread}/history"), &json!({})).await;
    let replay =
        json!({ "assistant_id": "steps", "input": null, "checkpoint_id": history[1]["checkpoint_id"] });
    assert_eq!(server.post(&wait, &replay).await["seen"], json!(["first a", "second"]));
    let head = server.get(&format!("/threads/{thread}/state")).await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "c" }, "checkpoint": head["checkpoint"] });
    let values = server.post(&wait, &body).await;
    assert_eq!(values["seen"], json!(["first a", "second", "first c", "second"]));
    let history = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 100 })).await;
    let ids: Vec<&str> =
        history.as_array().unwrap().iter().map(|state| state["checkpoint_id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, other| one > other), "ids sort: {ids:?}");
    assert!(ids.contains(&head["checkpoint_id"].as_str().unwrap()), "the branch goes on");
}

/// A tree of states, so that clients offer its branches.
#[tokio::test]
async fn a_history_has_all_branches_and_all_their_parents() {
    let server = Served::new().await;
    let thread = ran(&server).await;
    let (history, wait) = (format!("/threads/{thread}/history"), format!("/threads/{thread}/runs/wait"));
    let first = server.post(&history, &json!({})).await;
    for (at, input) in [(1, json!(null)), (3, json!({ "text": "b" })), (0, json!({ "text": "c" }))] {
        let body = json!({ "assistant_id": "steps", "input": input, "checkpoint": first[at]["checkpoint"] });
        server.post(&wait, &body).await;
    }
    let all = server.post(&history, &json!({ "limit": 1000 })).await;
    let all = all.as_array().unwrap();
    let id = |state: &Value| state["checkpoint_id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = all.iter().map(id).collect();
    assert!(ids.is_sorted_by(|one, other| one > other), "no state comes twice: {ids:?}");
    let parents: Vec<&str> =
        all.iter().filter_map(|state| state["parent_checkpoint"]["checkpoint_id"].as_str()).collect();
    assert!(parents.iter().all(|parent| ids.iter().any(|id| id == parent)), "{parents:?}\n{ids:?}");
    let ends = all.iter().filter(|state| !parents.contains(&&*id(state)));
    let seen: Vec<Value> = ends.map(|end| end["values"]["seen"].clone()).collect();
    assert_eq!(
        seen,
        [
            json!(["first a", "second", "first c", "second"]),
            json!(["first b", "second"]),
            json!(["first a", "second"]),
        ],
        "the end of each branch that none goes on from, the newest first"
    );
    for size in [1, 2, 5] {
        let mut paged: Vec<Value> = Vec::new();
        loop {
            let before = paged.last().map(|last| last["checkpoint"].clone());
            let page = server.post(&history, &json!({ "limit": size, "before": before })).await;
            match page.as_array().unwrap() {
                page if page.is_empty() => break,
                page => paged.extend(page.iter().cloned()),
            }
        }
        assert_eq!(paged.iter().map(id).collect::<Vec<_>>(), ids, "pages of {size}");
    }
}

#[tokio::test]
async fn a_question_is_answered_plainly_and_by_its_id() {
    let server = Served::new().await;
    for (graph, by_id) in [("ask", false), ("ask", true), ("nested", false), ("nested", true)] {
        let thread = server.thread().await;
        let wait = format!("/threads/{thread}/runs/wait");
        let asked = server.post(&wait, &json!({ "assistant_id": graph, "input": {} })).await;
        let id = asked["__interrupt__"][0]["id"].as_str().unwrap();
        let runs = server.get(&format!("/threads/{thread}/runs")).await;
        assert_eq!(runs[0]["status"], "success", "a run that asks has done its part");
        let resume = if by_id { json!({ id: { "yes": true } }) } else { json!({ "yes": true }) };
        let body = json!({ "assistant_id": graph, "command": { "resume": resume } });
        let done = server.post(&wait, &body).await;
        assert_eq!(done, json!({ "answers": [{ "yes": true }], "done": true }), "{graph} {by_id}");
        assert_eq!(server.get(&format!("/threads/{thread}")).await["interrupts"], json!({}));
    }
}

#[tokio::test]
async fn an_answer_to_no_open_question_is_ignored_or_refused() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let asked = server.post(&wait, &json!({ "assistant_id": "ask", "input": {} })).await;
    let id = asked["__interrupt__"][0]["id"].as_str().unwrap();
    let unknown = "0123456789abcdef0123456789abcdef";
    let resume = |answers: Value, is_strict: bool| {
        let command = json!({ "resume": answers, "update": { "answers": ["never mind"] } });
        let command = if is_strict { command } else { json!({ "resume": command["resume"] }) };
        json!({ "assistant_id": "ask", "command": command, "strict_resume": is_strict })
    };
    let refused = server.post(&wait, &resume(json!({ unknown: 1, id: 2 }), true)).await;
    assert_eq!(refused["__error__"]["error"], "UnknownInterruptError");
    assert!(refused["__error__"]["message"].as_str().unwrap().contains(unknown));
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!((&state["values"]["answers"], &state["interrupts"][0]["id"]), (&json!([]), &json!(id)));
    let ignored = server.post(&wait, &resume(json!({ unknown: 1 }), false)).await;
    assert_eq!(ignored["__interrupt__"][0]["id"], id);
    let done = server.post(&wait, &resume(json!({ unknown: 1, id: 2 }), false)).await;
    assert_eq!(done, json!({ "answers": [2], "done": true }));
}

#[tokio::test]
async fn a_question_inside_a_subgraph_is_a_task_of_its_node() {
    let server = Served::new().await;
    let thread = server.thread().await;
    server
        .post(&format!("/threads/{thread}/runs/wait"), &json!({ "assistant_id": "nested", "input": {} }))
        .await;
    let state = server.get(&format!("/threads/{thread}/state?subgraphs=true")).await;
    let task = &state["tasks"][0];
    assert_eq!((&task["name"], &task["state"]["next"]), (&json!("child"), &json!(["ask"])));
    assert_eq!(task["interrupts"][0]["value"], json!({ "question": "go on?" }));
    let namespace = task["checkpoint"]["checkpoint_ns"].as_str().unwrap();
    assert_eq!(namespace, format!("child:{}", task["id"].as_str().unwrap()));
    let plain = server.get(&format!("/threads/{thread}/state")).await;
    assert!(plain["tasks"][0]["state"].is_null());
    // The reference, on the same graph: the state of the subgraph with its own tasks and its place.
    let inside = &task["state"];
    assert_eq!(inside["values"], json!({ "answers": [], "done": false }));
    assert_eq!(
        (&inside["tasks"][0]["name"], &inside["checkpoint"]["checkpoint_ns"]),
        (&json!("ask"), &json!(namespace))
    );
    assert_eq!(inside["tasks"][0]["interrupts"], task["interrupts"]);
    assert_eq!(inside["interrupts"], task["interrupts"]);
    let at = json!({ "checkpoint": task["checkpoint"] });
    let alone = server.post(&format!("/threads/{thread}/state/checkpoint"), &at).await;
    assert_eq!(&alone, inside);
}

#[tokio::test]
async fn subgraphs_have_states_and_a_history_of_their_own_at_any_depth() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let body = json!({ "assistant_id": "deep", "input": { "answers": [1] } });
    server.post(&wait, &body).await;
    let state = server.get(&format!("/threads/{thread}/state?subgraphs=true")).await;
    let middle = &state["tasks"][0]["state"];
    let inner = &middle["tasks"][0]["state"];
    assert_eq!((&middle["next"], &inner["next"]), (&json!(["child"]), &json!(["ask"])));
    assert_eq!(inner["values"], json!({ "answers": [1], "done": false }));
    assert_eq!(inner["tasks"][0]["interrupts"][0]["value"], json!({ "question": "go on?" }));
    let places = [middle, inner].map(|state| state["checkpoint"]["checkpoint_ns"].as_str().unwrap());
    assert!(places[1].starts_with(&format!("{}|child:", places[0])), "{places:?}");
    let history = async |namespace: &str, limit: u64| {
        let body = json!({ "checkpoint": { "checkpoint_ns": namespace }, "limit": limit });
        server.post(&format!("/threads/{thread}/history"), &body).await
    };
    let before = history(places[1], 10).await;
    assert_eq!((before.as_array().unwrap().len(), &before[0]), (2, inner), "{before}");
    assert_eq!(
        (&before[1]["metadata"]["source"], &before[1]["next"]),
        (&json!("input"), &json!(["__start__"]))
    );
    let resumed = server.post(&wait, &json!({ "assistant_id": "deep", "command": { "resume": 2 } })).await;
    assert_eq!(resumed["answers"], json!([1, 2]));
    let after = history(places[1], 10).await;
    let nexts: Vec<&Value> = after.as_array().unwrap().iter().map(|state| &state["next"]).collect();
    assert_eq!(nexts, [&json!([]), &json!(["finish"]), &json!(["ask"]), &json!(["__start__"])]);
    assert_eq!(after[0]["values"], json!({ "answers": [1, 2], "done": true }));
    let page =
        json!({ "checkpoint": { "checkpoint_ns": places[1] }, "before": after[1]["checkpoint"], "limit": 1 });
    let page = server.post(&format!("/threads/{thread}/history"), &page).await;
    assert_eq!((page.as_array().unwrap().len(), &page[0]["next"]), (1, &json!(["ask"])));
    let at = json!({ "checkpoint": after[1]["checkpoint"] });
    let earlier = server.post(&format!("/threads/{thread}/state/checkpoint"), &at).await;
    assert_eq!(earlier["values"]["answers"], json!([1, 2]));
    for unknown in ["none", "child", "child:5", "|", &places[0][..8]] {
        assert_eq!(history(unknown, 10).await, json!([]), "{unknown}");
    }
}

#[tokio::test]
async fn a_run_goes_to_the_nodes_that_it_is_told() {
    let server = Served::new().await;
    let thread = ran(&server).await;
    let wait = format!("/threads/{thread}/runs/wait");
    let goto = |command: Value| json!({ "assistant_id": "steps", "command": command });
    // As LangGraph does: the nodes run on the state with the update, and what follows them.
    let again = server.post(&wait, &goto(json!({ "goto": "second" }))).await;
    assert_eq!(again["seen"], json!(["first a", "second", "second"]));
    let both = json!({ "goto": ["second", "first"], "update": { "text": "b" } });
    let both = server.post(&wait, &goto(both)).await;
    assert_eq!(both["seen"], json!(["first a", "second", "second", "first b", "second", "second"]));
    let nowhere = server.post(&wait, &goto(json!({ "goto": "__end__", "update": { "text": "c" } }))).await;
    assert_eq!((&nowhere["text"], &nowhere["seen"]), (&json!("c"), &both["seen"]));
    // LangGraph goes on without a word.
    let unknown = server.post(&wait, &goto(json!({ "goto": "third" }))).await;
    assert_eq!(unknown["__error__"]["error"], "UnknownTarget");
    let fresh = server.thread().await;
    let fresh = server.post(&format!("/threads/{fresh}/runs/wait"), &goto(json!({ "goto": "second" }))).await;
    assert_eq!(fresh["seen"], json!(["second"]));
    let history = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 100 })).await;
    let oldest = history.as_array().unwrap().iter().rfind(|state| state["next"] == json!([])).unwrap();
    let mut fork = goto(json!({ "goto": "second" }));
    fork["checkpoint"] = oldest["checkpoint"].clone();
    assert_eq!(server.post(&wait, &fork).await["seen"], json!(["first a", "second", "second"]));

    let asked = server.thread().await;
    let wait = format!("/threads/{asked}/runs/wait");
    server.post(&wait, &json!({ "assistant_id": "ask", "input": {} })).await;
    let body = json!({ "assistant_id": "ask", "command": { "goto": "finish" } });
    assert_eq!(server.post(&wait, &body).await["__error__"]["error"], "ThreadUnfinished");
    assert_eq!(server.get(&format!("/threads/{asked}/state")).await["next"], json!(["ask"]));
}

/// LangGraph's `Send` in a command: a node for each, with an input of its own.
#[tokio::test]
async fn a_command_goes_to_nodes_with_inputs_of_their_own() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let run = |command: Value| json!({ "assistant_id": "jobs", "command": command });
    server.post(&wait, &json!({ "assistant_id": "jobs", "input": {} })).await;
    let sent = |word: &str, times: u32| json!({ "node": "work", "input": { "word": word, "times": times } });
    let answer = server.post(&wait, &run(json!({ "goto": [sent("a", 1), sent("b", 2)] }))).await;
    // Both run, in order, and what follows them runs once.
    assert_eq!(answer["seen"], json!(["nothing", "second", "a", "b", "b", "second"]));
    let answer = server.post(&wait, &run(json!({ "goto": sent("c", 1), "update": { "text": "x" } }))).await;
    assert_eq!(
        (&answer["seen"][6], &answer["text"]),
        (&json!("c"), &json!("x")),
        "one alone, after the update"
    );
    let mixed = run(json!({ "goto": ["second", sent("d", 1), "__end__"] }));
    let answer = server.post(&wait, &mixed).await;
    assert_eq!(answer["seen"].as_array().unwrap()[8..], ["second", "d", "second"]);
    let wrong = run(json!({ "goto": { "node": "work", "input": { "word": 1 } } }));
    assert_eq!(server.post(&wait, &wrong).await["__error__"]["error"], "BadInput");
    for refused in [json!({ "input": {} }), json!([1]), json!({ "node": 1 })] {
        let (status, answer) = server.send(Method::POST, &wait, Some(&run(json!({ "goto": refused })))).await;
        assert_eq!(status, 422, "{answer}");
    }
}

#[tokio::test]
async fn a_state_is_changed_from_outside_and_the_run_goes_on_from_there() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let stopped = json!({ "assistant_id": "steps", "input": { "text": "a" }, "interrupt_before": ["first"] });
    server.post(&wait, &stopped).await;
    let update = json!({ "values": { "seen": ["by hand"] }, "as_node": "first" });
    let made = server.post(&format!("/threads/{thread}/state"), &update).await;
    assert_eq!(made["configurable"]["thread_id"], json!(thread));
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!((&state["next"], &state["metadata"]["source"]), (&json!(["second"]), &json!("update")));
    assert_eq!(state["checkpoint_id"], made["checkpoint_id"]);
    let rest = server.post(&wait, &json!({ "assistant_id": "steps", "input": null })).await;
    assert_eq!(rest["seen"], json!(["by hand", "second"]));
    let empty = server.thread().await;
    let (status, _) =
        server.send(Method::POST, &format!("/threads/{empty}/state"), Some(&json!({ "values": {} }))).await;
    assert_eq!(status, 400, "a thread without a graph");
}

#[derive(State, JsonSchema, Clone, Debug, Default)]
struct Loop {
    left: i64,
    seen: Vec<String>,
}

/// A node whose route goes round while something is left.
fn going_round() -> CompiledGraph<Loop> {
    let tools = async |state: Snapshot<Loop>| Loop::update().left(state.left - 1);
    StateGraph::new()
        .node("agent", async || {})
        .node("tools", tools)
        .edge(START, "agent")
        .branch("agent", |state: &Loop| if state.left > 0 { "tools" } else { END }, ["tools", END])
        .edge("tools", "agent")
        .compile()
        .unwrap()
}

/// The routes of the node that ran last choose again, as in LangGraph: an answer of a model from which the
/// calls of tools are removed calls none.
#[tokio::test]
async fn a_change_without_a_node_is_of_the_one_that_ran_last() {
    let server = Served::of(Server::new().in_memory().graph("round", going_round())).await;
    let made = server.post("/threads", &json!({ "metadata": { "graph_id": "round" } })).await;
    let path = format!("/threads/{}", made["thread_id"].as_str().unwrap());
    let change = async |values: Value, checkpoint: &Value| {
        let change = json!({ "values": values, "checkpoint": checkpoint });
        server.post(&format!("{path}/state"), &change).await;
        server.get(&format!("{path}/state")).await["next"].clone()
    };
    assert_eq!(
        change(json!({ "left": 2 }), &Value::Null).await,
        json!(["agent"]),
        "the input of a new thread"
    );
    let stopped = json!({ "assistant_id": "round", "interrupt_before": ["tools"] });
    server.post(&format!("{path}/runs/wait"), &stopped).await;
    let paused = server.get(&format!("{path}/state")).await;
    assert_eq!(paused["next"], json!(["tools"]));
    assert_eq!(change(json!({ "left": 0 }), &Value::Null).await, json!([]));
    assert_eq!(change(json!({ "left": 1 }), &Value::Null).await, json!(["tools"]), "after another change");
    assert_eq!(change(json!({ "left": 0 }), &paused["checkpoint"]).await, json!([]), "on a branch");
    assert_eq!(change(json!({ "left": 1 }), &Value::Null).await, json!(["tools"]));
    // Steps that are not kept leave open which node was the last.
    let whole = json!({ "assistant_id": "round", "input": { "left": 1 }, "durability": "exit" });
    server.post(&format!("{path}/runs/wait"), &whole).await;
    assert_eq!(change(json!({ "left": 5 }), &Value::Null).await, json!([]));
    // The place before an input is the end before it.
    let next = json!({ "assistant_id": "round", "input": { "left": 0 } });
    for _ in 0..2 {
        server.post(&format!("{path}/runs/wait"), &next).await;
    }
    let history = server.post(&format!("{path}/history"), &json!({})).await;
    let input =
        history.as_array().unwrap().iter().find(|state| state["next"] == json!(["__start__"])).unwrap();
    assert_eq!(change(json!({ "left": 3 }), &input["checkpoint"]).await, json!(["tools"]));
}

/// The client's `threads.create(supersteps=..)`.
#[tokio::test]
async fn a_thread_can_begin_with_what_nodes_have_returned_elsewhere() {
    let server = Served::new().await;
    let begin = |supersteps: Value| json!({ "metadata": { "graph_id": "steps" }, "supersteps": supersteps });
    let step = |node: &str, values: Value| json!({ "updates": [{ "as_node": node, "values": values, "command": null }] });
    let played =
        begin(json!([step("__input__", json!({ "text": "a" })), step("first", json!({ "seen": ["x"] }))]));
    let made = server.post("/threads", &played).await;
    assert_eq!((&made["status"], &made["values"]["seen"]), (&json!("interrupted"), &json!(["x"])));
    let thread = made["thread_id"].as_str().unwrap();
    let history = server.post(&format!("/threads/{thread}/history"), &json!({})).await;
    let next: Vec<&Value> = history.as_array().unwrap().iter().map(|state| &state["next"]).collect();
    assert_eq!(next, [&json!(["second"]), &json!(["first"])]);
    let rest = json!({ "assistant_id": "steps", "input": null });
    let rest = server.post(&format!("/threads/{thread}/runs/wait"), &rest).await;
    assert_eq!(rest["seen"], json!(["x", "second"]));
    // Two nodes of one superstep; the whole is refused if a part is wrong.
    let both = json!({ "updates": [
        { "as_node": "first", "values": { "seen": ["x"] } }, { "as_node": "second", "values": { "seen": ["y"] } },
    ] });
    let made = server.post("/threads", &begin(json!([step("__input__", json!(null)), both]))).await;
    assert_eq!(made["values"]["seen"], json!(["x", "y"]));
    let again = json!({ "thread_id": made["thread_id"], "if_exists": "do_nothing", "supersteps": [both] });
    assert_eq!(server.send(Method::POST, "/threads", Some(&again)).await.0, 409, "it has a state");
    let count = server.post("/threads/count", &json!({})).await;
    let without_graph = json!({ "supersteps": [both] });
    for wrong in [
        without_graph,
        begin(json!("x")),
        begin(json!([{ "updates": [] }])),
        begin(json!([{ "updates": [{ "values": {} }] }])),
        begin(json!([{ "updates": [{ "as_node": "first", "values": 1 }] }])),
        begin(json!([{ "updates": [{ "as_node": "first", "command": { "goto": "second" } }] }])),
        begin(json!([step("first", json!({})), step("none", json!({}))])),
    ] {
        let (status, answer) = server.send(Method::POST, "/threads", Some(&wrong)).await;
        assert_eq!(status, 422, "{wrong}: {answer}");
    }
    assert_eq!(server.post("/threads/count", &json!({})).await, count, "no thread is left");
}

#[tokio::test]
async fn durability_exit_keeps_one_checkpoint() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" }, "durability": "exit" });
    server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    let history = server.post(&format!("/threads/{thread}/history"), &json!({})).await;
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
}

/// As on LangGraph: that of the assistant, the thread, the configuration and the run.
#[tokio::test]
async fn a_state_has_the_metadata_of_the_run_that_made_it() {
    let server = Served::new().await;
    let thread = server.post("/threads", &json!({ "metadata": { "from": "web", "name": "thread" } })).await;
    let thread = thread["thread_id"].as_str().unwrap();
    let (wait, history) = (format!("/threads/{thread}/runs/wait"), format!("/threads/{thread}/history"));
    let of_graph = json!({ "graph_id": "nested", "metadata": { "team": "blue", "name": "assistant" } });
    let assistant = server.post("/assistants", &of_graph).await["assistant_id"].clone();
    let body = json!({
        "assistant_id": assistant, "input": {}, "metadata": { "turn": 1, "by": { "name": "ada" } },
        "config": { "metadata": { "shade": "dark", "turn": 0 }, "configurable": { "key": "secret" } },
    });
    server.post(&wait, &body).await;
    let first = server.get(&format!("/threads/{thread}/state?subgraphs=true")).await;
    let run = server.get(&format!("/threads/{thread}/runs")).await[0].clone();
    let of_run = json!({
        "from": "web", "name": "thread", "team": "blue", "shade": "dark", "turn": 1, "by": { "name": "ada" },
        "graph_id": "nested", "assistant_id": assistant,
    });
    assert_eq!(run["metadata"], of_run);
    let with = |more: Value| {
        let mut all = of_run.as_object().unwrap().clone();
        all.extend(
            json!({ "run_id": run["run_id"], "thread_id": thread, "run_attempt": 1 })
                .as_object()
                .cloned()
                .unwrap(),
        );
        all.extend(more.as_object().cloned().unwrap());
        Value::Object(all)
    };
    assert_eq!(first["metadata"], with(json!({ "source": "loop", "step": 0, "parents": {} })));
    let inside = &first["tasks"][0]["state"];
    let namespace = &inside["checkpoint"]["checkpoint_ns"];
    let place = json!({
        "source": "loop", "step": 0, "parents": { "": first["checkpoint_id"] }, "langgraph_node": "child",
        "langgraph_checkpoint_ns": namespace, "checkpoint_ns": namespace,
    });
    assert_eq!(inside["metadata"], with(place));

    // The run that answers has the checkpoints from then on, also in the subgraph. A change from outside is
    // of no run.
    let answer = json!({ "assistant_id": assistant, "command": { "resume": 1 }, "metadata": { "turn": 2 } });
    server.post(&wait, &answer).await;
    let update = json!({ "values": { "answers": [3] }, "as_node": "child" });
    server.post(&format!("/threads/{thread}/state"), &update).await;
    let metadata = async |body: Value| {
        let listed = server.post(&history, &body).await;
        listed.as_array().unwrap().iter().map(|state| state["metadata"].clone()).collect::<Vec<_>>()
    };
    let all = metadata(json!({})).await;
    let turns: Vec<&Value> = all.iter().map(|metadata| &metadata["turn"]).collect();
    assert_eq!(turns, [&json!(null), &json!(2), &json!(1), &json!(1)]);
    let of_none =
        json!({ "source": "update", "step": 2, "parents": {}, "graph_id": "nested", "thread_id": thread });
    assert_eq!(all[0], of_none);
    let inner = metadata(json!({ "checkpoint": { "checkpoint_ns": namespace } })).await;
    let turns: Vec<&Value> = inner.iter().map(|metadata| &metadata["turn"]).collect();
    assert_eq!(turns, [&json!(2), &json!(2), &json!(1), &json!(1)]);
    for (filter, count) in [
        (json!({ "turn": 2 }), 1),
        (json!({ "by": { "name": "ada" }, "source": "input" }), 1),
        (json!({ "from": "web" }), 3),
        (json!({ "key": "secret" }), 0),
    ] {
        assert_eq!(metadata(json!({ "metadata": filter })).await.len(), count, "{filter}");
    }
}
