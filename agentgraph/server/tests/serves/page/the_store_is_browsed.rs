//! The store that graphs and clients share.

use reqwest::Method;
use serde_json::json;

use super::Page;

#[tokio::test]
async fn items_are_found_by_namespace_and_deleted() {
    let page = Page::open().await;
    let items = [(json!(["users", "ada"]), "tea"), (json!(["users", "bob"]), "milk"), (json!(["docs"]), "a")];
    for (namespace, key) in items {
        let item = json!({ "namespace": namespace, "key": key, "value": { "likes": key } });
        page.server.send(Method::PUT, "/store/items", Some(&item)).await;
    }
    page.browser.presses("s").await;
    page.has(".store tbody tr", 3).await;
    page.clicks_on(".namespaces a[href*='ns=users']").await;
    page.has(".store tbody tr", 2).await;
    page.clicks_on(".namespaces a[href*='ns=users.ada']").await;
    page.has(".store tbody tr", 1).await;
    page.browser.clicks("tea").await;
    page.browser
        .until("return document.querySelector('.item-view .json')?.innerText.includes('\"tea\"')")
        .await;
    page.browser.reload().await;
    page.browser
        .until("return document.querySelector('.item-view .json')?.innerText.includes('\"tea\"')")
        .await;
    page.browser.clicks("Delete").await;
    page.browser.clicks("Delete this item?").await;
    page.says("Nothing is kept here.").await;
    let left = page.server.post("/store/items/search", &json!({ "limit": 10 })).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 2);
}
