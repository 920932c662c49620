//! Run by `.ci/axe`, which gets axe-core from npm.

use serde_json::json;

use super::{Page, more_graphs, ran};
use crate::common::Served;

#[tokio::test]
#[ignore = "needs axe-core: `.ci/axe` runs it"]
async fn axe_finds_nothing_on_any_screen() {
    let server = Served::of(more_graphs()).await;
    let failed = ran(&server, "steps", json!({ "text": "a", "fails": "ValueError" })).await;
    ran(&server, "decide", json!({ "text": "one" })).await;
    ran(&server, "ask", json!({})).await;
    let talk = ran(&server, "chat", json!({ "messages": [{ "type": "human", "content": "hello" }] })).await;
    let page = Page::of(server, "").await;
    let screens = [
        ("#/threads".to_owned(), "1–4 of 4"),
        (format!("#/threads/{failed}"), "Run the failed node again"),
        (format!("#/threads/{failed}?tab=changes"), "changed"),
        (format!("#/threads/{failed}?tab=json"), "Copy ("),
        (format!("#/threads/{failed}?tab=edit"), "Run from here"),
        (format!("#/threads/{failed}?tab=run"), "Pause before"),
        (format!("#/threads/{talk}"), "you said hello"),
        ("#/questions".to_owned(), "Send one?"),
        ("#/new?graph=chat".to_owned(), "Message"),
    ];
    for scheme in ["light", "dark"] {
        page.browser.prefers(scheme).await;
        for (address, text) in &screens {
            page.shows(address).await;
            page.says(text).await;
            page.browser.passes_axe(&format!("{scheme} {address}")).await;
        }
    }
    page.browser.narrows().await;
    for (address, text) in &screens {
        page.shows(address).await;
        page.says(text).await;
        let width = "return document.documentElement.scrollWidth <= 360";
        assert_eq!(page.browser.script(width).await, true, "{address} is wider than 360 px");
        page.browser.passes_axe(&format!("narrow {address}")).await;
    }
}
