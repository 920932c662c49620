//! Random calls on threads leave what they left in LangGraph: the states and histories in `calls.jsonl` are
//! its own. `tests/beside_langgraph/run.sh` makes others.

use std::path::{Path, PathBuf};

use agentgraph::prelude::*;
use agentgraph_server::Server;
use reqwest::Method;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::common::Served;

#[derive(State, JsonSchema, Clone, Debug, Default)]
struct Wide {
    text: String,
    #[reduce(append)]
    seen: Vec<String>,
}

async fn say(ctx: Ctx, wide: Snapshot<Wide>) -> WideUpdate {
    Wide::update().seen([format!("{} {}", ctx.node(), wide.text)])
}

async fn ask(ctx: Ctx) -> Result<WideUpdate> {
    let answer: Value = ctx.interrupt("which?")?;
    Ok(Wide::update().seen([format!("ask {answer}")]))
}

#[derive(serde::Serialize, serde::Deserialize, Clone)]
struct Job {
    word: String,
}

async fn work(Input(job): Input<Job>) -> WideUpdate {
    Wide::update().seen([format!("work {}", job.word)])
}

fn wide() -> CompiledGraph<Wide> {
    StateGraph::new()
        // LangGraph merges parallel updates in the order of names, the engine in this one.
        .node("a", say)
        .node("ask", ask)
        .node("c", say)
        .node("d", say)
        .node("work", work)
        .edge(START, "a")
        .edge(START, "d")
        .edge("a", "ask")
        .edge("ask", "c")
        .edge("d", "c")
        .edge("work", "c")
        .compile()
        .unwrap()
}

fn shown(state: &Value) -> Value {
    let mut next: Vec<&str> = state["next"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    next.sort_unstable();
    let asked: Vec<&Value> =
        state["interrupts"].as_array().unwrap().iter().map(|interrupt| &interrupt["value"]).collect();
    let values = json!({
        "text": state["values"]["text"].as_str().unwrap_or_default(),
        "seen": state["values"].get("seen").cloned().unwrap_or_else(|| json!([])),
    });
    json!({ "values": values, "next": next, "interrupts": asked })
}

async fn history(server: &Served, thread: &str) -> Vec<Value> {
    let history = server.post(&format!("/threads/{thread}/history"), &json!({ "limit": 1000 })).await;
    history.as_array().unwrap().clone()
}

async fn make(server: &Served, thread: &str, call: &Value) -> Value {
    let mut body = json!({ "assistant_id": "wide" });
    if let Some(at) = call["at"].as_u64() {
        body["checkpoint"] =
            history(server, thread).await[usize::try_from(at).unwrap()]["checkpoint"].clone();
    }
    let path = if call.get("update").is_some() {
        body["values"] = call["update"].clone();
        body["as_node"] = call["as_node"].clone();
        format!("/threads/{thread}/state")
    } else {
        body["input"] = call["run"].clone();
        body["command"] = call["command"].clone();
        format!("/threads/{thread}/runs/wait")
    };
    let (status, answer) = server.send(Method::POST, &path, Some(&body)).await;
    if !status.is_success() || answer.get("__error__").is_some() {
        return json!({ "refused": answer });
    }
    shown(&server.get(&format!("/threads/{thread}/state")).await)
}

/// The first difference, as a text.
async fn difference(server: &Served, case: &Value) -> Option<String> {
    let made = server.post("/threads", &json!({ "metadata": { "graph_id": "wide" } })).await;
    let thread = made["thread_id"].as_str().unwrap();
    for call in case["calls"].as_array().unwrap() {
        let left = make(server, thread, call).await;
        if left != call["left"] {
            return Some(format!("{call}\nhere   {left}"));
        }
    }
    if let Some(expected) = case["history"].as_array() {
        let listed = history(server, thread).await;
        let listed: Vec<Value> = listed
            .iter()
            .zip(expected)
            .map(|(state, expected)| {
                let mut listed = shown(state);
                listed["source"] = state["metadata"]["source"].clone();
                // Of a checkpoint with a question only that is compared.
                listed.as_object_mut().unwrap().retain(|name, _| expected.get(name).is_some());
                listed
            })
            .collect();
        if listed != *expected {
            return Some(format!("the history\nthere {expected:?}\nhere  {listed:?}"));
        }
    }
    let fork = case.get("fork")?;
    let left = make(server, thread, fork).await;
    (left != fork["left"]).then(|| format!("{fork}\nhere   {left}"))
}

#[tokio::test]
async fn random_calls_end_as_there() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/beside_langgraph/calls.jsonl");
    let file = std::env::var_os("LANGGRAPH_CALLS").map_or(recorded, PathBuf::from);
    let server = Served::of(Server::new().in_memory().graph("wide", wide())).await;
    let text = std::fs::read_to_string(&file).unwrap();
    let (mut threads, mut differences) = (0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        threads += 1;
        differences.extend(difference(&server, &case).await);
    }
    assert!(threads > 0);
    assert!(
        differences.is_empty(),
        "{} of {threads} threads differ:\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}
