//! The JSON form of every type of event. These are promises to clients: a field may be added to a snapshot,
//! but none may change its name or its meaning.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::checkpoint::Services;
use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate};
use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph::{BoxError, RetryPolicy, RunBuilder, View};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::clock::Clock;

const VIEWS: [View; 5] = [View::Debug, View::Values, View::Updates, View::Custom, View::Messages];

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Desk {
    #[reduce(append)]
    notes: Vec<String>,
    #[channel(secret)]
    token: String,
    #[channel(untracked)]
    cache: u32,
    risk: u8,
}

/// The events of a run as JSON. Ids are replaced by words, since they depend on chance.
async fn events<S: StoredState>(run: RunBuilder<S>) -> Vec<Value> {
    let events: Vec<Value> = run
        .views(VIEWS)
        .subgraphs()
        .stream()
        .map(|event| serde_json::to_value(&event).unwrap())
        .collect()
        .await;
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("hunter2"), "a secret is masked everywhere: {text}");
    events.into_iter().map(without_ids).collect()
}

fn without_ids(mut event: Value) -> Value {
    if event["run"].is_string() {
        event["run"] = "RUN".into();
    }
    if let Some(id) = event.pointer_mut("/task/id") {
        assert_eq!(id.as_str().unwrap().len(), 32);
        *id = "TASK".into();
    }
    for of in ["/question", "/interrupts/0", "/interrupts/0/replaces"] {
        if let Some(id) = event.pointer_mut(&format!("{of}/id")).filter(|id| id.is_string()) {
            let (task, n) = id.as_str().unwrap().split_once('-').unwrap();
            assert_eq!(task.len(), 32);
            *id = format!("TASK-{n}").into();
        }
    }
    event
}

/// The event of a type, without the fields that all have.
fn one(events: &[Value], of: &str) -> Value {
    all(events, of).into_iter().next().unwrap_or_else(|| panic!("no {of} in {events:#?}"))
}

fn all(events: &[Value], of: &str) -> Vec<Value> {
    let found = events.iter().filter(|event| event["type"] == of).cloned();
    found
        .map(|mut event| {
            let fields = event.as_object_mut().unwrap();
            for common in ["seq", "run", "namespace", "step", "task", "type"] {
                assert!(fields.remove(common).is_some(), "{common}");
            }
            event
        })
        .collect()
}

fn compiled(graph: StateGraph<Desk>) -> CompiledGraph<Desk> {
    graph.compile().unwrap().services(Clock::default()).checkpointer(MemorySaver::new())
}

fn input() -> DeskUpdate {
    Desk::update().token("hunter2").cache(7)
}

async fn plan(ctx: Ctx) -> Result<DeskUpdate> {
    if ctx.attempt() == 1 {
        return Err("busy".into());
    }
    ctx.emit(json!({ "percent": 50 })).await;
    ctx.message("Hel");
    ctx.once("look up", async { Ok::<_, BoxError>(1) }).await?;
    Ok(Desk::update().notes(["planned"]).token("hunter2").risk(3))
}

fn planned() -> StateGraph<Desk> {
    StateGraph::new().node("plan", plan.retry(RetryPolicy::attempts(2))).edge(START, "plan")
}

async fn plan_events() -> Vec<Value> {
    events(compiled(planned()).invoke(input()).thread("t")).await
}

#[tokio::test]
async fn every_event_has_the_same_first_fields() {
    let events = plan_events().await;
    assert_eq!(
        events.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        (0..events.len() as u64).collect::<Vec<_>>()
    );
    let task = json!({ "id": "TASK", "index": 0, "attempt": 2 });
    let update = events.iter().find(|event| event["type"] == "update").unwrap();
    assert_eq!(
        (&update["run"], &update["namespace"], &update["step"], &update["task"]),
        (&json!("RUN"), &json!(""), &json!(1), &task)
    );
    let values = &events[0];
    assert_eq!(
        (&values["type"], &values["step"], &values["task"]),
        (&json!("values"), &json!(0), &json!(null))
    );
}

