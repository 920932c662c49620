//! The list of threads: filters in the address, pages, and actions on several.

use agentgraph_server::Server;
use agentgraph_server::records::{Kind, MemoryRecords, Query, Record, Records};
use serde_json::json;

use super::{Page, ran};
use crate::common::{Served, all_graphs};

/// One thread that is idle, one that failed, one that asks.
async fn three() -> Page {
    let server = Served::new().await;
    ran(&server, "steps", json!({ "text": "a" })).await;
    ran(&server, "steps", json!({ "fails": "ValueError" })).await;
    let asks = ran(&server, "ask", json!({})).await;
    let patch = server.request(reqwest::Method::PATCH, &format!("/threads/{asks}"));
    patch.json(&json!({ "metadata": { "user": "ada", "tier": 2 } })).send().await.unwrap();
    Page::of(server, "").await
}

#[tokio::test]
async fn filters_are_in_the_address_and_a_reload_shows_the_same() {
    let page = three().await;
    page.has(".threads tbody tr", 3).await;
    page.says("ValueError: boom!").await;
    page.browser.until("return document.querySelector('.chips').innerText.replace(/\\s+/g, ' ') === 'all 3 idle 1 busy 0 interrupted 1 error 1'").await;
    page.clicks_on(".chips a[href*='status=error']").await;
    page.has(".threads tbody tr", 1).await;
    assert_eq!(page.address().await, "#/threads?status=error");
    page.browser.reload().await;
    page.has(".threads tbody .is-error", 1).await;
    page.has(".threads tbody tr", 1).await;

    page.shows("#/threads").await;
    page.has(".threads tbody tr", 3).await;
    page.browser.presses("/").await;
    page.browser.until("return document.activeElement.name === 'id'").await;
    page.browser.types("[name=metadata]", "user=ada, tier=2\u{e007}").await;
    page.has(".threads tbody tr", 1).await;
    assert_eq!(page.address().await, "#/threads?metadata=user%3Dada%2C+tier%3D2");
    page.browser.reload().await;
    page.has(".threads tbody .is-interrupted", 1).await;
    page.has(".threads tbody tr", 1).await;
}

#[tokio::test]
async fn threads_are_opened_and_selected_by_keys_and_deleted_after_a_second_click() {
    let page = three().await;
    page.has(".threads tbody tr", 3).await;
    page.browser.presses("j").await;
    page.browser.presses("x").await;
    page.browser.presses("j").await;
    page.browser.presses("x").await;
    page.says("2 threads selected").await;
    page.browser.clicks("Delete").await;
    assert_eq!(page.server.post("/threads/count", &json!({})).await, 3, "the first click asks");
    page.browser.clicks("Delete 2 threads?").await;
    page.has(".threads tbody tr", 1).await;
    assert_eq!(page.server.post("/threads/count", &json!({})).await, 1);
    page.browser.presses("j").await;
    page.browser.presses("\u{e007}").await;
    page.browser.until("return location.hash.startsWith('#/threads/')").await;
}

#[tokio::test]
async fn runs_of_selected_threads_are_cancelled() {
    let page = Page::open().await;
    let thread = page.server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "wait_ms": 600_000 } });
    page.server.post(&format!("/threads/{thread}/runs"), &body).await;
    page.has(".threads tbody .is-busy", 1).await;
    page.clicks_on(".threads tbody input").await;
    page.browser.clicks("Cancel runs").await;
    page.has(".threads tbody .is-interrupted", 1).await;
    let runs = page.server.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs[0]["status"], "interrupted");
}

#[tokio::test]
async fn threads_are_found_by_the_beginning_of_their_ids() {
    let server = Served::new().await;
    for id in ["aaaa1111", "aaaa2222", "bbbb1111"] {
        let body = json!({ "thread_id": format!("{id}-0000-7000-8000-000000000000") });
        server.post("/threads", &body).await;
    }
    let page = Page::of(server, "#/threads?id=AAAA").await;
    page.has(".threads tbody tr", 2).await;
    page.says("1–2 of 2").await;
    page.browser.until("return document.querySelector('.chips').innerText.startsWith('all 2')").await;
    page.shows("#/threads?id=aaaa2").await;
    page.has(".threads tbody tr", 1).await;
    page.shows("#/threads?id=bbbb1111-0000-7000-8000-000000000000").await;
    page.has(".threads tbody tr", 1).await;
    page.shows("#/threads?id=cc").await;
    page.says("No thread fits these filters.").await;
}

