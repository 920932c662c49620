//! Every screen in a narrow window.

use serde_json::json;

use super::{Page, graphs, ran};
use crate::common::Served;

/// The page, and the address of each screen with a text that it says.
pub(super) async fn screens() -> (Page, Vec<(String, &'static str)>) {
    let server = Served::of(graphs::server()).await;
    let failed = ran(&server, "steps", json!({ "text": "a", "fails": "ValueError" })).await;
    ran(&server, "decide", json!({ "text": "one" })).await;
    ran(&server, "ask", json!({})).await;
    let talk = ran(&server, "chat", json!({ "messages": [{ "type": "human", "content": "hello" }] })).await;
    let planned = ran(&server, "plan", json!({ "text": "tea" })).await;
    let deep = ran(&server, "deeper", json!({ "text": "tea" })).await;
    let joins = ran(&server, "join", json!({ "text": "tea" })).await;
    let eager = ran(&server, "eager", json!({ "text": "tea" })).await;
    let sum = ran(&server, "sum", json!({ "text": "tea" })).await;
    let item = json!({ "namespace": ["users"], "key": "ada", "value": { "likes": "tea" } });
    server.send(reqwest::Method::PUT, "/store/items", Some(&item)).await;
    let screens = [
        ("#/threads".to_owned(), "1–9 of 9"),
        (format!("#/threads/{failed}"), "Run the failed node again"),
        (format!("#/threads/{failed}?tab=changes"), "changed"),
        (format!("#/threads/{failed}?tab=json"), "Copy ("),
        (format!("#/threads/{failed}?tab=edit"), "Run from here"),
        (format!("#/threads/{failed}?tab=run"), "Pause before"),
        (format!("#/threads/{failed}?tab=test"), "TestGraph"),
        (format!("#/threads/{failed}?tab=compare"), "Compare with"),
        (format!("#/threads/{planned}"), "dropped"),
        (format!("#/threads/{deep}"), "Fold subgraphs"),
        (format!("#/threads/{joins}"), "approve missing"),
        (format!("#/threads/{eager}"), "Recorded order of ends"),
        (format!("#/threads/{sum}"), "durable step download"),
        (format!("#/threads/{talk}"), "you said hello"),
        ("#/store?key=%5B%5B%22users%22%5D%2C%22ada%22%5D".to_owned(), "Copy JSON"),
        ("#/questions".to_owned(), "Send one?"),
        ("#/new?graph=chat".to_owned(), "Message"),
        ("#/new?graph=decide".to_owned(), "Pause before"),
        ("#/graphs/deeper".to_owned(), "No report."),
    ];
    (Page::of(server, "").await, screens.into())
}

#[tokio::test]
async fn every_screen_fits_into_360_pixels() {
    let (page, screens) = screens().await;
    page.browser.narrows().await;
    for (address, text) in screens {
        page.shows(&address).await;
        page.says(text).await;
        let width = "return document.documentElement.scrollWidth <= 360";
        assert_eq!(page.browser.script(width).await, true, "{address} is wider than 360 px");
        let tabs = "return [...document.querySelectorAll('[role=tablist]')].every(one => one.scrollWidth <= one.clientWidth)";
        assert_eq!(page.browser.script(tabs).await, true, "{address} hides some of its tabs");
    }
}