#[tokio::test]
async fn types_of_a_run() {
    let events = plan_events().await;
    assert_eq!(
        all(&events, "values")[1],
        json!({ "values": { "notes": ["planned"], "risk": 3, "token": "[secret]" } })
    );
    assert_eq!(
        one(&events, "update"),
        json!({ "node": "plan", "update": {
            "notes": ["planned"], "risk": 3, "token": "[secret]",
        } })
    );
    assert_eq!(one(&events, "task_started"), json!({ "node": "plan", "input": null }));
    assert_eq!(one(&events, "task_ended"), json!({ "node": "plan", "status": "done", "error": null }));
    assert_eq!(
        one(&events, "attempt_failed"),
        json!({
            "node": "plan", "error": { "code": "E_NODE_FAILED", "message": "busy" }, "next_in_ms": 500,
        })
    );
    assert_eq!(one(&events, "attempt_started"), json!({ "node": "plan" }));
    let about = json!({ "name": "look up", "key": null, "index": 0, "attempt": 1 });
    let step = |status| json!({ "node": "plan", "durable_step": about, "status": status, "message": null });
    assert_eq!(all(&events, "durable_step"), [step("started"), step("done")]);
    assert_eq!(
        all(&events, "checkpoint"),
        [
            json!({ "checkpoint": "0.0", "source": "input", "next": ["plan"] }),
            json!({ "checkpoint": "0.1", "source": "loop", "next": [] }),
        ]
    );
    assert_eq!(one(&events, "message"), json!({ "node": "plan", "piece": "Hel" }));
    assert_eq!(one(&events, "custom"), json!({ "node": "plan", "value": { "percent": 50 } }));
    assert_eq!(
        one(&events, "ended"),
        json!({
            "status": "finished",
            "output": { "notes": ["planned"], "risk": 3, "token": "[secret]" },
            "checkpoint": "0.1", "stuck": [], "cancelled": [], "dropped": [], "spent": {},
        })
    );
}

#[tokio::test]
async fn ends_of_runs_and_tasks() {
    async fn asks(ctx: Ctx) -> Result<DeskUpdate> {
        ctx.spend("tokens", 12);
        let word: String = ctx.interrupt_as_with_schema("word", "which?")?;
        Ok(Desk::update().notes([word]))
    }
    let graph = compiled(StateGraph::new().node("asks", asks).edge(START, "asks"));
    let asked = events(graph.invoke(input()).thread("t")).await;
    assert_eq!(one(&asked, "task_ended"), json!({ "node": "asks", "status": "interrupted", "error": null }));
    let mut end = one(&asked, "ended");
    let schema = end.pointer_mut("/interrupts/0/schema").unwrap().take();
    assert_eq!(schema["type"], "string");
    assert_eq!(
        end,
        json!({
            "status": "interrupted",
            "output": { "notes": [], "risk": 0, "token": "[secret]" },
            "checkpoint": "0.0", "dropped": [], "spent": { "tokens": 12 }, "sleeps_until_ms": null,
            "interrupts": [{
                "id": "TASK-0", "node": "asks", "namespace": "", "kind": "asked", "value": "which?",
                "schema": null, "key": "word", "replaces": null, "until_ms": null,
            }],
        })
    );

    let stopped = events(compiled(planned()).invoke(input()).thread("t").max_supersteps(0)).await;
    assert_eq!(
        one(&stopped, "ended"),
        json!({
            "status": "stopped", "reason": "limit",
            "output": { "notes": [], "risk": 0, "token": "[secret]" },
            "checkpoint": "0.0", "dropped": [], "spent": {},
        })
    );

    let fails = || async { Err::<DeskUpdate, BoxError>("no".into()) };
    let graph = compiled(StateGraph::new().node("fails", fails).edge(START, "fails"));
    let failed = events(graph.invoke(input()).thread("t")).await;
    let error = json!({ "code": "E_NODE_FAILED", "message": "no" });
    assert_eq!(one(&failed, "task_ended"), json!({ "node": "fails", "status": "failed", "error": error }));
    assert_eq!(
        one(&failed, "ended"),
        json!({
            "status": "failed",
            "output": { "notes": [], "risk": 0, "token": "[secret]" },
            "error": {
                "code": "E_NODE_FAILED", "message": "no", "node": "fails", "thread": "t",
                "failures": [{
                    "code": "E_NODE_FAILED", "message": "no", "node": "fails", "namespace": "", "attempt": 1,
                }],
            },
        })
    );

    let refused = graph.invoke(input()).thread("t").stream().next().await.unwrap();
    let refused = serde_json::to_value(&refused).unwrap();
    assert_eq!((&refused["run"], &refused["output"]), (&Value::Null, &Value::Null));
    assert_eq!(refused["error"]["code"], "E_RUN_UNFINISHED");
}

