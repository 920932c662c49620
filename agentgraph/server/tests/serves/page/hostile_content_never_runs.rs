//! Script in the names of nodes, states, messages, errors, metadata and questions is shown as text.

use agentgraph::prelude::*;
use agentgraph_server::{NamedError, Server};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{Page, ran};
use crate::common::{Served, chat};

const SCRIPT: &str =
    "\"'><img src=x onerror=\"window.ran=1\"><script>window.ran=1</script><svg/onload=window.ran=1>";

#[derive(State, JsonSchema, Clone, Debug, Default)]
struct Hostile {
    text: String,
    fails: bool,
    asks: bool,
}

async fn evil(ctx: Ctx, state: Snapshot<Hostile>) -> Result<HostileUpdate> {
    if state.fails {
        return Err(NamedError::new(SCRIPT, SCRIPT).into());
    }
    if state.asks {
        let _: Value = ctx.interrupt(json!({ "question": SCRIPT, SCRIPT: SCRIPT }))?;
    }
    Ok(Hostile::update().text(format!("javascript:window.ran=1 {SCRIPT}")))
}

fn hostile() -> CompiledGraph<Hostile> {
    StateGraph::new().node(SCRIPT, evil).edge(START, SCRIPT).compile().unwrap()
}

#[tokio::test]
async fn no_screen_runs_what_a_graph_or_a_user_wrote() {
    let graphs = Server::new().in_memory().graph(SCRIPT, hostile()).graph_without_schema("chat", chat());
    let server = Served::of(graphs).await;
    let failed = ran(&server, SCRIPT, json!({ "text": SCRIPT, "fails": true })).await;
    let asks = ran(&server, SCRIPT, json!({ "text": SCRIPT, "asks": true })).await;
    let done = ran(&server, SCRIPT, json!({ "text": SCRIPT })).await;
    let patch = server.request(reqwest::Method::PATCH, &format!("/threads/{done}"));
    patch.json(&json!({ "metadata": { SCRIPT: SCRIPT } })).send().await.unwrap();
    let said = json!({ "messages": [{ "type": "human", "content": SCRIPT, "name": SCRIPT }] });
    let talk = ran(&server, "chat", said).await;
    let page = Page::of(server, "").await;
    page.has(".threads tbody tr", 4).await;
    let addresses = [
        (
            "#/threads?metadata=%7B%22%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E%22%3A1%7D".to_owned(),
            "No thread",
        ),
        (format!("#/threads/{failed}"), "Run the failed node again"),
        (format!("#/threads/{asks}"), "Answer the question"),
        (format!("#/threads/{done}?tab=changes"), "javascript:window.ran"),
        (format!("#/threads/{done}?tab=json"), "javascript:window.ran"),
        (format!("#/threads/{done}?tab=edit"), "Run from here"),
        (format!("#/threads/{talk}?tab=messages"), "you said"),
        ("#/questions".to_owned(), "onerror"),
        ("#/new".to_owned(), "Pause before"),
        ("#/<img src=x onerror=window.ran=1>".to_owned(), "Threads"),
        ("#/threads/<img src=x onerror=window.ran=1>".to_owned(), "There is no such thread."),
    ];
    for (address, text) in addresses {
        page.shows(&address).await;
        page.says(text).await;
        let found = "return [window.ran ?? null, document.querySelectorAll('main script, main [onerror], main [onload]').length]";
        assert_eq!(page.browser.script(found).await, json!([null, 0]), "{address}");
    }
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere_and_allows_no_inline_code() {
    let page = Page::open().await;
    let served = page.server.request(reqwest::Method::GET, "/ui/").send().await.unwrap();
    let policy = served.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    page.says("No thread yet.").await;
    // Inserted on purpose, as if something had been forgotten: the policy is what stops it.
    let inline = "const script = document.createElement('script'); script.textContent = 'window.ran = 1'; \
                  document.body.append(script); return window.ran ?? null";
    assert_eq!(page.browser.script(inline).await, Value::Null);
    let loaded = "return performance.getEntriesByType('resource').map(one => new URL(one.name, location).origin)\
                  .every(origin => origin === location.origin)";
    assert_eq!(page.browser.script(loaded).await, true);
}
