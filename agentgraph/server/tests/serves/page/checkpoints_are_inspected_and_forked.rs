//! One checkpoint: its state, what it changed, its JSON; and another run from it.

use serde_json::json;

use super::{Page, ran};
use crate::common::Served;

#[tokio::test]
async fn a_checkpoint_is_chosen_by_keys_and_shows_what_it_changed() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "tea" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.has(".checkpoints button", 4).await;
    page.browser.presses("2").await;
    page.browser.until("return document.querySelector('.delta')?.innerText.replace(/\\s+/g, ' ') === 'added seen › 1 \"second\"'").await;
    page.browser.presses("j").await;
    page.browser
        .until("return document.querySelector('.delta')?.innerText.includes('first tea') === true")
        .await;
    let address = page.address().await;
    assert!(address.contains("tab=changes") && address.contains("at="), "{address}");
    // What ran up to it is done, what it leads to is next.
    page.draws("first", "done").await;
    page.draws("second", "next").await;
    page.browser.reload().await;
    page.browser
        .until("return document.querySelector('.delta')?.innerText.includes('first tea') === true")
        .await;
    page.has(".checkpoints li:nth-child(2) [aria-current]", 1).await;
    page.browser.presses("4").await;
    page.browser
        .until("return JSON.parse(document.querySelector('.source pre').textContent).values.text === 'tea'")
        .await;
    page.browser.presses("1").await;
    page.clicks_on(".json .fold").await;
    page.browser.until("return document.querySelector('.json').innerText.includes('first tea')").await;
}

#[tokio::test]
async fn an_edited_state_runs_from_its_checkpoint_on_a_branch() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "tea" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}?tab=edit")).await;
    page.has(".checkpoints button", 4).await;
    page.browser.presses("j").await;
    page.browser.presses("j").await;
    page.has(".fork [placeholder=\"goes on with first\"]", 1).await;
    page.browser.types(".fork [name=text]", " and cake").await;
    page.browser.clicks("Run from here").await;
    page.says("branch").await;
    page.until_status(&thread, "idle").await;
    let values = page.state(&thread).await["values"].clone();
    assert_eq!(values["text"], "tea and cake");
    assert_eq!(values["seen"], json!(["first tea and cake", "second"]));
    page.browser.until("return document.querySelector('.run-picker .is-success') !== null").await;
}

#[tokio::test]
async fn messages_are_a_chat() {
    let server = Served::new().await;
    let input = json!({ "messages": [{ "type": "human", "content": "hello" }] });
    let thread = ran(&server, "chat", input).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.browser
        .until("return document.querySelector('.message.ai .text')?.textContent === 'you said hello'")
        .await;
    page.browser.types("[name=message]", "more").await;
    page.browser.types("[name=message]", "\u{e009}\u{e007}\u{e000}").await;
    page.browser.until("return [...document.querySelectorAll('.message .text')].map(text => text.textContent).join() === 'hello,you said hello,more,you said more'").await;
}
