//! What `every_kill` and `every_order` found in a graph, from the files that tests wrote.

use agentgraph::testing::TestGraph;
use agentgraph_server::Server;
use serde_json::json;

use super::{Page, Steps, graphs};
use crate::common::Served;

#[tokio::test]
async fn findings_lie_over_the_graph_and_are_chosen_by_node() {
    let folder = std::env::temp_dir().join(format!("findings-{}", uuid::Uuid::new_v4()));
    let report = TestGraph::of(graphs::mailing()).every_kill(Steps::update()).await;
    assert!(!report.findings().is_empty());
    report.save(folder.join("kills.json")).unwrap();
    std::fs::write(folder.join("torn.json"), "{").unwrap();
    let graphs = Server::new().in_memory().graph("mail", graphs::mailing()).findings("mail", &folder);
    let page = Page::of(Served::of(graphs).await, "#/graphs").await;
    page.says("kills 1 finding in").await;
    page.says("torn cannot be read").await;
    page.draws("letters/mail", "failed").await;
    page.says("EffectTwice").await;
    let advice = json!(report.findings()[0].advice());
    page.browser.until(&format!("return document.querySelector('.advice').innerText === {advice}")).await;
    page.clicks_on(".finding-list button").await;
    page.browser.until("return location.hash.includes('node=letters%2Fmail')").await;
    page.says("Only letters/mail.").await;
    // Folded, the subgraph has the findings of its nodes.
    page.browser.clicks("Fold subgraphs").await;
    page.draws("letters", "failed").await;
    std::fs::remove_dir_all(folder).unwrap();
}
