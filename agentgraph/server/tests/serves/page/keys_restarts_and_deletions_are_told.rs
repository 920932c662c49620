//! A server that asks for a key, one that restarts under the page, a thread that is deleted while it is open.

use agentgraph_server::Server;
use reqwest::Method;
use serde_json::json;
use tokio::runtime::Runtime;

use super::{Page, ran};
use crate::common::{Served, all_graphs};

#[tokio::test]
async fn a_server_with_keys_is_asked_with_the_one_of_the_form() {
    let server = Served::of(all_graphs(Server::new().in_memory().bearer_keys(["right"]))).await;
    for path in ["/ui/graphs", "/ui/graphs/steps.svg", "/ui/questions"] {
        assert_eq!(server.send(Method::GET, path, None).await.0, 401, "{path}");
    }
    let page = Page::of(server, "#/threads?status=idle").await;
    page.says("This server asks for a key").await;
    page.browser.types("[name=key]", "wrong\u{e007}").await;
    page.says("The server does not know this key.").await;
    page.browser.script("document.querySelector('[name=key]').value = ''").await;
    page.browser.types("[name=key]", "right\u{e007}").await;
    page.says("No thread fits these filters.").await;
    page.browser.reload().await;
    page.says("No thread fits these filters.").await;
    let address = page.browser.script("return location.href").await;
    assert!(!address.as_str().unwrap().contains("right"), "a key is no part of an address");
}

#[tokio::test]
async fn a_thread_that_is_deleted_meanwhile_is_told() {
    let server = Served::new().await;
    let thread = ran(&server, "steps", json!({ "text": "a" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("second", "done").await;
    page.server.send(Method::DELETE, &format!("/threads/{thread}"), None).await;
    page.says("This thread was deleted.").await;
    page.browser.reload().await;
    page.says("There is no such thread.").await;
}

/// A server with a runtime of its own, so that it ends with all its connections.
struct Ending(Option<Runtime>);

impl Ending {
    async fn start(file: &std::path::Path, port: u16) -> (Self, u16) {
        let runtime = Runtime::new().unwrap();
        let server = all_graphs(Server::new().sqlite(file));
        let (told, port_of) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
            let _ = told.send(listener.local_addr().unwrap().port());
            server.serve_on(listener).await.unwrap();
        });
        (Ending(Some(runtime)), port_of.await.unwrap())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test]
async fn a_server_that_restarts_is_waited_for_and_its_runs_are_followed_on() {
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("threads.db");
    let (first, port) = Ending::start(&file, 0).await;
    let server = Served::at(&format!("http://127.0.0.1:{port}"));
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a", "wait_ms": 600_000 } });
    server.post(&format!("/threads/{thread}/runs"), &body).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("first", "running").await;
    drop(first);
    page.says("The server does not answer.").await;
    let (second, _) = Ending::start(&file, port).await;
    page.browser.until("return document.getElementById('offline').hidden").await;
    page.draws("first", "running").await;
    page.browser.clicks("Cancel").await;
    page.draws("first", "next").await;
    drop(second);
    std::fs::remove_dir_all(folder).unwrap();
}
