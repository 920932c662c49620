//! Tokens of tasks, runs and threads, and money where prices are known.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ScriptedModel, Usage};
use agentgraph_server::{OnRestart, Server};
use serde_json::json;
use tokio::sync::Notify;

use super::{Page, graphs, ran};
use crate::a_killed_server_leaves_no_ghost_runs::{Folder, process, server};
use crate::common::Served;

fn said() -> serde_json::Value {
    json!({ "messages": [{ "type": "human", "content": "hello" }] })
}

#[tokio::test]
async fn a_run_shows_its_tokens_and_money_and_its_thread_the_sum() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "billed", said()).await;
    let again = json!({ "assistant_id": "billed", "input": said() });
    server.post(&format!("/threads/{thread}/runs/wait"), &again).await;
    let page = Page::of(server, "").await;
    // 2,400 tokens at 2.5 and 160 at 10 dollars a million.
    page.browser
        .until("return document.querySelector('td.cost')?.innerText === '2,400 tokens in, 160 out · $0.0076'")
        .await;
    page.shows(&format!("#/threads/{thread}")).await;
    page.browser
        .until("return document.querySelector('.waterfall .about')?.innerText === '1,200 tokens in, 80 out · $0.0038'")
        .await;
    page.browser.until("return document.querySelector('.timeline > .pager').innerText.endsWith('ms · 1,200 tokens in, 80 out · $0.0038')").await;
    page.browser
        .until("return document.querySelector('.run-picker .cost').innerText === '1,200 tokens in, 80 out · $0.0038'")
        .await;
    page.browser.until("return document.querySelector('.run-head').innerText.includes('2,400 tokens in, 160 out · $0.0076')").await;
}

#[tokio::test]
async fn without_a_price_there_are_tokens_alone() {
    let server = Served::of(Server::new().in_memory().graph_without_schema("billed", graphs::billed())).await;
    ran(&server, "billed", said()).await;
    let page = Page::of(server, "").await;
    page.browser
        .until("return document.querySelector('td.cost')?.innerText === '1,200 tokens in, 80 out'")
        .await;
}

static DRAINS: Notify = Notify::const_new();

/// Waits until the server drains.
#[tool]
async fn wait() -> String {
    DRAINS.notified().await;
    "waited".to_owned()
}

fn waiting() -> CompiledGraph<AgentState> {
    let model =
        ScriptedModel::from_fn(|_| Reply::tool_call("wait", json!({})).with_usage(Usage::new(1200, 80)));
    Agent::new(model.named("tea-1")).tool(wait()).compile().unwrap().into_graph()
}

#[tokio::test]
async fn a_server_that_ends_in_good_order_keeps_the_tokens_of_its_runs() {
    let server = Served::of(Server::new().in_memory().graph_without_schema("waiting", waiting())).await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "waiting", "input": said() });
    let run = server.post(&format!("/threads/{thread}/runs"), &body).await;
    let trace = format!("/ui/threads/{thread}/trace/{}", run["run_id"].as_str().unwrap());
    while !server.get(&trace).await["marks"].to_string().contains("\"tools\"") {
        tokio::task::yield_now().await;
    }
    tokio::join!(server.drain(), async { DRAINS.notify_one() });
    let left = &server.get(&format!("/ui/threads/{thread}")).await["runs"][0];
    assert_eq!(left["status"], "running");
    assert_eq!(left["tokens"], json!({ "tea-1": [1200, 80] }));
}

#[tokio::test]
async fn what_a_killed_server_spent_is_counted_with_what_the_next_one_spends() {
    let folder = Folder::new("spent");
    let file = folder.0.join("served.db");
    let (mut process, url) = process(file.to_str().unwrap()).await;
    let killed = Served::at(&url);
    let thread = killed.thread().await;
    let go = folder.0.join("go");
    let input = json!({ "messages": [{ "type": "human", "content": go }] });
    killed
        .post(&format!("/threads/{thread}/runs"), &json!({ "assistant_id": "spend", "input": input }))
        .await;
    let spent = json!({ "tea-1": [1200, 80] });
    let state = format!("/ui/threads/{thread}");
    let is_spent = async {
        while killed.get(&state).await["tokens"] != spent {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_spent).await.unwrap();
    process.kill().await.unwrap();
    let next = Served::of(server(&file, OnRestart::Continue).price("tea-1", 2.5, 10.0)).await;
    let page = Page::of(next, &format!("#/threads/{thread}")).await;
    let cost = "return document.querySelector('.run-picker .cost')?.innerText";
    page.browser.until(&format!("{cost} === '1,200 tokens in, 80 out · $0.0038'")).await;
    page.browser.until("return document.querySelector('.run-head').innerText.includes('1,200 tokens in, 80 out · $0.0038')").await;
    std::fs::write(go, "").unwrap();
    page.browser.until(&format!("{cost} === '1,300 tokens in, 90 out · $0.00415'")).await;
    page.until_status(&thread, "idle").await;
    assert_eq!(page.server.get(&state).await["tokens"], json!({ "tea-1": [1300, 90] }));
}
