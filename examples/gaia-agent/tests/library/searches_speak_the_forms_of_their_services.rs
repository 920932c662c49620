//! The tools that search, over HTTP: what they make of good answers, and of servers that fail. The answers
//! are handwritten; the real services were not tried.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gaia_agent::settings::Addresses;
use gaia_agent::world::World;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Scene, call, call_with};

const SEARCHES: [(&str, &str); 5] = [
    ("wikipedia", "query"),
    ("arxiv_search", "query"),
    ("duckduckgo_search", "query"),
    ("tavily_search", "query"),
    ("youtube_transcript", "video"),
];

fn input(argument: &str) -> Value {
    match argument {
        "video" => json!({ "video": "GaiaTea0001" }),
        _ => json!({ "query": "Kesselby" }),
    }
}

#[tokio::test]
async fn an_article_comes_with_the_titles_of_others() {
    let scene = Scene::new().await;
    let article = call(&scene, "wikipedia", json!({ "query": "the composer Edda Lindqvist" })).await.unwrap();
    assert!(
        article.starts_with(
            "# Edda Lindqvist\nEdda Lindqvist (1801-1866) was a composer. She was born in Varnhavn"
        ),
        "{article}"
    );
    assert!(article.contains("Other articles:\n- Tove Aakre: Tove Aakre (1880-1951)"), "{article}");
    let none = call(&scene, "wikipedia", json!({ "query": "zzzz" })).await.unwrap();
    assert_eq!(none, "Wikipedia has no article about `zzzz`.");
}

/// The interface of MediaWiki with one article, in the forms that it documents.
async fn encyclopedia(query: axum::extract::RawQuery) -> Response {
    let query = query.0.unwrap_or_default();
    let has = |part: &str| query.contains(part);
    let page = "<h2>Medals</h2><table><tr><th>Country</th><th>Gold</th></tr><tr><td>Tornland</td><td>7</td></tr></table>\
        <h3>Notes</h3><p>A note.</p><h2>History</h2><p>Long ago.</p>";
    let answer = if has("srsearch=busy") {
        json!({ "error": { "code": "maxlag", "info": "Waiting for a database server" } })
    } else if has("list=search") {
        json!({ "query": { "search": [{ "title": "Northern Games" }] } })
    } else if has("prop=revisions") {
        let at = has("rvstart=2022-12-31T23%3A59%3A59Z")
            .then(|| json!([{ "revid": 11, "timestamp": "2022-11-05T10:00:00Z" }]));
        json!({ "query": { "pages": [{ "title": "Northern Games", "revisions": at.unwrap_or(json!([])) }] } })
    } else if has("oldid=11") {
        json!({ "parse": { "title": "Northern Games", "text": page.replace('7', "5") } })
    } else {
        json!({ "parse": { "title": "Northern Games", "text": page } })
    };
    axum::Json(answer).into_response()
}

#[tokio::test]
async fn an_article_has_its_tables_its_sections_and_its_state_on_a_day() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/wikipedia/w/api.php", axum::routing::get(encyclopedia));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let scene = Scene::new().await;
    let ask = |input: Value| {
        let addresses = Addresses::on(&url).unwrap();
        call_with(&scene, move |builder| builder.addresses(addresses, true), "wikipedia", input)
    };
    let whole = ask(json!({ "query": "games" })).await.unwrap();
    assert!(
        whole.contains("| Country | Gold |\n| Tornland | 7 |")
            && whole.contains("[sections: Medals; Notes; History]"),
        "{whole}"
    );
    assert!(whole.ends_with(&format!("[{url}/wikipedia/wiki/Northern_Games]")), "{whole}");
    let section = ask(json!({ "query": "games", "section": "medals" })).await.unwrap();
    assert!(section.contains("A note.") && !section.contains("Long ago"), "{section}");
    let error = ask(json!({ "query": "games", "section": "Rules" })).await.unwrap_err();
    assert!(error.contains("no section `Rules`; there are Medals; Notes; History"), "{error}");
    let then = ask(json!({ "query": "games", "date": "2022-12-31" })).await.unwrap();
    assert!(
        then.contains("| Tornland | 5 |") && then.contains("?oldid=11, as of 2022-11-05T10:00:00Z]"),
        "{then}"
    );
    let before = ask(json!({ "query": "games", "date": "1999-01-01" })).await.unwrap_err();
    assert!(before.contains("did not exist at the end of 1999-01-01"), "{before}");
    // An error of the service is no missing article.
    let busy = ask(json!({ "query": "busy" })).await.unwrap_err();
    assert!(busy.contains("maxlag") && busy.contains("Waiting for a database server"), "{busy}");
}

