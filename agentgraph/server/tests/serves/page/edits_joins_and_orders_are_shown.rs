//! What a run did to its graph, what a thread waits for, who has it, and in which order an eager run ended.

use agentgraph_server::Server;
use serde_json::{Value, json};

use super::{Page, graphs, ran};
use crate::a_killed_server_leaves_no_ghost_runs::Folder;
#[cfg(feature = "postgres")]
use crate::a_killed_server_leaves_no_ghost_runs::process;
use crate::common::Served;
#[cfg(feature = "postgres")]
use crate::replicas_share_a_database::replica;

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
async fn after_a_restart_orders_and_where_replays_left_them_are_shown_from_the_store() {
    let folder = Folder::new("orders");
    let server = || graphs::with_all(Server::new().sqlite(folder.0.join("served.db")));
    let first = Served::of(server()).await;
    let hurried = ran(&first, "eager", json!({ "text": "x" })).await;
    let replayed = ran(&first, "fickle", json!({ "text": "x" })).await;
    let history = first.get(&format!("/threads/{replayed}/history")).await;
    let before = history.as_array().unwrap().iter().find(|one| one["next"] == json!(["fork"])).unwrap();
    let replay = json!({ "assistant_id": "fickle", "input": null, "checkpoint_id": before["checkpoint_id"] });
    goes_on(&first, &replayed, replay).await;
    first.drain().await;
    let page = Page::of(Served::of(server()).await, &format!("#/threads/{hurried}")).await;
    let order = "return [...document.querySelectorAll('.order li')].map(one => one.innerText).join()";
    page.browser.until(&format!("{order} === '1 quick,2 after,3 slow'")).await;
    let runs = &page.server.get(&format!("/ui/threads/{replayed}")).await["runs"];
    assert_eq!(runs[0]["has_trace"], false);
    page.shows(&format!("#/threads/{replayed}")).await;
    let expected = "1 fork,the replay left the order here: left was due,2 right";
    page.browser.until(&format!("{order} === '{expected}'")).await;
    let earlier = format!("#/threads/{replayed}?run={}", runs[1]["run_id"].as_str().unwrap());
    page.shows(&earlier).await;
    page.browser.until(&format!("{order} === '1 fork,2 left'")).await;
}

#[tokio::test]
async fn a_long_order_is_its_last_ends() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "turning", json!({ "text": "x" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.says("the last 40\n").await;
    page.has(".order li", 40).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_thread_that_another_process_has_says_so_and_is_cancelled_there() {
    let database = crate::postgres_server::PostgresServer::get();
    let (url, schema) = (database.url(), database.fresh_schema());
    let (mut process, address) = process(&format!("{url} {schema}")).await;
    let other = Served::at(&address);
    let thread = other.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a", "wait_ms": 600_000 } });
    other.post(&format!("/threads/{thread}/runs"), &body).await;
    let here = Served::of(replica(&url, &schema).await).await;
    let page = Page::of(here, &format!("#/threads/{thread}")).await;
    page.says("A run of another process has the thread since").await;
    page.says("unless it shows activity").await;
    let run = &page.server.get(&format!("/ui/threads/{thread}")).await["runs"][0];
    let since = &run["since"];
    let told =
        format!("return document.querySelector('.work time')?.dateTime === new Date({since}).toISOString()");
    page.browser.until(&told).await;
    page.browser.clicks("Cancel").await;
    page.has(".work:not([hidden])", 0).await;
    page.until_status(&thread, "interrupted").await;
    process.kill().await.unwrap();
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
