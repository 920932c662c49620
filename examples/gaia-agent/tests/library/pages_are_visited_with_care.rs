//! Pages of the web as text: their parts, links and archived copies; and what is not visited.

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use gaia_agent::net::Guard;
use gaia_agent::settings::Addresses;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Scene, call, call_with, fixture};

const PAGE: &str = "<html><head><title>Tides</title><script>ignored()</script></head><body><h1>Tides of Wrenmouth</h1>\
    <p>High water &ndash; 4.2&nbsp;m</p><table><tr><th>Day</th><th>Height</th></tr><tr><td>Monday</td><td>3.9</td></tr></table>\
    <a href=\"/more?x=1&amp;y=2\">More tides</a> <a href=\"javascript:x()\">no</a></body></html>";

async fn answer(uri: Uri) -> Response {
    match uri.path() {
        "/tides" => Html(PAGE).into_response(),
        "/old" => (StatusCode::FOUND, [("location", "/tides")], "").into_response(),
        "/inward" => (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")], "").into_response(),
        "/latin" => ([("content-type", "text/html; charset=iso-8859-1")], b"<p>Gr\xf6\xdfe</p>".to_vec())
            .into_response(),
        "/gifts.pdf" => ([("content-type", "application/pdf")], fixture("gifts.pdf")).into_response(),
        "/sign.png" => ([("content-type", "image/png")], fixture("sign.png")).into_response(),
        "/long" => (0..9_000).map(|at| format!("line {at}\n")).collect::<String>().into_response(),
        path if path.starts_with("/archive/web/") => format!("copy of {uri}").into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    url
}

async fn visit(server: &str, tool: &str, input: Value) -> Result<String, String> {
    let scene = Scene::new().await;
    let (guard, addresses) = (Guard::new().trusted(server.parse().unwrap()), Addresses::on(server).unwrap());
    call_with(&scene, move |builder| builder.guard(guard).addresses(addresses, true), tool, input).await
}

#[tokio::test]
async fn a_page_is_readable_text_with_its_address_and_its_links() {
    let server = server().await;
    let text = visit(&server, "visit_page", json!({ "url": format!("{server}/old") })).await.unwrap();
    assert_eq!(
        text,
        format!(
            "[{server}/tides]\n# Tides\n\n# Tides of Wrenmouth\n\nHigh water – 4.2 m\n\n| Day | Height |\n| Monday | 3.9 |\n\n\
             More tides no\n\nLinks:\n- More tides: {server}/more?x=1&y=2\n"
        )
    );
    let latin = visit(&server, "visit_page", json!({ "url": format!("{server}/latin") })).await.unwrap();
    assert!(latin.contains("Größe") && latin.contains("as it declares"), "{latin}");
    let pdf = visit(&server, "visit_page", json!({ "url": format!("{server}/gifts.pdf") })).await.unwrap();
    assert!(pdf.contains("[page 1]") && pdf.contains("Gift exchange"), "{pdf}");
}

#[tokio::test]
async fn a_long_page_is_shown_by_pages_and_a_word_is_found() {
    let server = server().await;
    let ask = |more: Value| {
        let mut input = json!({ "url": format!("{server}/long") });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        visit(&server, "visit_page", input)
    };
    let first = ask(json!({})).await.unwrap();
    assert!(first.contains("line 0\n") && first.contains("[page 1 of 3: set `page` for others"), "{first}");
    let second = ask(json!({ "page": 2 })).await.unwrap();
    assert!(second.contains("[page 2 of 3") && !second.contains("line 0\n"), "{second}");
    assert!(ask(json!({ "page": 9 })).await.unwrap().contains("there are 3 pages: there is no page 9"));
    let found = ask(json!({ "find": "LINE 8999" })).await.unwrap();
    assert!(found.contains("[on page 3]") && found.contains("line 8998\nline 8999"), "{found}");
}

#[tokio::test]
async fn an_archived_copy_is_that_of_the_day() {
    let server = server().await;
    let input = json!({ "url": "https://a.example/x?y=1", "date": "2021-03-09" });
    let copy = visit(&server, "archive_page", input).await.unwrap();
    assert!(copy.contains("copy of /archive/web/20210309id_/https://a.example/x?y=1"), "{copy}");
    let error = visit(&server, "archive_page", json!({ "url": "https://a.example", "date": "spring" }))
        .await
        .unwrap_err();
    assert!(error.contains("a day such as 2021-03-09"), "{error}");
}

#[tokio::test]
async fn inner_addresses_are_not_visited_and_other_files_are_named() {
    let server = server().await;
    for url in [
        "http://127.0.0.1:1/",
        "http://localhost/",
        "file:///etc/passwd",
        &format!("{server}/inward"),
        "http://[::1]/",
    ] {
        assert!(visit(&server, "visit_page", json!({ "url": url })).await.is_err(), "{url}");
    }
    let error = visit(&server, "visit_page", json!({ "url": format!("{server}/none") })).await.unwrap_err();
    assert!(error.contains("404"), "{error}");
    let error =
        visit(&server, "visit_page", json!({ "url": format!("{server}/sign.png") })).await.unwrap_err();
    assert!(error.contains("It is an image") && error.contains("`download_file`"), "{error}");
    // Without a service of the settings, the embedded world's own pages are reached like those of others.
    let scene = Scene::new().await;
    let url = format!("{}/questions", scene.server.url());
    assert!(call(&scene, "visit_page", json!({ "url": url })).await.unwrap().contains("task_id"));
}