#[tokio::test]
async fn papers_come_with_their_authors_dates_and_comments() {
    let mut world = World::new();
    world.papers[0].title = "Rings & <worlds>".into();
    let scene = Scene::of(world).await;
    let papers =
        call(&scene, "arxiv_search", json!({ "query": "rings worlds", "max_results": 1 })).await.unwrap();
    assert_eq!(
        papers,
        "Rings & <worlds>\nhttp://arxiv.org/abs/2103.04567v2\nsubmitted 2021-03-09, last changed 2021-03-09\nauthors: Ngozi Okafor\n\
         comment: 17 pages, 5 figures\nabstract: We study the subject of this paper: tidal locking of ring worlds."
    );
    let two = call(&scene, "arxiv_search", json!({ "query": "tidal" })).await.unwrap();
    assert_eq!(two.matches("abstract: ").count(), 2, "{two}");
    assert!(call(&scene, "arxiv_search", json!({ "query": "zzzz" })).await.unwrap().contains("no paper"));
}

#[tokio::test]
async fn pages_of_the_web_come_with_their_own_addresses() {
    let scene = Scene::new().await;
    let found = call(&scene, "duckduckgo_search", json!({ "query": "Kesselby" })).await.unwrap();
    assert!(
        found
            .contains("Kesselby, a walk\nhttps://walks.example/kesselby?page=2\nFrom the market of Kesselby"),
        "{found}"
    );
    let found =
        call(&scene, "tavily_search", json!({ "query": "Tornland medals", "max_results": 1 })).await.unwrap();
    assert!(
        found.starts_with(
            "Northern Games of 1930: the table\nhttps://games.example/1930\nAt the Northern Games"
        ),
        "{found}"
    );
    for tool in ["duckduckgo_search", "tavily_search"] {
        let none = call(&scene, tool, json!({ "query": "zzzz" })).await.unwrap();
        assert_eq!(none, "For `zzzz`, no page was found.");
    }
}

#[tokio::test]
async fn a_transcript_has_the_lines_of_the_video() {
    let scene = Scene::new().await;
    let lines =
        call(&scene, "youtube_transcript", json!({ "video": "https://youtu.be/GaiaTea0001" })).await.unwrap();
    assert_eq!(
        lines,
        "[transcript in en]\n[0:00] Welcome to the tea house.\n[0:02] Runa takes the kettle.\n[0:04] Isn't that hot?\n[0:06] Extremely.\n[0:08] Now we wait."
    );
    for (video, part) in [
        ("GaiaBirds01", "the video has no transcript"),
        ("nothing0000", "the video does not exist"),
        ("https://vimeo.example/1", "neither a YouTube address nor an id"),
    ] {
        let error = call(&scene, "youtube_transcript", json!({ "video": video })).await.unwrap_err();
        assert!(error.contains(part), "{video}: {error}");
    }
}

