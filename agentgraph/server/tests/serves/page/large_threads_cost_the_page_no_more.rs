//! 20,000 events and a state of 5 MB: the page has at most 2,000 elements, and stays usable.

use serde_json::json;

use super::{Page, ran};
use crate::common::Served;

const MOST: u64 = 2000;

#[tokio::test]
async fn twenty_thousand_events_are_a_window() {
    let server = Served::new().await;
    let thread = server.thread().await;
    // Each step starts a task and ends it.
    let body = json!({
        "assistant_id": "endless", "input": { "text": "a" }, "config": { "recursion_limit": 10_000 },
        "durability": "exit", "stream_mode": "custom",
    });
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    page.has(".waterfall li", 40).await;
    page.says("GraphRecursionError").await;
    assert!(page.elements().await < MOST, "{}", page.elements().await);
    page.browser.reload().await;
    page.says("are no longer kept").await;
    page.browser.clicks("Earlier").await;
    page.has(".waterfall li", 40).await;
    // The list of 10,000 texts is folded, and opens as a window.
    page.clicks_on(".json .fold").await;
    page.says("rows 1–120 of ").await;
    page.browser.clicks("Next rows").await;
    page.says("rows 121–240 of ").await;
    assert!(page.elements().await < MOST, "{}", page.elements().await);
}

#[tokio::test]
async fn long_markdown_is_shown_as_it_was_written() {
    let server = Served::new().await;
    let said = |text: String| json!({ "messages": [{ "type": "human", "content": text }] });
    // The newest messages have Markdown first: the answer repeats what was said.
    let thread = ran(&server, "chat", said("* item\n".repeat(300))).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.has(".message.ai .markdown li", 299).await;
    page.has(".message.human p.text", 1).await;
    let long = ran(&page.server, "chat", said("* item\n".repeat(2000))).await;
    page.shows(&format!("#/threads/{long}")).await;
    page.has(".message p.text", 2).await;
    assert!(page.elements().await < MOST, "{}", page.elements().await);
}

#[tokio::test]
async fn a_state_of_five_megabytes_is_folded() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "tea ".repeat(1_250_000) })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.says("Show text (5.0 MB)").await;
    page.browser.clicks("Show text (5.0 MB)").await;
    page.says("of 5.0 MB").await;
    for tab in ["2", "4", "5"] {
        page.browser.script("document.activeElement.blur()").await;
        page.browser.presses(tab).await;
        page.browser.until("return document.querySelector('[role=tabpanel]').innerText.length > 20").await;
        let shown = page.browser.script("return document.body.innerText.length").await.as_u64().unwrap();
        assert!(shown < 60_000, "{tab}: {shown}");
        assert!(page.elements().await < MOST);
    }
}

#[tokio::test]
async fn an_image_is_folded_and_shown_on_request() {
    let server = Served::new().await;
    let image = concat!(
        "data:image/svg+xml;base64,",
        "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSI0MCIgaGVpZ2h0PSIzMCI+PHJlY3Qgd2lk",
        "dGg9IjQwIiBoZWlnaHQ9IjMwIiBmaWxsPSJ0ZWFsIi8+PCEtLSB0ZWEgdGVhIHRlYSB0ZWEgdGVhIC0tPjwvc3ZnPg==",
    );
    let thread = ran(&server, "steps", json!({ "text": image })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.says("Show image").await;
    page.has(".json img", 0).await;
    page.browser.clicks("Show image").await;
    page.browser.until("return document.querySelector('.json img')?.naturalWidth === 40").await;
}
