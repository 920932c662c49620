//! The test that the page writes of a run. Its texts are the modules below, which are compiled and run here.

mod answered;
mod failed;

use serde_json::json;

use super::{Page, ran};
use crate::common::{Ask, Served, Steps, asking as ask, steps};

async fn shows(page: &Page, text: &str) {
    let text = json!(text);
    page.browser
        .until(&format!("return document.querySelector('.test-case pre')?.textContent === {text}"))
        .await;
}

#[tokio::test]
async fn a_run_that_failed_is_a_test_with_its_input_and_fault() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "a \"cup\"", "fails": "ValueError" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.browser.clicks("As a test").await;
    shows(&page, include_str!("a_run_is_a_test_to_paste/failed.rs")).await;
}

#[tokio::test]
async fn a_run_that_asked_is_a_test_with_its_answer() {
    let server = Served::new().await;
    let thread = ran(&server, "ask", json!({ "done": false })).await;
    let answers = json!({ "assistant_id": "ask", "command": { "resume": { "go": true } } });
    server.post(&format!("/threads/{thread}/runs/wait"), &answers).await;
    let page = Page::of(server, &format!("#/threads/{thread}?tab=test")).await;
    shows(&page, include_str!("a_run_is_a_test_to_paste/answered.rs")).await;
}
