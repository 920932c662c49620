//! What a run did to its graph, what a thread waits for, who has it, and in which order an eager run ended.

use serde_json::{Value, json};

use super::{Page, graphs, ran};
use crate::common::Served;

async fn goes_on(server: &Served, thread: &str, body: Value) {
    server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
}

#[tokio::test]
async fn temporary_edits_are_dashed_and_refused_ones_have_their_reason() {
    let server = Served::of(graphs::server()).await;
    let thread = server.thread().await;
    let pauses = json!({ "assistant_id": "plan", "input": { "text": "tea" }, "interrupt_before": ["write"] });
    goes_on(&server, &thread, pauses).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("read#1", "temporary").await;
    page.has(".drawing .edge.temporary", 2).await;
    let dashed = "return getComputedStyle(document.querySelector('.node.temporary rect')).strokeDasharray";
    assert_ne!(page.browser.script(dashed).await, "none");
    page.has(".edit.temporary", 3).await;
    let text =
        |kind: &str| format!("return document.querySelector('.edit.{kind}').innerText.replace(/\\s+/g, ' ')");
    page.has(".edit.rejected", 1).await;
    assert_eq!(
        page.browser.script(&text("rejected")).await,
        "rejected add edge plan → wrte by plan: cannot add edge `plan` -> `wrte`: there is no node `wrte`; did you mean `write`?"
    );
    assert_eq!(
        page.browser.script(&text("dropped")).await,
        "dropped add node read#1 from template read by rival: cannot add node `read#1` of template `read`: there is a node of that name"
    );
}

#[tokio::test]
async fn nodes_whose_next_turn_is_skipped_are_grey() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "plan", json!({ "text": "tea" })).await;
    let skips =
        json!({ "assistant_id": "plan", "input": { "text": "skip" }, "interrupt_before": ["search"] });
    goes_on(&server, &thread, skips).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("search", "skipped").await;
    page.says("next turn of search").await;
    page.browser.clicks("Continue").await;
    page.says("skipped").await;
    page.draws("write", "done").await;
    page.draws("search", "skipped").await;
}

#[tokio::test]
async fn a_join_says_who_arrived_and_who_is_missing_also_when_it_is_stuck() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "join", json!({ "text": "x" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    let join = "return document.querySelector('.work')?.innerText.replace(/\\s+/g, ' ')";
    page.browser
        .until(&format!("{join} === 'Open work and edits Join into both fast arrived approve missing'"))
        .await;
    let refuses = json!({ "assistant_id": "join", "command": { "resume": false } });
    goes_on(&page.server, &thread, refuses).await;
    page.has(".join.stuck .missing", 1).await;
    page.browser
        .until(&format!("{join}.includes('Stuck join into both fast arrived approve missing')"))
        .await;
}

#[tokio::test]
async fn the_order_in_which_an_eager_run_ended_is_listed() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "eager", json!({ "text": "x" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    let order = "return [...document.querySelectorAll('.order li')].map(one => one.innerText).join()";
    page.browser.until(&format!("{order} === '1 quick,2 after,3 slow'")).await;
    for (from, to) in [("__start__", "slow"), ("__start__", "quick"), ("quick", "after")] {
        page.has(&format!(".edge.taken[data-from=\"{from}\"][data-to=\"{to}\"]"), 1).await;
    }
}

#[tokio::test]
async fn a_replay_says_where_it_left_the_recorded_order() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "fickle", json!({ "text": "x" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.has(".checkpoints button", 4).await;
    page.browser.presses("j").await;
    page.browser.presses("j").await;
    page.says("next: fork").await;
    page.browser.clicks("Replay from here").await;
    let order = "return [...document.querySelectorAll('.order li')].map(one => one.innerText).join()";
    let expected = "1 fork,the replay left the order here: left was due,2 right";
    page.browser.until(&format!("{order} === '{expected}'")).await;
    page.draws("right", "done").await;
}

#[tokio::test]
async fn a_thread_says_which_run_has_it_and_since_when() {
    let page = Page::open().await;
    let thread = page.server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a", "wait_ms": 600_000 } });
    page.server.post(&format!("/threads/{thread}/runs"), &body).await;
    page.shows(&format!("#/threads/{thread}")).await;
    page.says("A run of this server has the thread since").await;
    page.browser.clicks("Cancel").await;
    page.has(".work:not([hidden])", 0).await;
}
