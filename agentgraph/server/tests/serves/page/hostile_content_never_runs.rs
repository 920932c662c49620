//! Script in the names of nodes, states, messages, errors, metadata and questions is shown as text.

use agentgraph::prelude::*;
use agentgraph_server::{NamedError, Server};
use schemars::JsonSchema;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

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
        (format!("#/threads/{failed}?tab=test"), "TestGraph"),
        (format!("#/threads/{done}?tab=compare"), "Compare with"),
        (
            "#/store?ns=%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E&key=%5B%5B%22x%22%5D%2C%22x%22%5D"
                .to_owned(),
            "Nothing is kept here.",
        ),
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
async fn markdown_of_messages_runs_loads_and_submits_nothing() {
    let server = Served::of(Server::new().in_memory().graph_without_schema("chat", chat())).await;
    let text = "**bold** [bad](javascript:window.ran=1) [data](data:text/html,<script>1</script>) [good](https://example.org)\n\n\
                ![x](x\" onerror=\"window.ran=1) <style>main { display: none }</style><iframe srcdoc=\"<script>parent.ran=1</script>\"></iframe>\
                <form action=/threads><button onclick=window.ran=1>go</button></form><math><mtext><table><mglyph><style><img src=x onerror=window.ran=1>\
                </style></mglyph></table></mtext></math><svg><a xlink:href=\"javascript:window.ran=1\"><text>t</text></a></svg>\n\n\
                <a id=main name=main href=\" javascript:window.ran=1\" style=\"position:fixed\" onclick=window.ran=1>clobber</a>";
    let said = json!({ "messages": [{ "type": "human", "content": text }] });
    let thread = ran(&server, "chat", said).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.has(".markdown strong", 2).await;
    let found = "const inside = [...document.querySelectorAll('.markdown *')]; const links = inside.filter(one => one.href).map(one => one.href); \
                 return [window.ran ?? null, [...new Set(links)].join(), [...new Set(inside.map(one => one.localName))].sort().join(), \
                 [...new Set(inside.flatMap(one => one.getAttributeNames()))].sort().join()]";
    assert_eq!(
        page.browser.script(found).await,
        json!([null, "https://example.org/", "a,p,strong", "href,rel,target"])
    );
    // Each link is tried: those that lead nowhere do nothing.
    let clicks = "for (const link of document.querySelectorAll('.markdown a:not([href])')) link.click(); return window.ran ?? null";
    assert_eq!(page.browser.script(clicks).await, Value::Null);
}

#[tokio::test]
async fn vendored_files_are_those_that_were_published() {
    let server = Served::new().await;
    let sums = include_str!("../../../ui/vendor/SHA256SUMS");
    let scripts =
        sums.lines().filter_map(|line| line.split_once("  ")).filter(|(_, name)| !name.ends_with("LICENSE"));
    let mut count = 0;
    for (sum, name) in scripts {
        let file = server.request(reqwest::Method::GET, &format!("/ui/{name}")).send().await.unwrap();
        assert_eq!(file.headers()["content-type"], "text/javascript; charset=utf-8", "{name}");
        let digest = Sha256::digest(file.bytes().await.unwrap());
        assert_eq!(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), sum, "{name}");
        count += 1;
    }
    assert_eq!(count, 2);
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
