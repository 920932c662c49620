//! A thread's page while its runs are under way, and after they failed.

use serde_json::json;

use super::{Page, graphs, more_graphs, ran};
use crate::common::Served;

#[tokio::test]
async fn a_run_is_laid_over_its_graph_and_cancelled() {
    let page = Page::open().await;
    let thread = page.server.thread().await;
    page.shows(&format!("#/threads/{thread}")).await;
    page.says("no graph yet").await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a", "wait_ms": 600_000 } });
    page.server.post(&format!("/threads/{thread}/runs"), &body).await;
    // The page hears of a run that another client has started.
    page.draws("first", "running").await;
    page.has(".waterfall .bar.running", 1).await;
    page.browser.clicks("Cancel").await;
    page.until_status(&thread, "interrupted").await;
    page.draws("first", "next").await;
    page.says("Continue").await;
}

#[tokio::test]
async fn a_failed_node_and_its_error_come_first_and_the_run_goes_on() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "a", "fails": "ValueError" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("first", "failed").await;
    let alert = "return document.querySelector('[role=alert]').innerText.replace(/\\s+/g, ' ')";
    page.browser
        .until(&format!("{alert} === 'In first: ValueError boom! Run the failed node again As a test'"))
        .await;
    page.has(".waterfall .bar.failed", 1).await;
    let update = json!({ "values": { "fails": "" } });
    page.server.post(&format!("/threads/{thread}/state"), &update).await;
    page.has(".checkpoints button", 3).await;
    page.browser.clicks("Run the failed node again").await;
    page.until_status(&thread, "idle").await;
    page.draws("second", "done").await;
    page.has("[role=alert]:not([hidden]) strong", 0).await;
    // The earlier run is still there to be looked at.
    page.browser.until("return document.querySelectorAll('.run-picker option').length === 2").await;
}

#[tokio::test]
async fn attempts_and_the_waits_between_them_are_in_the_timeline() {
    let server = Served::of(more_graphs()).await;
    let thread = ran(&server, "trying", json!({ "text": "a" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.says("2 attempts · the service said 503").await;
    for (kind, count) in [("failed", 1), ("waits", 1), ("done", 1)] {
        page.has(&format!(".waterfall .bar.{kind}"), count).await;
    }
}

#[tokio::test]
async fn an_older_run_is_drawn_from_its_checkpoints() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "a" })).await;
    // More runs than the server keeps in memory.
    for _ in 0..65 {
        server.post("/runs/wait", &json!({ "assistant_id": "settings", "input": {} })).await;
    }
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.says("From the checkpoints").await;
    page.browser.until("return [...document.querySelectorAll('.waterfall .name')].map(name => name.textContent).join() === 'first,second'").await;
    page.draws("second", "done").await;
}

#[tokio::test]
async fn durable_steps_and_deferred_nodes_are_named() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "sum", json!({ "text": "x" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.browser.until("return document.querySelector('.waterfall li').innerText.includes('durable step download: done')").await;
    let work = "return document.querySelector('.work')?.innerText.replace(/\\s+/g, ' ')";
    page.browser.until(&format!("{work}.includes('sum waits until nothing else can run.')")).await;
}
