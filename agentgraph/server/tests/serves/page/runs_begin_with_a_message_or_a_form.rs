//! The first run of a thread, from the page.

use serde_json::json;

use super::Page;

#[tokio::test]
async fn an_input_is_a_form_made_of_the_schema() {
    let page = Page::open().await;
    page.shows("#/new?graph=steps").await;
    page.browser.until("return document.querySelectorAll('form.input .field').length > 3").await;
    page.browser.types("form.input [name=text]", "tea").await;
    page.browser.clicks("Run").await;
    page.browser.until("return location.hash.startsWith('#/threads/')").await;
    page.draws("second", "done").await;
    let thread = page.address().await.trim_start_matches("#/threads/").to_owned();
    assert_eq!(page.state(&thread).await["values"]["seen"], json!(["first tea", "second"]));
}

#[tokio::test]
async fn a_run_pauses_before_a_node_and_goes_on() {
    let page = Page::open().await;
    page.shows("#/new?graph=steps").await;
    page.has("[name=pause-before]", 1).await;
    page.browser.types("[name=pause-before]", "second").await;
    page.browser.clicks("Run").await;
    page.draws("second", "next").await;
    page.browser.clicks("Continue").await;
    page.draws("second", "done").await;
}

#[tokio::test]
async fn a_chat_begins_with_a_message() {
    let page = Page::open().await;
    page.shows("#/new?graph=chat").await;
    page.browser.until("return document.querySelector('[name=message]') !== null").await;
    page.browser.types("[name=message]", "hello").await;
    page.browser.clicks("Run").await;
    page.browser
        .until("return document.querySelector('.message.ai .text')?.textContent === 'you said hello'")
        .await;
}
