//! Two branches side by side; a run again from a checkpoint; a pause after a node; an edit that does not fit
//! the schema.

use serde_json::json;

use super::{Page, ran};
use crate::common::Served;

/// A thread with two branches, which began with another text.
async fn forked(server: &Served) -> String {
    let thread = ran(server, "steps", json!({ "text": "tea" })).await;
    let history = server.get(&format!("/threads/{thread}/history?limit=10")).await;
    let edit = json!({ "checkpoint_id": history[2]["checkpoint_id"], "values": { "text": { "__overwrite__": "cake" } } });
    server.post(&format!("/threads/{thread}/state"), &edit).await;
    server.post(&format!("/threads/{thread}/runs/wait"), &json!({ "assistant_id": "steps" })).await;
    thread
}

async fn branches(page: &Page, thread: &str) -> usize {
    page.server.get(&format!("/ui/threads/{thread}/branches")).await.as_array().unwrap().len()
}

#[tokio::test]
async fn two_branches_are_compared_field_by_field() {
    let server = Served::new().await;
    let thread = forked(&server).await;
    let page = Page::of(server, &format!("#/threads/{thread}?tab=compare")).await;
    let rows = "return [...document.querySelectorAll('.compare tbody tr')].map(row => [...row.cells].map(cell => cell.innerText.trim()).join('|')).join(' / ')";
    page.browser.until(&format!("{rows} === 'seen › 0|first tea|first cake / text|tea|cake'")).await;
    page.says("2 fields are the same: fails, wait_ms").await;
    // Both have run the same nodes since the checkpoint that they have in common.
    page.browser
        .until("return [...document.querySelectorAll('.compare .ran')].map(ran => ran.innerText).join() === 'first → second,first → second'")
        .await;
    let choice = "const choice = document.querySelector('[name=with]'); choice.value = [...choice.options].find(one => one.text === 'step 2, loop').value; \
                  choice.dispatchEvent(new Event('change')); return true";
    page.browser.until(choice).await;
    page.browser.until(&format!("{rows} === 'seen › 1|–|second'")).await;
    assert!(page.address().await.contains("&with="));
    page.browser.reload().await;
    page.browser.until(&format!("{rows} === 'seen › 1|–|second'")).await;
}

#[tokio::test]
async fn a_run_is_replayed_from_a_checkpoint_on_a_branch() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "tea" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.has(".checkpoints button", 4).await;
    page.browser.presses("j").await;
    page.says("next: second").await;
    page.browser.clicks("Replay from here").await;
    page.browser.until("return document.querySelectorAll('.run-picker option').length === 2").await;
    page.until_status(&thread, "idle").await;
    assert_eq!(branches(&page, &thread).await, 2);
    assert_eq!(page.state(&thread).await["values"]["seen"], json!(["first tea", "second"]));
}

#[tokio::test]
async fn a_run_pauses_after_a_node_and_goes_on() {
    let page = Page::open().await;
    page.shows("#/new?graph=steps").await;
    page.has("[name=pause-after]", 1).await;
    page.browser.types("[name=pause-after]", "first").await;
    page.browser.clicks("Run").await;
    page.draws("first", "done").await;
    page.draws("second", "next").await;
    page.browser.clicks("Continue").await;
    page.draws("second", "done").await;
}

#[tokio::test]
async fn an_edit_that_does_not_fit_the_schema_is_refused_at_its_field() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "tea" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}?tab=edit")).await;
    page.has(".checkpoints button", 4).await;
    page.browser.presses("j").await;
    page.has(".fork [placeholder=\"goes on with second\"]", 1).await;
    let writes =
        |text: &str| format!("document.querySelector('.fork [name=seen]').value = '{text}'; return true");
    page.browser.until(&writes("[\"mine\", 7]")).await;
    page.browser.clicks("Run from here").await;
    page.says("seen › 1 must be of type string").await;
    page.has(".fork [name=seen][aria-invalid=true]:focus", 1).await;
    assert_eq!(branches(&page, &thread).await, 1);
    page.browser.until(&writes("[\"mine\"]")).await;
    page.browser.clicks("Run from here").await;
    page.says("branch").await;
    page.until_status(&thread, "idle").await;
    assert_eq!(page.state(&thread).await["values"]["seen"], json!(["mine", "second"]));
}
