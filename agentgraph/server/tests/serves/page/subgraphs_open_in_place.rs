//! Subgraphs in the drawing of a run, and the drawing as a file.

use serde_json::json;

use super::{Page, graphs, ran};
use crate::common::Served;

#[tokio::test]
async fn subgraphs_are_opened_and_folded_by_click_and_by_key() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "deeper", json!({ "text": "a" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.has(".drawing .node.open", 2).await;
    page.draws("outer/inner/second", "done").await;
    page.has(".edge.taken[data-from=\"outer/inner/first\"][data-to=\"outer/inner/second\"]", 1).await;
    page.browser.clicks("Fold subgraphs").await;
    page.has(".drawing .node.open", 0).await;
    page.draws("outer", "done").await;
    let focus = "document.querySelector('[aria-label=\"Open the subgraph outer\"]').focus(); return true";
    page.browser.until(focus).await;
    page.browser.presses("\u{e007}").await;
    page.has(".drawing .node.open", 1).await;
    page.draws("outer/inner", "done").await;
    page.browser.reload().await;
    page.draws("outer/inner", "done").await;
    page.has(".drawing .node.open", 1).await;
    page.browser.clicks("Open subgraphs").await;
    page.has(".drawing .node.open", 2).await;
}

#[tokio::test]
async fn a_graph_of_more_than_300_nodes_is_folded_by_its_subgraphs() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "huge", json!({ "text": "a" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("left", "done").await;
    page.has(".drawing .node[data-node]", 3).await;
    assert!(page.elements().await < 2000);
    page.clicks_on(".tools button").await;
    page.browser.until("return location.hash.endsWith('open=left%2Cright')").await;
    // What is asked for is drawn, as a picture if it would be too many elements.
    page.shows(&format!("#/threads/{thread}?open=left")).await;
    page.has(".drawing img", 1).await;
}

#[tokio::test]
async fn the_drawing_is_taken_away_as_svg_and_as_mermaid() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "deeper", json!({ "text": "a" })).await;
    let page = Page::of(server, &format!("#/threads/{thread}")).await;
    page.draws("last", "done").await;
    let listens = "window.files = []; const make = URL.createObjectURL; \
                   URL.createObjectURL = (blob) => { blob.text().then((text) => window.files.push(text)); return make.call(URL, blob); }; return true";
    page.browser.until(listens).await;
    page.browser.clicks("Mermaid").await;
    page.browser
        .until("return window.files[0]?.startsWith('flowchart TD') && window.files[0].includes('subgraph')")
        .await;
    page.browser.clicks("SVG").await;
    page.browser
        .until("return window.files[1]?.startsWith('<svg') && window.files[1].includes('outer/inner')")
        .await;
}