#[tokio::test]
async fn media_are_seen_and_heard_and_other_files_are_refused() {
    let scene = Scene::new().await;
    let world = World::new();
    scene.folder.write("here/sign.png", &world.files["sign"]);
    scene.folder.write("here/message.wav", &world.files["message"]);
    scene.folder.write("here/film.mp4", b"\0\0\0\x18ftypmp42");
    scene.folder.write("here/note.txt", b"text");
    let ask = |path: &str| json!({ "path": path, "question": "what?" });
    assert!(call(&scene, "analyze_image", ask("sign.png")).await.unwrap().contains("\"ROUTE 47\""));
    assert!(
        call(&scene, "understand_audio", json!({ "path": "message.wav" }))
            .await
            .unwrap()
            .ends_with("MEET AT HARBOUR 9")
    );
    let video = |video: &str| json!({ "video": video, "question": "what?" });
    assert!(
        call(&scene, "understand_video", video("https://www.youtube.com/watch?v=GaiaBirds01"))
            .await
            .unwrap()
            .contains("4 bird species")
    );
    assert!(call(&scene, "understand_video", video("film.mp4")).await.unwrap().contains("video/mp4"));
    for (tool, input) in [
        ("analyze_image", ask("message.wav")),
        ("analyze_image", ask("note.txt")),
        ("understand_audio", ask("sign.png")),
        ("understand_video", video("sign.png")),
        ("understand_video", video("http://127.0.0.1:1/film.mp4")),
        ("understand_video", video("file:///etc/passwd")),
        ("analyze_image", ask("../../etc/passwd")),
    ] {
        assert!(call(&scene, tool, input.clone()).await.is_err(), "{tool} {input}");
    }
}

/// A server that answers everything alike.
async fn answering(answer: impl Fn() -> Response + Send + Sync + 'static) -> String {
    let answer = Arc::new(answer);
    let routes = Router::new().fallback(move || {
        let answer = Arc::clone(&answer);
        async move { answer() }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

#[tokio::test]
async fn a_service_that_fails_is_an_error_that_the_model_reads() {
    let scene = Scene::new().await;
    let endless = || {
        let pieces = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(100_000)));
        Body::from_stream(pieces).into_response()
    };
    type Answer = Box<dyn Fn() -> Response + Send + Sync>;
    let answers: [(&str, Answer); 7] = [
        ("429", Box::new(|| (StatusCode::TOO_MANY_REQUESTS, "slow down").into_response())),
        ("500", Box::new(|| (StatusCode::INTERNAL_SERVER_ERROR, "oops").into_response())),
        (
            "redirect",
            Box::new(|| (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")], "").into_response()),
        ),
        ("another form", Box::new(|| "<a class=\"result__a\"><b>[1, {".into_response())),
        ("json", Box::new(|| "{\"query\": 1, \"results\": 2, \"captions\": 3}".into_response())),
        ("bytes", Box::new(|| vec![0_u8, 255, 254, 0].into_response())),
        ("endless", Box::new(endless)),
    ];
    for (name, answer) in answers {
        let addresses = Addresses::on(&answering(answer).await).unwrap();
        for (tool, argument) in SEARCHES {
            let addresses = addresses.clone();
            let said =
                call_with(&scene, move |builder| builder.addresses(addresses, true), tool, input(argument))
                    .await;
            // A page without results is no failure of DuckDuckGo, and JSON or bytes are such a page.
            let is_lenient = tool == "duckduckgo_search" && ["another form", "json", "bytes"].contains(&name);
            assert!(said.is_err() || is_lenient, "{tool} {name}: {said:?}");
            if name == "429" {
                assert!(said.unwrap_err().contains("too many requests"));
            }
        }
    }
    let addresses = Addresses::on("http://127.0.0.1:1").unwrap();
    for (tool, argument) in SEARCHES {
        let addresses = addresses.clone();
        let error =
            call_with(&scene, move |builder| builder.addresses(addresses, true), tool, input(argument))
                .await
                .unwrap_err();
        assert!(error.contains("could not be reached"), "{tool}: {error}");
    }
}

#[tokio::test]
async fn empty_and_hostile_queries_go_nowhere_else() {
    let scene = Scene::new().await;
    let before = scene.server.requests();
    for (tool, argument) in SEARCHES {
        let error = call(&scene, tool, json!({ argument: " " })).await.unwrap_err();
        assert!(error.contains("empty") || error.contains("neither"), "{tool}: {error}");
    }
    assert_eq!(scene.server.requests(), before);
    for query in ["a&format=xml#x", "../../submit", "\r\nHost: evil", "%00", "тест ✓"] {
        for (tool, argument) in SEARCHES {
            if argument == "query" {
                assert!(call(&scene, tool, json!({ "query": query })).await.is_ok(), "{tool} {query:?}");
            }
        }
    }
}