#[tokio::test]
async fn sleeps_and_static_interrupts() {
    async fn rests(ctx: Ctx) -> Result<()> {
        ctx.sleep("rest", Duration::from_secs(60)).await?;
        Ok(())
    }
    let clock = Clock::default();
    let graph = StateGraph::<Desk>::new().node("rests", rests).edge(START, "rests").compile().unwrap();
    let graph = graph.services(clock.clone()).checkpointer(MemorySaver::new());
    let end = one(&events(graph.invoke(input()).thread("t")).await, "ended");
    assert_eq!(
        (&end["sleeps_until_ms"], &end["interrupts"][0]["until_ms"]),
        (&json!(60_000), &json!(60_000))
    );
    assert_eq!(end["interrupts"][0]["kind"], "sleeps");
    assert_eq!(clock.now(), std::time::UNIX_EPOCH);

    let graph = compiled(planned().interrupt_before(["plan"]));
    let end = one(&events(graph.invoke(input()).thread("t")).await, "ended");
    let stop = json!({
        "id": null, "node": "plan", "namespace": "", "kind": "before", "value": null, "schema": null,
        "key": null, "replaces": null, "until_ms": null,
    });
    assert_eq!(end["interrupts"], json!([stop]));
}

#[tokio::test]
async fn voided_answers() {
    let question = Arc::new(Mutex::new("tea?"));
    let asked = Arc::clone(&question);
    let asks = move |ctx: Ctx| {
        let question = *asked.lock().unwrap();
        async move {
            let _: bool = ctx.interrupt(question)?;
            Ok::<_, BoxError>(())
        }
    };
    let graph = compiled(StateGraph::new().node("asks", asks).edge(START, "asks"));
    graph.invoke(input()).thread("t").await.unwrap();
    *question.lock().unwrap() = "a yacht?";
    let events = events(graph.resume(true).thread("t")).await;
    let replaced = json!({ "id": "TASK-0", "value": "tea?", "times": 1, "reason": null });
    assert_eq!(
        one(&events, "answer_voided"),
        json!({ "node": "asks", "question": replaced, "asks": "a yacht?" })
    );
    assert_eq!(one(&events, "ended")["interrupts"][0]["replaces"], replaced);
}

#[tokio::test]
async fn refused_answers() {
    async fn asks(ctx: Ctx) -> Result<()> {
        let _: bool = ctx.interrupt("tea?")?;
        Err(ctx.refuse("not you").into())
    }
    let graph = compiled(StateGraph::new().node("asks", asks).edge(START, "asks"));
    graph.invoke(input()).thread("t").await.unwrap();
    let events = events(graph.resume(true).thread("t")).await;
    let replaced = json!({ "id": "TASK-0", "value": "tea?", "times": 1, "reason": "not you" });
    assert_eq!(
        one(&events, "answer_voided"),
        json!({ "node": "asks", "question": replaced, "asks": "tea?" })
    );
    assert_eq!(one(&events, "ended")["interrupts"][0]["replaces"], replaced);
}

#[tokio::test]
async fn temporary_edits() {
    async fn edits(ctx: Ctx) -> Result<()> {
        let _ = ctx.edits().remove_node("nobody");
        ctx.edits().remove_edge("one", "two")?;
        Ok(())
    }
    async fn edits_too(ctx: Ctx) -> Result<()> {
        ctx.edits().remove_node("two")?;
        Ok(())
    }
    let graph =
        StateGraph::<Desk>::new().node("one", edits).node("other", edits_too).node("two", || async {});
    let graph = compiled(graph.edge(START, "one").edge(START, "other").edge("one", "two"));
    let events = events(graph.invoke(input()).thread("t")).await;
    let edit = json!({ "remove_edge": { "from": "one", "to": "two" } });
    assert_eq!(one(&events, "edited"), json!({ "node": "one", "edits": [edit] }));
    let rejected = one(&events, "edit_rejected");
    assert_eq!(rejected["rejection"]["edit"], json!({ "remove_node": { "name": "nobody" } }));
    assert_eq!(
        (&rejected["node"], &rejected["rejection"]["code"]),
        (&json!("one"), &json!("E_EDIT_REJECTED"))
    );
    assert!(rejected["rejection"]["message"].as_str().unwrap().starts_with("cannot remove node `nobody`: "));
}

#[tokio::test]
async fn dropped_edits() {
    let one_removes = |ctx: Ctx| async move {
        ctx.edits().remove_node("two")?;
        Ok::<_, BoxError>(())
    };
    let other_needs = |ctx: Ctx| async move {
        ctx.edits().add_edge("other", "two")?;
        Ok::<_, BoxError>(())
    };
    let graph = StateGraph::<Desk>::new().node("one", one_removes).node("other", other_needs);
    let graph = graph.node("two", || async {}).edge(START, "one").edge(START, "other").edge("one", "two");
    let events = events(compiled(graph).invoke(input()).thread("t")).await;
    let dropped = one(&events, "edit_dropped");
    let edit = json!({ "add_edge": { "from": "other", "to": "two" } });
    assert_eq!((&dropped["node"], &dropped["edits"]), (&json!("other"), &json!([edit])));
    assert_eq!(dropped["rejection"]["edit"], edit);
    assert_eq!(dropped["lost"], json!([]));
    assert_eq!(one(&events, "ended")["dropped"], json!([dropped]));
}

