//! A web page of a stranger, open in the user's browser, can send requests to the loopback. Without keys its
//! requests are refused: by their origin, and by the name under which it was called.

use agentgraph_server::Server;
use reqwest::header::ORIGIN;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::json;
use tokio::net::TcpListener;

use crate::common::{Served, all_graphs, client};

async fn post(server: &Served, origin: &str) -> Response {
    server.request(Method::POST, "/threads").header(ORIGIN, origin).json(&json!({})).send().await.unwrap()
}

#[tokio::test]
async fn pages_of_this_machine_may_call_and_others_may_not() {
    let server =
        Served::of(all_graphs(Server::new().in_memory().allow_origin("https://studio.example"))).await;
    let strangers = [
        "https://page.example",
        "null",
        "http://localhost.page.example",
        "http://127.0.0.1.page.example:80",
        "http://studio.example",
        "https://studio.example.page.example",
    ];
    for origin in strangers {
        let refused = post(&server, origin).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{origin}");
        assert!(!refused.headers().contains_key("access-control-allow-origin"), "{origin}");
    }
    assert_eq!(server.post("/threads/count", &json!({})).await, 0);
    let own = server.url.clone();
    for origin in
        ["http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:80", "https://studio.example", &own]
    {
        let taken = post(&server, origin).await;
        assert_eq!(taken.status(), StatusCode::OK, "{origin}");
        assert_eq!(taken.headers()["access-control-allow-origin"], origin);
    }
}

async fn status(client: &Client, url: &str, host: &str) -> StatusCode {
    client.get(url).header("host", host).send().await.unwrap().status()
}

#[tokio::test]
async fn a_name_of_a_stranger_that_leads_to_the_loopback_is_refused() {
    let client = client();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(all_graphs(Server::new().in_memory()).serve_on(listener));
    let url = format!("http://{address}/threads/search");
    let info = format!("http://{address}/info");
    let rebound = client.post(&url).header("host", "page.example").header(ORIGIN, "http://page.example");
    assert_eq!(rebound.json(&json!({})).send().await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(status(&client, &info, "page.example").await, StatusCode::FORBIDDEN);
    // The page of the server itself is one of those addresses: it would be of the stranger's origin.
    let page = format!("http://{address}/ui/");
    assert_eq!(status(&client, &page, "page.example").await, StatusCode::FORBIDDEN);
    assert_eq!(status(&client, &page, "localhost").await, StatusCode::OK);
    for host in [&*address.to_string(), "localhost", "graphs.localhost:2024"] {
        assert_eq!(status(&client, &info, host).await, StatusCode::OK, "{host}");
    }
    serving.abort();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let info = format!("http://{}/info", listener.local_addr().unwrap());
    let serving =
        tokio::spawn(all_graphs(Server::new().in_memory().bearer_keys(["right"])).serve_on(listener));
    let behind_a_proxy = client.get(&info).header("host", "graphs.example").bearer_auth("right");
    assert_eq!(behind_a_proxy.send().await.unwrap().status(), StatusCode::OK);
    serving.abort();
}