#[tokio::test]
async fn selected_threads_go_on() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "a", "fails": "ValueError" })).await;
    server.post(&format!("/threads/{thread}/state"), &json!({ "values": { "fails": "" } })).await;
    let page = Page::of(server, "").await;
    page.has(".threads tbody tr", 1).await;
    page.clicks_on(".threads tbody input").await;
    page.browser.clicks("Continue").await;
    page.says("Continued 1").await;
    page.until_status(&thread, "idle").await;
}

#[tokio::test]
async fn actions_on_many_threads_show_their_progress() {
    let server = Served::new().await;
    for _ in 0..12 {
        server.thread().await;
    }
    let page = Page::of(server, "").await;
    page.has(".threads tbody tr", 12).await;
    page.clicks_on(".threads thead input").await;
    page.browser.clicks("Delete").await;
    let watch = "window.told = new Set(); new MutationObserver(() => { const bar = document.querySelector('progress'); \
                 if (bar) window.told.add(`${bar.value} of ${bar.max}`); }).observe(document, \
                 { childList: true, subtree: true, attributes: true }); return null";
    page.browser.script(watch).await;
    page.browser.clicks("Delete 12 threads?").await;
    page.says("Deleted 12").await;
    page.has(".threads tbody tr td.empty", 1).await;
    let told = page.browser.script("return [...window.told]").await;
    assert_eq!(
        (&told[0], &told.as_array().unwrap().last()),
        (&json!("0 of 12"), &Some(&json!("12 of 12"))),
        "{told}"
    );
}

/// Threads that were made and changed one after the other.
async fn many(count: i64) -> Served {
    let records = MemoryRecords::default();
    for at in 0..count {
        let thread = Record {
            kind: Kind::Thread,
            id: format!("0190a0a0-0000-7000-8000-{at:012}"),
            parent: String::new(),
            status: if at % 2 == 0 { "idle" } else { "error" }.to_owned(),
            created: at,
            updated: at,
            version: 0,
            data: json!({ "metadata": { "graph_id": "steps", "user": format!("user {at}") } }),
        };
        assert!(records.put(vec![thread]).await.unwrap());
    }
    assert_eq!(records.count(&Query::all(Kind::Thread)).await.unwrap(), usize::try_from(count).unwrap());
    Served::of(all_graphs(Server::new().records(records))).await
}

#[tokio::test]
async fn a_page_stays_while_threads_before_it_come_and_go() {
    let page = Page::of(many(170).await, "").await;
    page.says("user=user 169").await;
    page.browser.clicks("Next").await;
    page.says("51–100 of 170").await;
    let rows = "return [...document.querySelectorAll('td.metadata')].map(one => one.innerText).join()";
    let users = |from: i64| {
        (from - 49..=from).rev().map(|at| format!("user=user {at}")).collect::<Vec<_>>().join(",")
    };
    page.browser.until(&format!("{rows} === '{}'", users(119))).await;
    page.server.thread().await;
    page.says("of 171").await;
    assert_eq!(page.browser.script(rows).await, users(119));
    page.browser.reload().await;
    page.browser.until(&format!("{rows} === '{}'", users(119))).await;
    page.browser.clicks("Next").await;
    page.browser.until(&format!("{rows} === '{}'", users(69))).await;
    page.browser.clicks("Previous").await;
    page.browser.until(&format!("{rows} === '{}'", users(119))).await;
    page.browser.clicks("Previous").await;
    page.says("1–50 of 171").await;
    page.browser.until("return document.querySelector('td.metadata').innerText === ''").await;
    assert_eq!(page.address().await, "#/threads");
}

#[tokio::test]
async fn ten_thousand_threads_are_pages_of_fifty() {
    let page = Page::of(many(10_000).await, "").await;
    page.says("1–50 of 10,000").await;
    page.says("user 9999").await;
    page.browser.clicks("Next").await;
    page.says("51–100 of 10,000").await;
    page.browser.clicks("Last").await;
    page.says("9,951–10,000 of 10,000").await;
    assert_eq!(page.address().await, "#/threads?page=200");
    page.browser.reload().await;
    page.says("user 49").await;
    assert!(page.elements().await < 1500, "{}", page.elements().await);
    // What a change of page costs the page itself: no frame is missed for long.
    let cost = "const began = performance.now(); document.querySelector('.threads tbody').getBoundingClientRect(); \
                return performance.now() - began";
    assert!(page.browser.script(cost).await.as_f64().unwrap() < 100.0);
    page.clicks_on(".threads thead input").await;
    page.browser.clicks("Select all 10,000").await;
    page.says("10,000 threads selected").await;
}