#[tokio::test]
async fn a_replay_that_diverges() {
    let turn = Arc::new(Mutex::new(0));
    let turns = Arc::clone(&turn);
    let chooses = move || {
        let mut turn = turns.lock().unwrap();
        *turn += 1;
        let to = if *turn == 1 { "b" } else { "c" };
        async move { Command::<Desk>::new().goto(to) }
    };
    let graph = StateGraph::<Desk>::new().eager().node("a", chooses.into_node().targets(["b", "c"]));
    let graph = graph.node("b", || async {}).node("c", || async {}).edge(START, "a");
    let graph = compiled(graph);
    graph.invoke(input()).thread("t").await.unwrap();
    let first = graph.history("t").await.unwrap().last().unwrap().id;
    let events = events(graph.proceed().thread("t").from(first)).await;
    assert_eq!(one(&events, "replay_diverged"), json!({ "expected": "b" }));
}

#[tokio::test]
async fn events_of_subgraphs_have_the_same_types_and_their_namespace() {
    let graph = StateGraph::new().node("sub", planned().compile().unwrap()).edge(START, "sub");
    let events = events(compiled(graph).invoke(input()).thread("t")).await;
    let (inside, own): (Vec<Value>, Vec<Value>) =
        events.into_iter().partition(|event| event["namespace"] != "");
    assert!(inside.iter().all(|event| event["namespace"].as_str().unwrap().starts_with("sub")));
    assert_eq!(one(&inside, "update")["update"]["token"], "[secret]");
    assert_eq!(all(&inside, "values")[1]["values"]["token"], "[secret]");
    assert_eq!(one(&inside, "attempt_failed")["next_in_ms"], 500);
    assert_eq!(one(&own, "ended")["status"], "finished");
}

#[tokio::test]
async fn of_a_state_with_keys_named_at_run_time_and_of_a_dependency_graph() {
    let channels = JsonChannels::new().channel("n", json!(0), JsonReducer::Once);
    let count = || async { JsonUpdate::new().set("n", 2) };
    let graph =
        StateGraph::with_schema(channels).node("count", count).edge(START, "count").compile().unwrap();
    let heard = events(graph.invoke(JsonUpdate::new().set("n", 1))).await;
    assert_eq!(one(&heard, "update")["update"], json!({ "n": 2 }));
    assert_eq!(one(&heard, "ended")["output"], json!({ "n": 2 }));

    let graph = DependencyGraph::<String>::new().node("a", || "A".to_owned()).compile().unwrap();
    let heard = events(graph.invoke(())).await;
    assert_eq!(one(&heard, "update")["node"], "a");
    assert!(one(&heard, "update")["update"].to_string().contains("\"A\""));
    assert!(one(&heard, "ended")["output"].to_string().contains("\"A\""));
}

#[tokio::test]
async fn a_channel_that_json_cannot_show_is_null() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Odd {
        pairs: std::collections::BTreeMap<(u8, u8), u8>,
        plain: u8,
    }
    let node = || async { Odd::update().pairs([((1, 2), 3)].into()).plain(4) };
    let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
    let heard = events(graph.invoke(Odd::update())).await;
    assert_eq!(one(&heard, "update")["update"], json!({ "pairs": null, "plain": 4 }));
    assert_eq!(one(&heard, "ended")["output"], json!({ "pairs": null, "plain": 4 }));
}

/// The types that the tests above hold in snapshots.
const SHOWN: [&str; 16] = [
    "values",
    "update",
    "task_started",
    "task_ended",
    "attempt_started",
    "attempt_failed",
    "durable_step",
    "answer_voided",
    "checkpoint",
    "message",
    "edited",
    "edit_rejected",
    "edit_dropped",
    "replay_diverged",
    "custom",
    "ended",
];

#[test]
fn every_type_has_a_snapshot_here_and_a_row_in_the_documentation() {
    let source = include_str!("events_have_a_stable_json_form.rs");
    let page = include_str!("../../../docs/events.md");
    assert_eq!(EventKind::<Desk>::TYPES, SHOWN);
    for of in SHOWN {
        let compared = ["one", "all"].iter().any(|get| source.contains(&format!("{get}(&events, \"{of}\")")));
        assert!(compared, "no snapshot of `{of}`");
        assert!(page.contains(&format!("| `{of}` |")), "no row for `{of}` in docs/events.md");
    }
}
